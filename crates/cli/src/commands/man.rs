//! `hookgate man DIR`: a manual page for each command, for those who make packages.

use crate::args::Args;
use crate::exit::Exit;
use crate::failure::Failure;
use clap::CommandFactory;
use std::path::Path;

pub(super) fn run(dir: &Path) -> Result<Exit, Failure> {
    let cannot = |error| Failure::new(format!("the manual cannot be written to {}: {error}", dir.display()));
    std::fs::create_dir_all(dir).map_err(cannot)?;
    clap_mangen::generate_to(Args::command(), dir).map_err(cannot)?;
    Ok(Exit::Done)
}
