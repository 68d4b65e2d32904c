//! The store with real files and processes.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may stop"
)]

mod bench;
mod chain;
mod contract;
mod faults;
mod outbox;
mod postgres;
mod processes;
mod secrets;
mod server;
mod spool;
