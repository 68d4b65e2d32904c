//! VS Code's own harness, which is being retired; newer builds speak as GitHub Copilot CLI does.

use crate::agent::Agent;
use crate::event::other;
use crate::event::{Event, at};
use crate::fields::Fields;
use crate::outcome::{Outcome, Said};
use crate::read::Read;
use crate::setup::{Entry, Level, Place, Setup, Shape};
use crate::speech::{AFTER, CONTEXT, END, GATE, Manner, say};
use crate::tools::Tool;
use hookgate_core::point::Point;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct VsCode;

const EVENTS: &[Event] = &[
    at("PreToolUse", Point::PreToolUse, GATE),
    at("PostToolUse", Point::PostToolUse, AFTER),
    at("UserPromptSubmit", Point::UserPromptSubmit, &[]),
    at("SessionStart", Point::SessionStart, CONTEXT),
    at("Stop", Point::Stop, END),
    at("SubagentStop", Point::SubagentStop, END),
    at("SubagentStart", Point::SubagentStart, CONTEXT).spare(),
    other("PreCompact", "pre_compact"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("runTerminalCommand", Tool::Exec),
    ("createFile", Tool::WriteFile),
    ("editFiles", Tool::EditFile),
    ("readFile", Tool::ReadFile),
    ("fetch", Tool::FetchPage),
    ("runSubagent", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[Place { level: Level::Project, path: ".github/hooks/hookgate-vscode.json" }],
    shape: Shape::Flat(Entry::COMMAND),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for VsCode {
    fn name(&self) -> &'static str {
        "vscode"
    }

    fn title(&self) -> &'static str {
        "VS Code (local harness)"
    }

    fn evidence(&self) -> &'static str {
        "documentation, not run"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields {
            event: &["hookEventName", "hook_event_name"],
            session: &["sessionId", "session_id"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "Newer builds take the hooks of GitHub Copilot CLI: install `copilot-cli` there.",
            "A prompt can be watched, not stopped.",
            "A changed input goes out with `allow`; nothing else is documented.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        say(Manner { change_needs_allow: true, stop_inside: true }, event, outcome)
    }
}
