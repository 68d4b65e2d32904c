//! `outbox drain`: runs what is due, as a session does in the background.

use crate::age;
use crate::args::{ChatArgs, OutboxArgs};
use crate::chat::{self, Display, Engine};
use crate::config::{ConfigFile, Settings};
use crate::failure::Failure;
use hookgate_handlers::command::Commands;
use std::path::Path;
use std::time::Duration;

/// How long the end waits for the trail, and for the processes of command hooks.
const SETTLING: Duration = Duration::from_secs(2);

pub(super) fn run(
    args: &OutboxArgs,
    hooks: Option<&Path>,
    within: &str,
    file: ConfigFile,
) -> Result<(), Failure> {
    let within = age::read(within)
        .ok_or_else(|| Failure::new(format!("`{within}` is no time; expected one such as 30s or 5m")))?;
    let as_chat = ChatArgs {
        hooks: hooks.map(Path::to_owned),
        data_dir: args.data_dir.clone(),
        config: args.config.clone(),
        ..ChatArgs::default()
    };
    let settings = Settings::resolve(&as_chat, file, &|name| std::env::var_os(name))?;
    let (commands, display) = (Commands::default(), Display::new(false, false));
    let assembled = chat::build(&settings, commands.clone(), &display)?;
    let engine = Engine::start()?;
    engine.deliver(&assembled.service, within);
    if let Some(trail) = &assembled.trail {
        trail.settle(SETTLING);
    }
    engine.leave();
    drop(assembled);
    commands.settle(SETTLING);
    Ok(())
}
