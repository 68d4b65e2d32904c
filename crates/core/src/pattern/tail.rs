//! The last part of a text that arrives in pieces.

use super::cursor::WINDOW;

/// The end of the text so far: at least its last [`WINDOW`] bytes, or all of it. Places are offsets in the whole text.
#[derive(Debug, Default)]
pub(super) struct Tail {
    text: String,
    /// Place of the first kept byte.
    base: u64,
    /// Place where the newest block begins.
    block: u64,
}

impl Tail {
    /// Appends a block, and forgets what is far back.
    pub(super) fn push(&mut self, block: &str) {
        if self.text.len() > 2 * WINDOW {
            let mut cut = self.text.len() - WINDOW;
            while !self.text.is_char_boundary(cut) {
                cut -= 1;
            }
            self.text.drain(..cut);
            self.base += cut as u64;
        }
        self.block = self.end();
        self.text.push_str(block);
    }

    /// Where the text ends so far.
    pub(super) fn end(&self) -> u64 {
        self.base + self.text.len() as u64
    }

    /// Where the newest block begins.
    pub(super) fn block(&self) -> u64 {
        self.block
    }

    /// The first place where a search may begin: what `^` and `\b` mean there depends on the character before it.
    pub(super) fn floor(&self) -> u64 {
        let first = if self.base == 0 { 0 } else { self.text.chars().next().map_or(0, char::len_utf8) };
        self.base + first as u64
    }

    /// What is kept from a place on.
    pub(super) fn bytes(&self, from: u64) -> &[u8] {
        self.text.as_bytes().get(self.offset(from)..).unwrap_or_default()
    }

    /// All that is kept.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The byte before a place.
    pub(super) fn before(&self, at: u64) -> Option<u8> {
        self.text.as_bytes().get(self.offset(at).checked_sub(1)?).copied()
    }

    /// The first place from `at` on that is between two characters.
    pub(super) fn next_character(&self, at: u64) -> u64 {
        let mut at = at;
        while !self.text.is_char_boundary(self.offset(at)) {
            at += 1;
        }
        at
    }

    /// A place as an offset in [`text`](Self::text).
    pub(super) fn offset(&self, at: u64) -> usize {
        usize::try_from(at.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.text.len())
    }
}
