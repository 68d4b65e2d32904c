//! `hookgate completions SHELL`: a completion script.

use crate::args::Args;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::CommandFactory;
use clap_complete::Shell;
use std::io::{self, Write};

pub(super) fn run(shell: Shell) -> Result<Exit, Failure> {
    // the generator panics when it cannot write
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hookgate", &mut script);
    io::stdout().lock().write_all(&script)?;
    Ok(Exit::Done)
}
