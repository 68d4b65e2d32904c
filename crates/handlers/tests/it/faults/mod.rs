//! Handlers that are slow, dead, lying, flooding or worse, at every kind of point.
//!
//! `matrix` holds what must be true of each, the other files the faults of one kind of handler as a table. A fault at
//! a gate is a block whose reason names its kind, in time, and the next call is answered as ever.

mod clock;
mod command;
mod depth;
mod http;
mod matrix;
mod prompt;
#[cfg(target_os = "linux")]
mod script;
mod server;
