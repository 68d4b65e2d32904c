//! Where hooks come from, and what lifecycle hooks run.
//!
//! [`folder`] reads a directory of hook files and hands their text to [`hookgate_core::define`]; [`workshop`] gives
//! each lifecycle hook the handler that it names; [`sources`] are all places that a door loads from; [`clock`] is the time that core's chains run on.

pub mod address;
pub mod breaker;
pub mod builtin;
pub mod clock;
pub mod command;
mod delivery;
pub mod folder;
pub mod http;
pub mod outbox;
pub mod prompt;
pub mod said;
#[cfg(unix)]
pub mod script;
pub mod sources;
pub mod watchers;
pub mod workshop;
