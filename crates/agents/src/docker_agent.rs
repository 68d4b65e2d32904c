//! docker-agent: Claude Code's answers in snake case.

use crate::agent::Agent;
use crate::event::{Event, at};
use crate::fields::{Fields, Parts};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::speech::{AFTER, CONTEXT, GATE, PROMPT};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct DockerAgent;

const EVENTS: &[Event] = &[
    at("pre_tool_use", Point::PreToolUse, GATE),
    at("post_tool_use", Point::PostToolUse, AFTER),
    at("tool_response_transform", Point::PostToolUse, &[]).spare(),
    at("user_prompt_submit", Point::UserPromptSubmit, PROMPT),
    at("session_start", Point::SessionStart, CONTEXT),
    at("stop", Point::Stop, &[]),
    at("session_end", Point::SessionEnd, &[]),
];

const TOOLS: &[(&str, Tool)] = &[
    ("shell", Tool::Exec),
    ("write_file", Tool::WriteFile),
    ("edit_file", Tool::EditFile),
    ("read_file", Tool::ReadFile),
    ("fetch", Tool::FetchPage),
    ("transfer_task", Tool::Subagent),
];

impl Agent for DockerAgent {
    fn name(&self) -> &'static str {
        "docker-agent"
    }

    fn title(&self) -> &'static str {
        "docker-agent"
    }

    fn evidence(&self) -> &'static str {
        "mid-2026, documentation, not run"
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
        const FIELDS: Fields = Fields { answer: &["stop_response"], ..Fields::CLAUDE };
        &FIELDS
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        if payload.get("tool_error") == Some(&Value::Bool(true)) {
            parts.error = Some(parts.output.as_str().map_or_else(|| parts.output.to_string(), str::to_owned));
        }
        // the same result comes at post_tool_use
        parts.idle = event.name == "tool_response_transform";
        Ok(parts)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "Its settings are YAML and not written by an installation. Put `{type: command, command: hookgate hook docker-agent pre_tool_use, on_error: block}` under `agents.<name>.hooks.pre_tool_use`, and so on for the other events.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        let mut top = Map::new();
        let mut inner = Map::new();
        match &outcome.word {
            Word::Nothing => {}
            Word::Block(reason) | Word::Ask(reason) if event.point == Some(Point::PreToolUse) => {
                let word = if matches!(outcome.word, Word::Ask(_)) { "ask" } else { "deny" };
                inner.insert("permission_decision".into(), word.into());
                inner.insert("permission_decision_reason".into(), reason.as_str().into());
            }
            Word::Block(reason) | Word::Ask(reason) => {
                top.insert("decision".into(), "block".into());
                top.insert("reason".into(), reason.as_str().into());
            }
        }
        if let Some(input) = &outcome.input {
            inner.insert("permission_decision".into(), "allow".into());
            inner.insert("updated_input".into(), input.clone());
        }
        if let Some(context) = outcome.joined_context() {
            inner.insert("additional_context".into(), context.into());
        }
        if !inner.is_empty() {
            inner.shift_insert(0, "hook_event_name".into(), event.name.into());
            top.insert("hook_specific_output".into(), Value::Object(inner));
        }
        Said::json(&Value::Object(top))
    }
}
