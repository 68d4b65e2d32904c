//! Coding agents as doors: what each one hands to a hook program becomes events of ours, and what hooks said becomes
//! that agent's exact standard output, standard error and exit code.
//!
//! The path of one call: [`table::find`] gives the [`Agent`](agent::Agent), its `read` makes a
//! [`Read`](read::Read) of the payload, the caller asks the engine, its `answer` writes the
//! [`Outcome`](outcome::Outcome). Whatever goes wrong before there is an outcome becomes
//! its `fault`: the agent's word for no wherever it has one.
//!
//! This crate reads no file, environment, process or clock. It decides nothing.

pub mod agent;
pub mod call;
pub mod event;
pub mod outcome;
pub mod read;
pub mod setup;
pub mod table;

mod fields;
mod guide;
mod input;
mod sample;
mod speech;
pub mod tools;

pub use guide::page;
pub use sample::sample;

mod antigravity;
mod claude_code;
mod cline;
mod codex;
mod copilot_cli;
mod cursor;
mod docker_agent;
mod droid;
mod gemini_cli;
mod goose;
mod grok;
mod kiro;
mod openclaw;
mod opencode;
mod qwen_code;
mod vscode;
mod windsurf;
