//! Antigravity CLI: a decision is required; without one the agent asks or refuses.

use crate::agent::Agent;
use crate::event::{Effect, Event, at};
use crate::fields::{Fields, Parts, first, text};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value, json};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Antigravity;

const EVENTS: &[Event] =
    &[at("PreToolUse", Point::PreToolUse, &[Effect::Block, Effect::Ask, Effect::ChangeInput])];

const TOOLS: &[(&str, Tool)] = &[
    ("run_command", Tool::Exec),
    ("write_to_file", Tool::WriteFile),
    ("replace_file_content", Tool::EditFile),
    ("view_file", Tool::ReadFile),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.gemini/config/hooks.json" },
        Place { level: Level::Project, path: ".agents/hooks.json" },
    ],
    shape: Shape::Named(Entry::COMMAND),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for Antigravity {
    fn name(&self) -> &'static str {
        "antigravity"
    }

    fn title(&self) -> &'static str {
        "Antigravity CLI"
    }

    fn evidence(&self) -> &'static str {
        "1.4.3, from others' notes and documentation, not run"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields =
            Fields { event: &["hookEventName"], session: &["conversationId"], ..Fields::CLAUDE };
        &FIELDS
    }

    fn guess(&self, payload: &Value) -> Option<&'static str> {
        payload.get("toolCall").map(|_| "PreToolUse")
    }

    fn parts(&self, _event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        let call = payload.get("toolCall").unwrap_or(&Value::Null);
        parts.tool = text(call, &["name"]);
        parts.input = first(call, &["args"]).cloned().unwrap_or_default();
        parts.cwd = payload.pointer("/workspacePaths/0").and_then(Value::as_str).map(str::to_owned);
        Ok(parts)
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "Only the event before a tool is known; the payload does not name it, so the line does.",
            "One mistake anywhere in its hooks.json makes it drop the whole file.",
            "`allow` here means: on to the next hook or the agent's own policy.",
        ]
    }

    fn say(&self, _event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        let mut top = Map::new();
        let (word, reason) = match &outcome.word {
            Word::Nothing => ("allow", "no objection"),
            Word::Block(reason) => ("deny", reason.as_str()),
            Word::Ask(reason) => ("force_ask", reason.as_str()),
        };
        top.insert("decision".into(), word.into());
        top.insert("reason".into(), reason.into());
        if let Some(input) = &outcome.input {
            top.insert("overwrite".into(), input.clone());
        }
        Said::json(&Value::Object(top))
    }

    fn no(&self, reason: &str) -> Said {
        Said::json(&json!({"decision": "deny", "reason": reason}))
    }
}
