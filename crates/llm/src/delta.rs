//! One piece of an answer, as it arrives.

use crate::{Finish, Reasoning, Usage};

/// One piece of an answer. Pieces come in the order in which the provider sent them.
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// Text of the answer.
    Content(String),
    /// Text of the model's reasoning.
    Reasoning(String),
    /// Ends a block of reasoning. With `signature` it closes (and signs) the block whose text came before; with
    /// `redacted` it is a whole block of its own. Its `text` is empty.
    ReasoningSignature(Reasoning),
    /// A piece of a tool call. The pieces of one call share `index`; calls may interleave.
    ToolCall {
        /// Which call of this answer, counted from 0.
        index: u32,
        /// The call's id, once, as soon as it is known. Every call has got one when [`Delta::Finish`] comes.
        id: Option<String>,
        /// The tool's name. Nearly always whole and once; if more pieces come, they append.
        name: Option<String>,
        /// The next piece of the arguments; appends.
        arguments: String,
    },
    /// Token counts so far; see [`Usage::merge`]. May come before or after [`Delta::Finish`].
    Usage(Usage),
    /// The answer ended and why. Comes once; only [`Delta::Usage`] and [`Delta::Other`] may follow.
    Finish(Finish),
    /// Something this crate does not know and that is no reason to fail: its type, a space and its raw text.
    Other(String),
}

impl Delta {
    /// A [`Delta::Other`] of this type with this raw text.
    pub fn other(kind: &str, raw: impl std::fmt::Display) -> Self {
        Delta::Other(format!("{kind} {raw}"))
    }
}
