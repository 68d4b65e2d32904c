//! `hookgate list [DIR]`: the hooks of a folder, or all that are configured, in load order. What is wrong goes to standard error.

use crate::args::FolderArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{problems, sources, table, terminal};
use std::io::{self, Write};

pub(super) fn run(args: &FolderArgs) -> Result<Exit, Failure> {
    let loaded = sources::of(args)?.read();
    let listing = loaded.listing();
    let mut stdout = io::stdout().lock();
    if args.json {
        let text = serde_json::to_string_pretty(&listing)
            .map_err(|error| Failure::new(format!("the list cannot be written: {error}")))?;
        writeln!(stdout, "{text}")?;
    } else {
        let text = table::hooks(&listing);
        stdout.write_all(terminal::printable(&text, terminal::is_terminal(&stdout)).as_bytes())?;
    }
    if loaded.problems.is_empty() {
        return Ok(Exit::Done);
    }
    let mut stderr = io::stderr().lock();
    let text = problems::text(&loaded.problems);
    stderr.write_all(terminal::printable(&text, terminal::is_terminal(&stderr)).as_bytes())?;
    Ok(Exit::Problems)
}
