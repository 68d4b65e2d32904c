//! Cline CLI: exit codes mean nothing, and a plain refusal ends the whole run without telling the model why.

use crate::agent::Agent;
use crate::event::{Effect, Event, at};
use crate::fields::{Fields, Parts, first, text, unpacked};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Level, Place, Setup, Shape};
use crate::speech::BLOCK;
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Cline;

/// More context than this is refused.
const LONGEST_CONTEXT: usize = 50_000;

const EVENTS: &[Event] = &[
    at("PreToolUse", Point::PreToolUse, &[Effect::Block, Effect::ChangeInput, Effect::AddContext]),
    at("PostToolUse", Point::PostToolUse, &[Effect::Feedback, Effect::AddContext]),
    at("UserPromptSubmit", Point::UserPromptSubmit, BLOCK),
    at("TaskStart", Point::SessionStart, &[]),
    at("TaskResume", Point::SessionStart, &[]),
    at("TaskComplete", Point::Stop, &[]),
    at("TaskCancel", Point::Stop, &[]),
    at("TaskError", Point::Stop, &[]).meaning("stop_failure"),
    at("SessionShutdown", Point::SessionEnd, &[]),
];

/// How payloads call the events.
const HOOK_NAMES: &[(&str, &str)] = &[
    ("tool_call", "PreToolUse"),
    ("tool_result", "PostToolUse"),
    ("prompt_submit", "UserPromptSubmit"),
    ("agent_start", "TaskStart"),
    ("agent_resume", "TaskResume"),
    ("agent_end", "TaskComplete"),
    ("agent_abort", "TaskCancel"),
    ("agent_error", "TaskError"),
    ("session_shutdown", "SessionShutdown"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("run_commands", Tool::Exec),
    ("execute_command", Tool::Exec),
    ("editor", Tool::EditFile),
    ("write_to_file", Tool::WriteFile),
    ("replace_in_file", Tool::EditFile),
    ("read_files", Tool::ReadFile),
    ("read_file", Tool::ReadFile),
    ("search_codebase", Tool::Search),
    ("search_files", Tool::Search),
    ("fetch_web_content", Tool::FetchPage),
    ("spawn_agent", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.cline/hooks" },
        Place { level: Level::Project, path: ".cline/hooks" },
    ],
    shape: Shape::Programs,
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for Cline {
    fn name(&self) -> &'static str {
        "cline"
    }

    fn title(&self) -> &'static str {
        "Cline"
    }

    fn evidence(&self) -> &'static str {
        "CLI 3.0.65, run against a scripted model"
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
        const FIELDS: Fields = Fields { event: &[], session: &["taskId"], inside: &[], ..Fields::CLAUDE };
        &FIELDS
    }

    fn guess(&self, payload: &Value) -> Option<&'static str> {
        let name = payload.get("hookName")?.as_str()?;
        HOOK_NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours)
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        parts.cwd = payload.pointer("/workspaceInfo/rootPath").and_then(Value::as_str).map(str::to_owned);
        if let Some(parent) = text(payload, &["parent_agent_id"]) {
            parts.session = text(payload, &["agent_id"]).or(parts.session);
            parts.parent = Some(parent);
        }
        let call = first(payload, &["tool_call", "tool_result"]).unwrap_or(&Value::Null);
        let old = first(payload, &["preToolUse", "postToolUse"]).unwrap_or(&Value::Null);
        parts.call = text(call, &["id"]);
        parts.tool = text(call, &["name"]).or_else(|| text(old, &["toolName"]));
        parts.input = first(call, &["input"]).cloned().unwrap_or_else(|| {
            // older versions: texts only, with JSON in them
            let members = old.get("parameters").and_then(Value::as_object).cloned().unwrap_or_default();
            Value::Object(members.into_iter().map(|(name, value)| (name, unpacked(&value))).collect())
        });
        parts.output = first(call, &["output"]).or(first(old, &["result"])).cloned().unwrap_or_default();
        let failed = |item: &Value| item.get("success") == Some(&Value::Bool(false));
        let items = parts.output.as_array().map(Vec::as_slice).unwrap_or_default();
        if let Some(item) = items.iter().find(|item| failed(item)) {
            parts.error = Some(text(item, &["error", "result"]).unwrap_or_default());
        }
        parts.prompt = first(payload, &["userPromptSubmit"]).and_then(|inner| text(inner, &["prompt"]));
        parts.answer = payload.pointer("/turn/outputText").and_then(Value::as_str).map(str::to_owned);
        // the editor writes whole files where it is given no old text
        let partial = first(&parts.input, &["old_text", "insert_line"]).is_some();
        if parts.tool.as_deref() == Some("editor") && event.point.is_some() && !partial {
            parts.kind = Some(Tool::WriteFile);
        }
        Ok(parts)
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(30)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "A refusal (`cancel`) ends the whole run and the model never reads why. So a refused shell call is replaced by a harmless one that prints the reason, and the run goes on; every other call is refused with `cancel`.",
            "A run without a terminal fires no prompt event, and `TaskStart` cannot be refused.",
            "A turn cannot be made to go on.",
            "A call may hold several shell lines: `command` holds them all, a line each.",
            "A shell line that fails is told as `tool_error`, although the payload says `success`.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, read: Option<&Read>) -> Said {
        let mut top = Map::new();
        match &outcome.word {
            Word::Block(reason) | Word::Ask(reason) => {
                match read.and_then(|read| spoken(event, read, reason)) {
                    Some(input) => {
                        top.insert("cancel".into(), false.into());
                        top.insert("overrideInput".into(), input);
                    }
                    None => {
                        top.insert("cancel".into(), true.into());
                        top.insert("errorMessage".into(), reason.as_str().into());
                    }
                }
            }
            Word::Nothing => {
                top.insert("cancel".into(), false.into());
                if let Some(input) = &outcome.input {
                    top.insert("overrideInput".into(), input.clone());
                }
            }
        }
        if let Some(context) = outcome.joined_context() {
            top.insert("context".into(), context.chars().take(LONGEST_CONTEXT).collect::<String>().into());
        }
        Said::json(&Value::Object(top))
    }

    fn no(&self, reason: &str) -> Said {
        Said::json(&serde_json::json!({"cancel": true, "errorMessage": reason}))
    }
}

/// A shell call that does nothing but say why the wanted one was refused.
fn spoken(event: &Event, read: &Read, reason: &str) -> Option<Value> {
    let is_shell = read.tool_names.first().is_some_and(|name| name == "run_commands");
    if event.name != "PreToolUse" || !is_shell {
        return None;
    }
    // one argument in single quotes: nothing in it means anything to a shell
    let plain: String = reason.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let quoted = plain.replace('\'', r"'\''");
    Some(serde_json::json!({"commands": [format!("printf '%s\\n' '{quoted}'")]}))
}
