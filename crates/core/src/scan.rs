//! Looking for what no pattern can describe in a text that arrives in pieces. Only hooks of the program do it: a hook
//! file has no word for it.

use std::fmt::Debug;

/// What to look for. Shared by all texts.
pub trait Scan: Send + Sync + Debug {
    /// Begins with a text.
    fn begin(&self) -> Box<dyn Scanning>;
}

/// One text on its way. Its memory is bounded, however long the text is.
pub trait Scanning: Send + Debug {
    /// Takes the next piece and adds the names of what is certain by now, never the found text itself.
    fn push(&mut self, piece: &str, found: &mut Vec<String>);
    /// Takes the end of the text.
    fn finish(&mut self, found: &mut Vec<String>);
}
