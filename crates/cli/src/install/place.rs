//! Where an agent's settings are.

use crate::args::PlaceArgs;
use crate::failure::Failure;
use hookgate_agents::agent::Agent;
use hookgate_agents::setup::{Level, Place, Setup};
use std::path::{Path, PathBuf};

/// Variables that move an agent's own folder.
const MOVED: &[(&str, &str)] =
    &[("~/.claude", "CLAUDE_CONFIG_DIR"), ("~/.codex", "CODEX_HOME"), ("~/.config", "XDG_CONFIG_HOME")];

/// A settings file of an agent.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) agent: &'static dyn Agent,
    pub(crate) setup: &'static Setup,
    pub(crate) path: PathBuf,
}

/// The level that flags ask for.
pub(crate) fn level(args: &PlaceArgs) -> Level {
    match (args.project, args.managed) {
        (true, _) => Level::Project,
        (_, true) => Level::Managed,
        _ => Level::User,
    }
}

/// The file that flags ask for.
pub(crate) fn find(agent: &'static dyn Agent, args: &PlaceArgs) -> Result<Found, Failure> {
    let name = agent.name();
    let setup = agent.setup().ok_or_else(|| {
        Failure::new(format!(
            "{name} is not wired by a settings file; docs/agents/{name}.md says how it is done by hand"
        ))
    })?;
    if let Some(file) = &args.file {
        let path = std::path::absolute(file)
            .map_err(|error| Failure::new(format!("{}: {error}", file.display())))?;
        return Ok(Found { agent, setup, path });
    }
    let level = level(args);
    let place = setup.place(level).ok_or_else(|| {
        let word = match level {
            Level::User => "user",
            Level::Project => "project",
            Level::Managed => "managed",
        };
        Failure::new(format!("how {name} takes {word} settings is not known; give the file with --file"))
    })?;
    Ok(Found { agent, setup, path: located(place.path)? })
}

/// All files of all agents that settings can be in.
pub(crate) fn all() -> Vec<Found> {
    let places = |agent: &'static dyn Agent| {
        let setup = agent.setup();
        setup.into_iter().flat_map(move |setup| {
            let found = move |place: &'static Place| {
                located(place.path).ok().map(|path| Found { agent, setup, path })
            };
            setup.places.iter().filter_map(found)
        })
    };
    hookgate_agents::table::ALL.iter().flat_map(|agent| places(*agent)).collect()
}

/// A path as agents' files write it: from the home folder, the project, or the root.
pub(crate) fn located(path: &str) -> Result<PathBuf, Failure> {
    let moved = MOVED.iter().find_map(|(from, variable)| {
        let rest = path.strip_prefix(from)?.strip_prefix('/')?;
        let to = std::env::var_os(variable).filter(|value| !value.is_empty())?;
        Some(PathBuf::from(to).join(rest))
    });
    if let Some(path) = moved {
        return Ok(path);
    }
    if let Some(rest) = path.strip_prefix("~/") {
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty());
        let home = home.ok_or_else(|| Failure::new("the home folder is not known: HOME is not set"))?;
        return Ok(Path::new(&home).join(rest));
    }
    std::path::absolute(path).map_err(|error| Failure::new(format!("{path}: {error}")))
}
