//! One file a command.

mod chat;
mod check;
mod completions;
mod list;
mod schema;

use crate::args::{Args, Command, FolderArgs};
use crate::config::ConfigFile;
use crate::exit::Exit;
use crate::failure::Failure;
use hookgate_handlers::folder::{self, HOOKS_DIR_VARIABLE, HookFolder};
use std::path::{Path, PathBuf};

/// Runs the command that was asked for.
///
/// # Errors
/// It could not be done; see [`Failure::report`].
pub fn run(args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::Chat(args) => chat::run(&args),
        Command::List(args) => list::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Schema => schema::run(),
        Command::Completions { shell } => completions::run(shell),
    }
}

/// The configuration for a command that was started here.
fn configuration(named: Option<&Path>) -> Result<ConfigFile, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the working directory cannot be found: {error}")))?;
    ConfigFile::find(named, &here)
}

/// The folder that `list` and `check` are about. One that cannot be read is a failure, not a problem in it.
fn hook_folder(args: &FolderArgs) -> Result<HookFolder, Failure> {
    let path = match &args.dir {
        Some(dir) => dir.clone(),
        None => configured_folder(args)?,
    };
    std::fs::read_dir(&path).map_err(|error| {
        Failure::new(format!("the hooks folder {} cannot be read: {error}", path.display()))
    })?;
    Ok(HookFolder::new(path))
}

fn configured_folder(args: &FolderArgs) -> Result<PathBuf, Failure> {
    let configured = configuration(args.config.as_deref())?.hooks.dir;
    folder::resolve(configured, std::env::var_os(HOOKS_DIR_VARIABLE)).ok_or_else(|| {
        Failure::new(format!(
            "which folder? give one, or set `dir` under [hooks] in hookgate.toml, or {HOOKS_DIR_VARIABLE}"
        ))
    })
}
