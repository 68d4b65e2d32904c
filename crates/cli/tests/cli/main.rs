//! The real program, run as a user runs it, with the scripted model.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    reason = "also in the helpers, a test may stop"
)]

mod agents;
mod ask;
mod audit;
mod check;
mod config;
mod folder;
mod gateway;
mod hooks;
mod install;
mod json;
mod mcp;
mod outbox;
mod replay;
mod sessions;
mod stop;
mod support;
mod terminal;
mod tools;
mod uses;
mod watch;
mod workbench;
