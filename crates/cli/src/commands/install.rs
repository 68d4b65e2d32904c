//! `hookgate install AGENT`, `hookgate uninstall AGENT`: wires a coding agent by its own settings, and takes that away.

use crate::args::{InstallArgs, UninstallArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::install::files::{self, Change};
use crate::install::line::Line;
use crate::install::place::{self, Found};
use crate::install::{diff, plan};
use crate::{problems, sources, terminal};
use hookgate_agents::agent::Agent;
use hookgate_agents::table;
use std::io::{self, Write};

pub(super) fn install(args: &InstallArgs) -> Result<Exit, Failure> {
    let found = place::find(agent(&args.agent)?, &args.place)?;
    let line = Line::new(&args.rules)?;
    let changes = plan::install(&found, &line)?;
    if args.place.dry_run {
        return show(&changes);
    }
    make(&changes)?;
    let mut text = match changes.is_empty() {
        true => format!("{} is wired already: {}\n", found.agent.name(), found.path.display()),
        false => format!("wired {}: {}\n", found.agent.name(), found.path.display()),
    };
    for sentence in found.setup.then {
        text.push_str(&format!("note: {sentence}\n"));
    }
    text.push_str(&hooks_with_problems(args));
    text.push_str(&off(&found)?);
    print(&text)
}

pub(super) fn uninstall(args: &UninstallArgs) -> Result<Exit, Failure> {
    let found = place::find(agent(&args.agent)?, &args.place)?;
    let changes = plan::uninstall(&found)?;
    if args.place.dry_run {
        return show(&changes);
    }
    make(&changes)?;
    let (name, path) = (found.agent.name(), found.path.display());
    print(&match changes.is_empty() {
        true => format!("{name} is not wired: {path}\n"),
        false => format!("took hookgate out of {name}: {path}\n"),
    })
}

pub(super) fn agent(name: &str) -> Result<&'static dyn Agent, Failure> {
    table::find(name)
        .ok_or_else(|| Failure::new(format!("unknown agent `{name}`; expected one of {}", table::names())))
}

/// The settings that switch hooks off, if one is set.
fn off(found: &Found) -> Result<String, Failure> {
    let mut text = String::new();
    for switch in found.setup.switches {
        // a file that cannot be read is the agent's own trouble, and `doctor` tells of it
        if plan::is_off(switch).unwrap_or(false) {
            let (keys, path) = (switch.keys.join("."), switch.path);
            text.push_str(&format!("warning: `{keys}` in {path} switches all hooks off\n"));
        }
    }
    Ok(text)
}

/// A broken hook blocks every gate of the agent from the first call on; better to hear of it now.
fn hooks_with_problems(args: &InstallArgs) -> String {
    let folder = crate::args::FolderArgs {
        dir: args.rules.hooks.clone(),
        json: false,
        config: args.rules.config.clone(),
    };
    match sources::of(&folder) {
        Ok(sources) => {
            let loaded = sources.load();
            if loaded.problems.is_empty() {
                return String::new();
            }
            format!(
                "{}warning: until this is mended, everything that can be blocked is\n",
                problems::text(&loaded.problems)
            )
        }
        Err(failure) => {
            format!("warning: {failure}; until this is mended, everything that can be blocked is\n")
        }
    }
}

fn make(changes: &[Change]) -> Result<(), Failure> {
    changes.iter().try_for_each(Change::make)
}

fn show(changes: &[Change]) -> Result<Exit, Failure> {
    // the copy that is kept says nothing new
    let settings = changes.iter().filter(|change| !files::is_kept(&change.path));
    print(&settings.map(diff::of).collect::<String>())
}

pub(super) fn print(text: &str) -> Result<Exit, Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(terminal::printable(text, terminal::is_terminal(&stdout)).as_bytes())?;
    Ok(Exit::Done)
}
