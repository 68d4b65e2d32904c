//! The real program, run as a user runs it, with the scripted model.

mod ask;
mod config;
mod folder;
mod hooks;
mod json;
mod stop;
mod support;
mod terminal;
mod tools;
