//! Kiro CLI 2 and Amazon Q Developer CLI: exit codes only, and only before a tool do they mean anything.

use crate::agent::Agent;
use crate::event::{Event, at};
use crate::fields::{Fields, Parts, first};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape};
use crate::speech::{BLOCK, CONTEXT};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Kiro;

const EVENTS: &[Event] = &[
    at("preToolUse", Point::PreToolUse, BLOCK),
    at("postToolUse", Point::PostToolUse, &[]),
    at("userPromptSubmit", Point::UserPromptSubmit, CONTEXT),
    at("agentSpawn", Point::SessionStart, CONTEXT),
    at("stop", Point::Stop, &[]),
];

const TOOLS: &[(&str, Tool)] = &[
    ("execute_bash", Tool::Exec),
    ("shell", Tool::Exec),
    ("fs_write", Tool::WriteOrEdit),
    ("write", Tool::WriteOrEdit),
    ("fs_read", Tool::ReadFile),
    ("read", Tool::ReadFile),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.kiro/agents/default.json" },
        Place { level: Level::Project, path: ".kiro/agents/default.json" },
    ],
    shape: Shape::Flat(Entry { timeout: Some(("timeout_ms", 1000)), typed: false, ..Entry::COMMAND }),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[
        "kiro reads hooks from the agent that runs: give its file with --file if it is not the default agent",
    ],
};

impl Agent for Kiro {
    fn name(&self) -> &'static str {
        "kiro"
    }

    fn title(&self) -> &'static str {
        "Kiro CLI 2, Amazon Q Developer CLI"
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

    fn fails_with_results(&self) -> bool {
        true
    }

    fn fields(&self) -> &'static Fields {
        &Fields::CLAUDE
    }

    fn parts(&self, _event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        if parts.output.get("success") == Some(&Value::Bool(false)) {
            parts.error =
                Some(first(&parts.output, &["result", "error"]).map(Value::to_string).unwrap_or_default());
        }
        // creating a file is writing a whole one
        let writes = first(&parts.input, &["command"]).is_some_and(|word| word == "create");
        if writes && matches!(parts.tool.as_deref(), Some("fs_write" | "write")) {
            parts.kind = Some(Tool::WriteWithWord);
        }
        Ok(parts)
    }

    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        tool.strip_prefix('@')?.split_once('/')
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "Only `preToolUse` can stop something: by exit code 2, with the reason on standard error. JSON means nothing here.",
            "Payloads name no session: all events count as one session per working directory and process tree, and are called `unknown` in the trail.",
            "Kiro CLI 3 keeps its hooks in `.kiro/hooks/*.json`, and what it hands to a program is not documented; it is not wired.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        match &outcome.word {
            Word::Block(reason) | Word::Ask(reason) => Said::refusal(reason),
            Word::Nothing => match outcome.joined_context() {
                Some(context) if event.can(crate::event::Effect::AddContext) => {
                    Said { stdout: context, ..Said::default() }
                }
                _ => Said::nothing(),
            },
        }
    }
}
