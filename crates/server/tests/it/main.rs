//! The gateway with real sockets: a raw client that sees every byte, and a provider that plays what a test says.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::string_slice,
    clippy::print_stdout,
    clippy::print_stderr,
    missing_docs,
    reason = "a test may stop"
)]

mod kit;

mod aftermath;
mod answers;
mod blocks;
mod bounds;
mod clients;
mod faults;
mod leaks;
mod means;
mod numbers;
mod sdk;
mod secrets;
mod tenants;
mod turns;
mod ways_round;
