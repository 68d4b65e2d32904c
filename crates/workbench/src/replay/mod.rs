//! Past sessions, run through a hook set.
//!
//! The path of a history: [`find`] names the files, [`mod@format`] sees in a file's content what wrote it, a reader
//! below `read` turns its lines into [`Step`](step::Step)s, the `player` makes of these the events that a
//! door would have told, a judge ([`judge`]) asks and tells one hook set the way a door does, and the
//! [`report`] counts what came out. [`run`] does that for many files at once.
//!
//! The past cannot be changed: a step that a hook blocks has happened, and what follows is what followed.

pub mod dry;
pub mod find;
pub mod format;
pub mod html;
pub mod judge;
pub mod report;
pub mod run;
pub mod step;

mod deed;
mod lines;
mod player;
mod read;
mod tally;

pub use deed::{Deed, What};

#[cfg(test)]
mod tests;
