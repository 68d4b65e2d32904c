//! Qwen Code: Claude Code's events and answers with Gemini CLI's tools.

use crate::agent::Agent;
use crate::event::{Effect, Event, at, other};
use crate::fields::{Fields, Parts, text};
use crate::outcome::{Outcome, Said};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape, Switch};
use crate::speech::{AFTER, BLOCK, CONTEXT, END, Manner, PROMPT, say};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct QwenCode;

const EVENTS: &[Event] = &[
    at("PreToolUse", Point::PreToolUse, &[Effect::Block, Effect::Ask, Effect::AddContext]),
    at("PostToolUse", Point::PostToolUse, AFTER),
    at("PostToolUseFailure", Point::ToolError, &[]),
    at("UserPromptSubmit", Point::UserPromptSubmit, PROMPT),
    at("SessionStart", Point::SessionStart, CONTEXT),
    at("SessionEnd", Point::SessionEnd, &[]),
    at("Stop", Point::Stop, END),
    at("SubagentStop", Point::SubagentStop, END),
    at("SubagentStart", Point::SubagentStart, &[]).spare(),
    at("PermissionRequest", Point::PreToolUse, BLOCK).meaning("permission_request").spare(),
    other("PostToolBatch", "post_tool_batch"),
    other("PreCompact", "pre_compact"),
    other("PostCompact", "post_compact"),
    other("StopFailure", "stop_failure"),
    other("MessageDisplay", "message_delta"),
    other("Notification", "notification"),
    other("InstructionsLoaded", "instructions_loaded"),
    other("UserPromptExpansion", "prompt_expansion"),
    other("SessionDelete", "session_delete"),
    other("TodoCreated", "todo_created"),
    other("TodoCompleted", "todo_completed"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("run_shell_command", Tool::Exec),
    ("write_file", Tool::WriteFile),
    ("edit", Tool::EditFile),
    ("replace", Tool::EditFile),
    ("notebook_edit", Tool::EditFile),
    ("read_file", Tool::ReadFile),
    ("grep_search", Tool::Search),
    ("glob", Tool::Search),
    ("web_fetch", Tool::FetchPage),
    ("web_search", Tool::WebSearch),
    ("agent", Tool::Subagent),
    ("task", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.qwen/settings.json" },
        Place { level: Level::Project, path: ".qwen/settings.json" },
        Place { level: Level::Managed, path: "/etc/qwen-code/settings.json" },
    ],
    shape: Shape::Grouped(Entry { named: true, ..Entry::COMMAND }),
    limit: Duration::from_secs(30),
    switches: &[
        Switch { path: "~/.qwen/settings.json", keys: &["disableAllHooks"], off: true },
        Switch { path: ".qwen/settings.json", keys: &["disableAllHooks"], off: true },
        Switch { path: "/etc/qwen-code/settings.json", keys: &["disableAllHooks"], off: true },
    ],
    then: &[],
};

impl Agent for QwenCode {
    fn name(&self) -> &'static str {
        "qwen-code"
    }

    fn title(&self) -> &'static str {
        "Qwen Code"
    }

    fn evidence(&self) -> &'static str {
        "0.24.4, run against a scripted model"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields { call: &["tool_call_id", "tool_use_id"], ..Fields::CLAUDE };
        &FIELDS
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        // it fires again after every round of tools, with nothing in it
        parts.idle = event.name == "UserPromptSubmit"
            && parts.prompt.as_deref() == Some("")
            && text(payload, &["submitted_prompt"]).is_none();
        Ok(parts)
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "A changed input is documented and not applied before a tool runs, so a hook that changes one stops the call.",
            "The prompt event that fires again after each round of tools, with an empty prompt, asks nobody.",
            "Tools that the headless permission mode refuses fire nothing.",
            "A project's `.qwen/settings.json` with `disableAllHooks` switches the user's hooks off; the system file of `--managed` goes before it.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        say(Manner { change_needs_allow: true, stop_inside: false }, event, outcome)
    }
}
