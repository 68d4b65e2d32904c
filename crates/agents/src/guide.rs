//! The page of an agent, made from what its file says.

use crate::agent::Agent;
use crate::event::{Effect, Event};
use crate::setup::{Level, Setup, Shape};
use std::fmt::Write;

/// The page in Markdown.
pub fn page(agent: &dyn Agent) -> String {
    let mut text = format!(
        "# {}\n\n<!-- made from crates/agents; `HOOKGATE_UPDATE=1 cargo test -p hookgate-agents` writes it anew -->\n\nStands on: {}.\n\n",
        agent.title(),
        agent.evidence()
    );
    // writing to a String cannot fail
    let _ = wiring(&mut text, agent);
    let _ = events(&mut text, agent);
    let _ = tools(&mut text, agent);
    let _ = faults(&mut text, agent);
    text
}

fn wiring(text: &mut String, agent: &dyn Agent) -> std::fmt::Result {
    let Some(setup) = agent.setup() else {
        return writeln!(text, "Not wired by `hookgate install`; see the notes below.\n");
    };
    let name = agent.name();
    writeln!(text, "    hookgate install {name} --hooks DIR\n")?;
    writeln!(text, "| level | file |\n|---|---|")?;
    for place in setup.places {
        let flag = match place.level {
            Level::User => "`--user` (default)",
            Level::Project => "`--project`",
            Level::Managed => "`--managed`",
        };
        writeln!(text, "| {flag} | `{}` |", place.path)?;
    }
    writeln!(text)?;
    for sentence in setup.then {
        writeln!(text, "After an installation: {sentence}.\n")?;
    }
    Ok(())
}

fn events(text: &mut String, agent: &dyn Agent) -> std::fmt::Result {
    writeln!(text, "## Events\n\n| {} | is | wired | an answer can |\n|---|---|---|---|", agent.title())?;
    for event in agent.events() {
        let effects: Vec<&str> =
            Effect::ALL.iter().filter(|effect| event.can(**effect)).map(|e| e.as_str()).collect();
        let effects = if effects.is_empty() { "–".to_owned() } else { effects.join(", ") };
        let wired = if event.installed && agent.setup().is_some() { "yes" } else { "no" };
        writeln!(text, "| `{}` | {} | {wired} | {effects} |", event.name, meaning(event))?;
    }
    writeln!(
        text,
        "\nEvents without a name in `code` in the second column have no point of ours: they pass in silence.\n"
    )
}

fn meaning(event: &Event) -> String {
    match event.point {
        Some(point) if point.to_string() == event.means => format!("`{point}`"),
        Some(point) => format!("`{point}` ({})", event.means),
        None => event.means.to_owned(),
    }
}

fn tools(text: &mut String, agent: &dyn Agent) -> std::fmt::Result {
    writeln!(
        text,
        "## Tools\n\nA matcher sees both names. Other tools keep their own.\n\n| ours | {} |\n|---|---|",
        agent.title()
    )?;
    let mut seen: Vec<&str> = Vec::new();
    for (_, tool) in agent.tools() {
        let ours = tool.as_str();
        if seen.contains(&ours) {
            continue;
        }
        seen.push(ours);
        let theirs = agent.tools().iter().filter(|(_, other)| other.as_str() == ours);
        let theirs: Vec<String> = theirs.map(|(name, _)| format!("`{name}`")).collect();
        writeln!(text, "| `{ours}` | {} |", theirs.join(" "))?;
    }
    writeln!(text)
}

fn faults(text: &mut String, agent: &dyn Agent) -> std::fmt::Result {
    writeln!(text, "## What to expect\n")?;
    for note in agent.notes() {
        writeln!(text, "- {note}")?;
    }
    if let Some(setup) = agent.setup() {
        writeln!(text, "- {}", own_switch(setup))?;
    }
    writeln!(
        text,
        "- A payload that cannot be read, hooks that are missing or broken, a hook that is late, a crash: each is a block with its reason at every event that can be blocked, before the agent's own limit is over."
    )
}

fn own_switch(setup: &Setup) -> String {
    let closed = match &setup.shape {
        Shape::Grouped(entry) | Shape::Flat(entry) | Shape::Named(entry) => entry.closed,
        Shape::Programs | Shape::Plugin { .. } => None,
    };
    match (closed, &setup.shape) {
        (Some((key, _)), _) => format!("The agent's own fail-closed switch (`{key}`) is set in every entry."),
        (None, Shape::Plugin { .. }) => {
            "The plugin stops a call as well when the program fails, is killed or is late.".to_owned()
        }
        (None, _) => "The agent has no fail-closed switch that could be set.".to_owned(),
    }
}
