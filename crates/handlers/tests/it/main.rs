//! The handlers with real processes and servers on loopback.

#![cfg(unix)]

mod bench;
mod command;
