//! `hookgate import AGENT FILE`: an agent's own hook settings as hooks of ours, as far as they can be said so.
//!
//! Exit code 0: all of it, 1: not all of it, or something in the file is odd; standard error says what.

use super::install::{agent, print};
use crate::args::ImportArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::import::import;
use crate::install::files;
use std::io::{self, Write};

/// What every imported line must know.
const NOTE: &str = "note: imported lines get our event on standard input (toolInput, not tool_input), an empty \
environment and the hook file's folder; exit code 2 blocks as before, answers in the agent's own JSON do not";

pub(super) fn run(args: &ImportArgs) -> Result<Exit, Failure> {
    let agent = agent(&args.agent)?;
    let text = files::read(&args.file)?
        .ok_or_else(|| Failure::new(format!("{} does not exist", args.file.display())))?;
    let imported = import(agent, &text);
    let hooks = serde_json::to_string_pretty(&imported.hooks)
        .map_err(|error| Failure::new(format!("the hooks cannot be written: {error}")))?;
    print(&format!("{hooks}\n"))?;
    let mut stderr = io::stderr().lock();
    let file = args.file.display();
    for said in &imported.says {
        writeln!(stderr, "{file}: {said}")?;
    }
    for left in &imported.left {
        writeln!(stderr, "{file}: not carried over: {left}")?;
    }
    if !imported.hooks.is_empty() {
        writeln!(stderr, "{NOTE}")?;
    }
    let whole = imported.says.is_empty() && imported.left.is_empty();
    Ok(if whole { Exit::Done } else { Exit::Problems })
}
