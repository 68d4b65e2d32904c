//! Grok CLI: five seconds, and a refusal that older builds understand as well.

use crate::agent::Agent;
use crate::event::{Effect, Event, at};
use crate::fields::{Fields, Parts};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value, json};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Grok;

const EVENTS: &[Event] = &[at(
    "PreToolUse",
    Point::PreToolUse,
    &[Effect::Block, Effect::Ask, Effect::ChangeInput, Effect::AddContext],
)];

const TOOLS: &[(&str, Tool)] = &[
    ("run_terminal_command", Tool::Exec),
    ("write_file", Tool::WriteFile),
    ("edit_file", Tool::EditFile),
    ("read_file", Tool::ReadFile),
];

static SETUP: Setup = Setup {
    places: &[Place { level: Level::User, path: "~/.grok/hooks/hookgate.json" }],
    shape: Shape::Grouped(Entry::COMMAND),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for Grok {
    fn name(&self) -> &'static str {
        "grok"
    }

    fn title(&self) -> &'static str {
        "Grok CLI"
    }

    fn evidence(&self) -> &'static str {
        "1.0.62, from others' notes, not run"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields {
            event: &["hook_event_name"],
            session: &["sessionId", "session_id"],
            tool: &["toolName", "tool_name"],
            input: &["toolInput", "tool_input"],
            call: &["toolUseId", "tool_use_id"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn parts(&self, _event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        if payload.get("toolInputTruncated") == Some(&Value::Bool(true)) {
            return Err(Unread::CutShort);
        }
        Ok(Parts::of(self.fields(), payload))
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(5)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "A refusal is said twice, as JSON and by exit code 2, because builds differ in what they read.",
            "An input that the agent shows only in part (`toolInputTruncated`) is stopped: no rule can judge it.",
            "It also loads Claude Code's settings; a call may be asked about by both entries.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        let mut top = Map::new();
        let mut inner = Map::new();
        match &outcome.word {
            Word::Nothing => {}
            Word::Block(reason) => {
                let document = json!({"decision": "deny", "reason": reason});
                return Said { stderr: reason.clone(), exit: 2, ..Said::json(&document) };
            }
            Word::Ask(reason) => {
                top.insert("decision".into(), "deny".into());
                top.insert("reason".into(), reason.as_str().into());
                inner.insert("permissionDecision".into(), "ask".into());
                inner.insert("permissionDecisionReason".into(), reason.as_str().into());
            }
        }
        if let Some(input) = &outcome.input {
            inner.insert("updatedInput".into(), input.clone());
        }
        if let Some(context) = outcome.joined_context() {
            inner.insert("additionalContext".into(), context.into());
        }
        if !inner.is_empty() {
            inner.shift_insert(0, "hookEventName".into(), event.name.into());
            top.insert("hookSpecificOutput".into(), Value::Object(inner));
        }
        if top.is_empty() { Said::nothing() } else { Said::json(&Value::Object(top)) }
    }

    fn no(&self, reason: &str) -> Said {
        let document = json!({"decision": "deny", "reason": reason});
        Said { stderr: reason.to_owned(), exit: 2, ..Said::json(&document) }
    }
}
