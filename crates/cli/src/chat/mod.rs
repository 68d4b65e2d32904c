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

pub(crate) use assemble::build;
pub(crate) use converse::converse;
pub(crate) use display::Display;
pub(crate) use once::answer;
pub(crate) use prompt::Prompt;
