//! Where hooks come from: [`folder`] reads a directory of hook files and hands their text to
//! [`hookgate_core::define`].
//!
//! The handlers that lifecycle hooks run (script, command, http, prompt) will live here too. Until they do, a
//! lifecycle hook is read and listed, and a door refuses to run with it: see [`folder::Loaded::runnable`].

pub mod folder;
