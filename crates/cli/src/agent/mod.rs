//! Coding agents as a door: one process answers one hook call of one agent.
//!
//! [`call`] is the way of a call; [`mouth`] sees to it that exactly one answer is given and that it comes in time;
//! [`rules`] finds and loads what the event can need; [`engine`] asks and tells core; [`memory`] is what a session
//! remembers from one process to the next; [`handover`] gives calls that need the network to the whole program;
//! [`journal`] is where everything goes that is not the answer.

pub(crate) mod call;

mod engine;
mod handover;
mod journal;
mod lazy;
mod means;
mod memory;
mod mouth;
mod rules;

pub use call::{answer_to_unknown_arguments, hook_of_process};
pub(crate) use means::can;
pub(crate) use rules::{judges, standing as load};
