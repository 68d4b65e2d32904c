//! Cursor: an explicit word at events that ask for permission; an empty or strange answer there is a refusal.

use crate::agent::Agent;
use crate::event::{Effect, Event, at, other};
use crate::fields::{Fields, Parts, first, text, unpacked};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Closed, Entry, Level, Place, Setup, Shape};
use crate::speech::{BLOCK, CONTEXT, END, PROMPT};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value, json};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Cursor;

const ASKS: &[Effect] = &[Effect::Block, Effect::Ask];

const EVENTS: &[Event] = &[
    at("preToolUse", Point::PreToolUse, &[Effect::Block, Effect::ChangeInput, Effect::AddContext]),
    at("beforeReadFile", Point::PreToolUse, BLOCK),
    at("beforeShellExecution", Point::PreToolUse, ASKS).spare(),
    at("beforeMCPExecution", Point::PreToolUse, ASKS).spare(),
    at("postToolUse", Point::PostToolUse, CONTEXT),
    at("postToolUseFailure", Point::ToolError, CONTEXT),
    at("afterShellExecution", Point::PostToolUse, &[]).spare(),
    at("afterMCPExecution", Point::PostToolUse, &[]).spare(),
    at("afterFileEdit", Point::PostToolUse, &[]).spare(),
    at("beforeSubmitPrompt", Point::UserPromptSubmit, PROMPT),
    at("sessionStart", Point::SessionStart, CONTEXT),
    at("sessionEnd", Point::SessionEnd, &[]),
    at("stop", Point::Stop, END),
    at("afterAgentResponse", Point::Message, &[]),
    at("afterAgentThought", Point::Message, &[]).spare(),
    at("subagentStart", Point::SubagentStart, BLOCK),
    at("subagentStop", Point::SubagentStop, END),
    other("preCompact", "pre_compact"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("Shell", Tool::Exec),
    ("Write", Tool::WriteFile),
    ("Edit", Tool::EditFile),
    ("StrReplace", Tool::EditFile),
    ("Read", Tool::ReadFile),
    ("Grep", Tool::Search),
    ("Fetch", Tool::FetchPage),
    ("Task", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.cursor/hooks.json" },
        Place { level: Level::Project, path: ".cursor/hooks.json" },
        Place { level: Level::Managed, path: "/etc/cursor/hooks.json" },
    ],
    shape: Shape::Flat(Entry {
        typed: false,
        closed: Some(("failClosed", Closed::True)),
        version: Some(1),
        ..Entry::COMMAND
    }),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Cursor {
    /// Whether an event asks for permission: then the word must be there.
    fn asks(event: &Event) -> bool {
        event.point == Some(Point::PreToolUse) || event.point == Some(Point::SubagentStart)
    }
}

impl Agent for Cursor {
    fn name(&self) -> &'static str {
        "cursor"
    }

    fn title(&self) -> &'static str {
        "Cursor"
    }

    fn evidence(&self) -> &'static str {
        "SDK 1.0.32, the published program was read, not run"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields {
            session: &["conversation_id", "session_id"],
            output: &["tool_output", "output", "result_json"],
            error: &["error_message"],
            answer: &["text"],
            turn: &["generation_id"],
            inside: &[],
            went_on: &["loop_count"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        let members = |names: &[&str]| {
            let found =
                names.iter().filter_map(|name| Some(((*name).to_owned(), payload.get(name)?.clone())));
            Value::Object(found.collect::<Map<String, Value>>())
        };
        match event.name {
            "beforeShellExecution" | "afterShellExecution" => {
                parts.tool = Some("Shell".into());
                parts.input = members(&["command", "cwd"]);
            }
            "beforeReadFile" => {
                parts.tool = Some("Read".into());
                parts.input = members(&["file_path", "content", "attachments"]);
            }
            "afterFileEdit" => {
                parts.tool = Some("Edit".into());
                parts.input = members(&["file_path", "edits"]);
            }
            "beforeMCPExecution" | "afterMCPExecution" => {
                parts.mcp = Some((text(payload, &["mcp_server_name"]), parts.tool.clone()));
            }
            "subagentStop" => parts.answer = text(payload, &["summary"]),
            _ => {}
        }
        parts.output = unpacked(&parts.output);
        // an edit is a Write that brings old and new text
        let edits = ["old_string", "edits"].iter().any(|name| first(&parts.input, &[name]).is_some());
        if parts.tool.as_deref() == Some("Write") && edits {
            parts.kind = Some(Tool::EditFile);
        }
        Ok(parts)
    }

    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        // the server is not named before a tool
        tool.strip_prefix("MCP:").map(|tool| ("", tool))
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "`preToolUse` is wired for every tool. `beforeShellExecution` and `beforeMCPExecution` are understood and not wired, because one command would be asked about twice.",
            "`beforeReadFile` is wired as well: it alone shows what a file holds before the model sees it.",
            "`preToolUse` shows no server of an MCP tool: `mcp.server` is unknown there.",
            "Entries have `failClosed`; one mistake anywhere in hooks.json makes Cursor drop the whole file.",
            "A payload travels in the command line of a shell there and fails beyond about 128 KiB.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        let mut top = Map::new();
        let asks = Cursor::asks(event);
        match (&outcome.word, event.point) {
            (Word::Block(reason), _) if asks => {
                top.insert("permission".into(), "deny".into());
                top.insert("user_message".into(), reason.as_str().into());
                if event.name != "beforeReadFile" && event.point == Some(Point::PreToolUse) {
                    top.insert("agent_message".into(), reason.as_str().into());
                }
            }
            (Word::Ask(reason), _) => {
                top.insert("permission".into(), "ask".into());
                top.insert("user_message".into(), reason.as_str().into());
                top.insert("agent_message".into(), "Waiting for approval".into());
            }
            (Word::Block(reason), Some(Point::UserPromptSubmit)) => {
                top.insert("continue".into(), false.into());
                top.insert("user_message".into(), reason.as_str().into());
            }
            (Word::Block(reason), _) => {
                top.insert("followup_message".into(), reason.as_str().into());
            }
            (Word::Nothing, _) if asks => {
                top.insert("permission".into(), "allow".into());
            }
            (Word::Nothing, Some(Point::UserPromptSubmit | Point::SessionStart)) => {
                top.insert("continue".into(), true.into());
            }
            (Word::Nothing, _) => {}
        }
        if let Some(input) = &outcome.input {
            top.insert("updated_input".into(), input.clone());
        }
        if let Some(context) = outcome.joined_context() {
            top.insert("additional_context".into(), context.into());
        }
        let silent = ["after", "sessionEnd"].iter().any(|beginning| event.name.starts_with(beginning));
        if top.is_empty() && silent { Said::nothing() } else { Said::json(&json!(top)) }
    }
}
