//! The handlers with real processes and servers on loopback.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

mod bench;
mod command;
mod faults;
mod prompt;
mod record;
mod watchers;
