//! The program `hookgate` without its `main`: arguments, configuration, and one file for each command.
//!
//! [`run`] takes parsed [`Args`] and gives an [`Exit`] or a [`Failure`]; nothing here ends the process.

mod args;
mod exit;
mod failure;

mod age;
mod config;
mod data;
mod deliveries;
mod short_trail;
mod signals;
mod trail;

mod model;
mod problems;
mod programs;
mod snippet;
mod sources;
mod table;
mod terminal;
mod workbench;
mod workshop;

mod agent;
mod chat;
mod commands;
mod gateway;
mod import;
mod install;
#[cfg(unix)]
mod mcp;

#[cfg(test)]
mod reference;

pub use agent::{answer_to_unknown_arguments, hook_of_process};
pub use args::Args;
pub use commands::run;
pub use exit::Exit;
pub use failure::Failure;
pub use workshop::as_script_worker;
