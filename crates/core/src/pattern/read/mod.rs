//! Reading JavaScript's pattern syntax into the engine's own tree.
//!
//! The grammar is the one of `new RegExp(source)` without the flags `u` and `v`, with the additions of ECMAScript's
//! Annex B, which every engine on the web follows.

mod class;
mod escape;
mod fold;
mod group;
mod reader;
mod scan;
mod size;

pub(crate) use reader::CAN_BE_EMPTY;
pub(super) use reader::{Reading, read};
pub(super) use size::{SET_SIZE_LIMIT, check_size};
