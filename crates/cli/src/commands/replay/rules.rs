//! The hook sets of a replay.
//!
//! | flags | hooks |
//! |---|---|
//! | `--hooks DIR` | that folder |
//! | `--config FILE` | what the file names: built-in hooks, its folders; `--hooks` in place of its `dir` |
//! | neither | `hookgate.toml` here or in a folder above, else `LLM_CHAT_HOOKS_DIR` |
//! | `--against DIR` | a second set: the same with this folder in the place of the first |

use crate::args::ReplayArgs;
use crate::config::ConfigFile;
use crate::failure::Failure;
use crate::workshop::workshop;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::command::Commands;
use hookgate_handlers::folder::{self, HOOKS_DIR_VARIABLE, HookFolder, OnInvalid};
use hookgate_handlers::prompt::Spending;
use hookgate_handlers::sources::Sources;
use hookgate_handlers::workshop::Workshop;
use hookgate_workbench::replay::dry::dry;
use hookgate_workbench::replay::judge::Rules;
use std::path::Path;
use std::sync::Arc;

/// Loads one set, or two that are compared.
pub(super) fn load(args: &ReplayArgs) -> Result<Vec<Rules>, Failure> {
    let workshop =
        workshop(Commands::default(), crate::agent::judges(args.config.clone()), Spending::default());
    let workshop = if args.live { workshop } else { dry(workshop) };
    let sets = std::iter::once(args.hooks.as_deref()).chain(args.against.as_deref().map(Some));
    sets.map(|dir| one(args, dir, workshop.clone())).collect()
}

fn one(args: &ReplayArgs, dir: Option<&Path>, workshop: Workshop) -> Result<Rules, Failure> {
    let file = match (&args.config, dir) {
        (None, Some(_)) => ConfigFile::default(),
        (named, _) => crate::commands::configuration(named.as_deref())?,
    };
    let on_invalid = file.hooks.on_invalid.unwrap_or(OnInvalid::Refuse);
    let sources = sources(file, dir, args.trusted, workshop)?;
    Rules::new(sources.load(), on_invalid, Arc::new(TokioTimer::new())).map_err(Failure::Hooks)
}

fn sources(
    file: ConfigFile,
    dir: Option<&Path>,
    trusted: bool,
    workshop: Workshop,
) -> Result<Sources, Failure> {
    let place = file.path.as_deref().unwrap_or(Path::new("hookgate.toml")).display().to_string();
    let mut sources = Sources::new(workshop);
    for (name, settings) in file.builtin.0 {
        sources = sources.with_builtin(&name, settings, &place);
    }
    if let Some(dir) = &file.hooks.trusted_dir {
        sources = sources.with_folder(HookFolder::of_operator(dir));
    }
    let dir = dir.map(Path::to_owned).or(file.hooks.dir);
    if let Some(dir) = folder::resolve(dir, std::env::var_os(HOOKS_DIR_VARIABLE)) {
        sources =
            sources.with_folder(if trusted { HookFolder::of_operator(dir) } else { HookFolder::new(dir) });
    }
    if sources.is_empty() {
        return Err(Failure::new(format!(
            "which hooks? give --hooks, or set `dir` under [hooks] in hookgate.toml, or {HOOKS_DIR_VARIABLE}"
        )));
    }
    Ok(sources)
}
