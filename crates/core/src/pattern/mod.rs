//! Patterns: JavaScript's regular expressions without flags, matched in linear time, on whole texts and on streams.
//!
//! A [`Pattern`] is read once, when a definition is loaded. The patterns of one point become a [`TextSet`] (whole
//! texts) or a [`StreamSet`] (texts that arrive in pieces); both look for all of them in one pass.
//!
//! What this module deliberately does not do: look-around and back-references (they cannot be matched in linear time,
//! nor piece by piece; they are refused with a hint), capture groups (nobody asks for them), replacement.
//! `docs/design/patterns.md` lists what differs from JavaScript.

mod error;
mod single;

mod read;

mod automaton;
mod text_set;

mod cursor;
mod hold;
mod shard;
mod stream_set;
mod tail;
mod track;

#[cfg(test)]
mod splits;

pub(crate) use read::CAN_BE_EMPTY;

pub use cursor::{Hit, StreamCursor, WINDOW};
pub use error::PatternError;
pub use hold::{HoldCursor, HoldSet};
pub use single::Pattern;
pub use stream_set::StreamSet;
pub use text_set::TextSet;
