//! `hookgate check [DIR]`: everything that would keep `chat` from using the folder, and what is probably not meant.
//!
//! Exit code 0: fine (warnings are allowed), 1: problems, 2: the folder cannot be read.

use crate::args::FolderArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{problems, sources, terminal};
use hookgate_agents::agent::Agent;
use hookgate_agents::event::{Can, Effect};
use hookgate_agents::tools::Tool;
use hookgate_core::define::{HookRef, Problem};
use hookgate_core::hook::Hook;
use hookgate_core::point::{Point, Stage};
use hookgate_handlers::folder::OnInvalid;
use serde::Serialize;
use std::io::{self, Write};

/// One line of the JSON form.
#[derive(Serialize)]
struct Finding<'a> {
    severity: &'static str,
    #[serde(flatten)]
    problem: &'a Problem,
}

pub(super) fn run(args: &FolderArgs) -> Result<Exit, Failure> {
    let loaded = sources::of(args)?.load();
    let n_hooks = loaded.hooks.len();
    let mut warnings = loaded.warnings.clone();
    if let Some(name) = &args.agent {
        let agent = super::install::agent(name)?;
        warnings.extend(loaded.hooks.iter().filter_map(|hook| beyond(agent, hook)));
    }
    // making the set finds what only all hooks together can have, such as patterns that are too many
    let (_, problems) = loaded.into_set(OnInvalid::Refuse);
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", json(&problems, &warnings)?)?;
    } else {
        let mut text = problems::text(&problems);
        text.push_str(&problems::warnings(&warnings));
        text.push_str(&summary(n_hooks, problems.len(), warnings.len()));
        stdout.write_all(terminal::printable(&text, terminal::is_terminal(&stdout)).as_bytes())?;
    }
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Problems })
}

/// What a hook wants and this agent cannot do.
fn beyond(agent: &'static dyn Agent, hook: &Hook) -> Option<Problem> {
    let (point, title) = (hook.listens.point(), agent.title());
    let can = |effect| agent.can(point, effect);
    // sub-agents are asked about when the tool that starts them is called, messages are told of with other events
    let starts_by_tool = agent.tools().iter().any(|(_, tool)| *tool == Tool::Subagent);
    let elsewhere = point == Point::Message || (point == Point::SubagentStart && starts_by_tool);
    let changes = !hook.mutable_fields.is_empty();
    let message = if elsewhere {
        None
    } else if can(Effect::Block) == Can::Never {
        Some(format!("{title} never tells of {point}: the hook never runs there"))
    } else if point.stage() == Stage::Gate && can(Effect::Block) == Can::No {
        Some(format!("{title} cannot be stopped at {point}: a block of the hook has no effect there"))
    } else if changes && can(Effect::ChangeInput) == Can::No {
        Some(format!("{title} cannot take over a changed input at {point}: the hook blocks there instead"))
    } else if changes && can(Effect::ChangeInput) == Can::Sometimes {
        Some(format!(
            "{title} takes over a changed input at some events of {point} only: elsewhere the hook blocks"
        ))
    } else if point == Point::PreResponse && can(Effect::ChangeText) == Can::No {
        Some(format!("{title} cannot change an answer: what the hook adds is lost there"))
    } else {
        None
    };
    message.map(|message| Problem {
        hook: Some(HookRef { index: hook.index, label: Some(hook.name.to_string()) }),
        ..Problem::of_file(&hook.file, message)
    })
}

fn json(problems: &[Problem], warnings: &[Problem]) -> Result<String, Failure> {
    let error = problems.iter().map(|problem| Finding { severity: "error", problem });
    let warning = warnings.iter().map(|problem| Finding { severity: "warning", problem });
    let findings: Vec<Finding<'_>> = error.chain(warning).collect();
    serde_json::to_string_pretty(&findings)
        .map_err(|error| Failure::new(format!("the problems cannot be written: {error}")))
}

/// `3 hooks can be read, 1 problem, no warnings`
fn summary(n_hooks: usize, n_problems: usize, n_warnings: usize) -> String {
    let count = |n: usize, what: &str| match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let hooks = count(n_hooks, "good hook");
    format!("{hooks}, {}, {}\n", count(n_problems, "problem"), count(n_warnings, "warning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts() {
        assert_eq!(summary(1, 0, 2), "1 good hook, no problems, 2 warnings\n");
    }
}
