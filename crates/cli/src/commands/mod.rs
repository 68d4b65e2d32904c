//! One file a command.

mod audit;
mod chat;
mod check;
mod completions;
mod demo;
mod doctor;
mod fire;
mod gateway;
mod hook;
mod import;
mod init;
mod install;
mod list;
mod man;
#[cfg(unix)]
mod mcp;
mod outbox;
mod replay;
mod schema;
mod status;
mod test;
mod watch;
mod why;

use crate::args::{Args, Command};
use crate::config::ConfigFile;
use crate::exit::Exit;
use crate::failure::Failure;
use std::path::Path;

/// Runs the command that was asked for.
///
/// # Errors
/// It could not be done; see [`Failure::report`].
pub fn run(args: Args) -> Result<Exit, Failure> {
    match args.command {
        Command::Chat(args) => chat::run(&args),
        Command::Gateway(args) => gateway::run(&args),
        Command::Demo => demo::run(),
        Command::List(args) => list::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Init(args) => init::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Fire(args) => fire::run(&args),
        Command::Why(args) => why::run(&args),
        Command::Audit(args) => audit::run(&args),
        Command::Outbox(args) => outbox::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Hook(args) => hook::run(&args),
        Command::Install(args) => install::install(&args),
        Command::Import(args) => import::run(&args),
        Command::Uninstall(args) => install::uninstall(&args),
        #[cfg(unix)]
        Command::Mcp(args) => mcp::run(&args),
        Command::Status => status::run(),
        Command::Doctor => doctor::run(),
        Command::Schema { tests, configuration } => schema::run(tests, configuration),
        Command::Man { dir } => man::run(&dir),
        Command::Completions { shell } => completions::run(shell),
    }
}

/// The configuration for a command that was started here.
pub(crate) fn configuration(named: Option<&Path>) -> Result<ConfigFile, Failure> {
    let here = std::env::current_dir()
        .map_err(|error| Failure::new(format!("the working directory cannot be found: {error}")))?;
    ConfigFile::find(named, &here)
}
