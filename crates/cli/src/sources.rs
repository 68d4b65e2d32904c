//! The hooks that `list` and `check` are about: those of a folder, or all that the configuration loads.

use crate::args::FolderArgs;
use crate::config::ConfigFile;
use crate::failure::Failure;
use crate::workshop::workshop;
use hookgate_handlers::command::Commands;
use hookgate_handlers::folder::{self, HOOKS_DIR_VARIABLE, HookFolder};
use hookgate_handlers::prompt::{Judge, Spending};
use hookgate_handlers::sources::Sources;
use hookgate_llm::Scripted;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Finds them. A folder that cannot be read is a failure, not a problem in it.
pub(crate) fn of(args: &FolderArgs) -> Result<Sources, Failure> {
    // which model judges is a matter of the door that will use the hooks, not of the hooks
    let judges =
        Arc::new(|_: Option<&str>| Ok(Judge { model: Arc::new(Scripted::demo()), name: String::new() }));
    let sources = Sources::new(workshop(Commands::default(), judges, Spending::default()));
    match &args.dir {
        Some(dir) => Ok(sources.with_folder(HookFolder::new(readable(dir)?))),
        None => {
            let file = super::commands::configuration(args.config.as_deref())?;
            configured(sources, file).map(|(sources, _)| sources)
        }
    }
}

/// All that a configuration loads, and the folders among it.
pub(crate) fn configured(mut sources: Sources, file: ConfigFile) -> Result<(Sources, Vec<PathBuf>), Failure> {
    let mut folders = Vec::new();
    let place = file.path.as_deref().unwrap_or(Path::new("hookgate.toml")).display().to_string();
    for (name, settings) in file.builtin.0 {
        sources = sources.with_builtin(&name, settings, &place);
    }
    if let Some(dir) = &file.hooks.trusted_dir {
        sources = sources.with_folder(HookFolder::of_operator(readable(dir)?));
        folders.push(dir.clone());
    }
    if let Some(dir) = folder::resolve(file.hooks.dir, std::env::var_os(HOOKS_DIR_VARIABLE)) {
        sources = sources.with_folder(HookFolder::new(readable(&dir)?));
        folders.push(dir);
    }
    if sources.is_empty() {
        return Err(Failure::new(format!(
            "which folder? give one, or set `dir` under [hooks] in hookgate.toml, or {HOOKS_DIR_VARIABLE}"
        )));
    }
    Ok((sources, folders))
}

/// The folder, if it can be read.
pub(crate) fn readable(dir: &Path) -> Result<&Path, Failure> {
    std::fs::read_dir(dir)
        .map(|_| dir)
        .map_err(|error| Failure::new(format!("the hooks folder {} cannot be read: {error}", dir.display())))
}
