//! Looking for what no pattern can describe in a text that arrives in pieces. Only hooks of the program do it: a hook
//! file has no word for it.

use std::fmt::Debug;
use std::ops::Range;

/// What to look for. Shared by all texts.
pub trait Scan: Send + Sync + Debug {
    /// Begins with a text.
    fn begin(&self) -> Box<dyn Scanning>;
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// What it is, such as `github_token`; never the found text itself.
    pub name: &'static str,
    /// Where, in bytes of the text from its beginning.
    pub span: Range<u64>,
}

/// One text on its way. Its memory is bounded, however long the text is.
pub trait Scanning: Send + Debug {
    /// Takes the next piece and adds what is certain by now.
    fn push(&mut self, piece: &str, found: &mut Vec<Find>);
    /// Takes the end of the text.
    fn finish(&mut self, found: &mut Vec<Find>);
    /// The place, in bytes of the text from its beginning, before which nothing belongs to a later find.
    fn clear(&self) -> u64;
    /// Calls everything clear that came so far, whatever it may become.
    fn give_way(&mut self);
}
