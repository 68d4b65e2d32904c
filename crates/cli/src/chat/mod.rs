//! Talking to a model: the service with all that is configured, what is shown of its events, and the two ways to
//! use it.

mod assemble;
mod converse;
mod display;
mod json_lines;
mod once;
mod prompt;
mod screen;
mod turn;
mod why;

pub(crate) use assemble::{Assembled, build};
pub(crate) use converse::converse;
pub(crate) use display::Display;
pub(crate) use once::answer;
pub(crate) use prompt::Prompt;
pub(crate) use turn::Engine;
pub(crate) use why::{filtered_out, ruled_out};
