//! OpenClaw: plugins only. Understood for a plugin that hands its events to us; it is not wired by an installation.

use crate::agent::Agent;
use crate::event::{Effect, Event, at};
use crate::fields::Fields;
use crate::outcome::{Outcome, Said, Word};
use crate::read::Read;
use crate::speech::{BLOCK, END};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value, json};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct OpenClaw;

const EVENTS: &[Event] = &[
    at("before_tool_call", Point::PreToolUse, &[Effect::Block, Effect::Ask, Effect::ChangeInput]),
    at("after_tool_call", Point::PostToolUse, &[]),
    at("before_agent_run", Point::UserPromptSubmit, BLOCK),
    at("message_sending", Point::PreResponse, &[Effect::Block, Effect::ChangeText]),
    at("before_agent_finalize", Point::Stop, END),
    at("session_start", Point::SessionStart, &[]),
    at("session_end", Point::SessionEnd, &[]),
];

const TOOLS: &[(&str, Tool)] = &[
    ("exec", Tool::Exec),
    ("bash", Tool::Exec),
    ("write", Tool::WriteFile),
    ("edit", Tool::EditFile),
    ("apply_patch", Tool::Patch),
    ("read", Tool::ReadFile),
    ("web_fetch", Tool::FetchPage),
    ("web_search", Tool::WebSearch),
    ("sessions_spawn", Tool::Subagent),
];

impl Agent for OpenClaw {
    fn name(&self) -> &'static str {
        "openclaw"
    }

    fn title(&self) -> &'static str {
        "OpenClaw"
    }

    fn evidence(&self) -> &'static str {
        "2026.9.6, documentation and types, not run"
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
        const FIELDS: Fields = Fields {
            event: &[],
            session: &["sessionId", "sessionKey", "runId"],
            tool: &["toolName"],
            input: &["params"],
            output: &["result"],
            call: &["toolCallId"],
            answer: &["content", "lastAssistantMessage"],
            turn: &["runId"],
            inside: &[],
            went_on: &["stopHookActive"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(15)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "It has no hook programs: a plugin must start `hookgate hook openclaw EVENT`, hand it the event as JSON and return the printed object. A plugin that throws or is late at `before_tool_call` or `before_agent_run` stops the call by the agent's own rule.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        let mut top = Map::new();
        match &outcome.word {
            Word::Nothing => {}
            Word::Block(reason) if event.point == Some(Point::Stop) => {
                top.insert("action".into(), "revise".into());
                top.insert("reason".into(), reason.as_str().into());
            }
            Word::Block(_) if event.point == Some(Point::PreResponse) => {
                top.insert("cancel".into(), true.into());
            }
            Word::Block(reason) => {
                top.insert("block".into(), true.into());
                top.insert("blockReason".into(), reason.as_str().into());
            }
            Word::Ask(reason) => {
                top.insert(
                    "requireApproval".into(),
                    json!({"title": "Needs a person", "description": reason}),
                );
            }
        }
        if let Some(input) = &outcome.input {
            top.insert("params".into(), input.clone());
        }
        if let Some(text) = &outcome.text {
            top.insert("content".into(), text.as_str().into());
        }
        let watched = event.effects.is_empty();
        if watched { Said::nothing() } else { Said::json(&Value::Object(top)) }
    }

    fn no(&self, reason: &str) -> Said {
        Said::json(&json!({"block": true, "blockReason": reason}))
    }
}
