//! Windsurf Cascade: exit code 2 of the events before something, and nothing else.

use crate::agent::Agent;
use crate::event::{Event, at, other};
use crate::fields::{Fields, Parts, text};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape};
use crate::speech::BLOCK;
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Windsurf;

const EVENTS: &[Event] = &[
    at("pre_run_command", Point::PreToolUse, BLOCK),
    at("pre_write_code", Point::PreToolUse, BLOCK),
    at("pre_read_code", Point::PreToolUse, BLOCK),
    at("pre_mcp_tool_use", Point::PreToolUse, BLOCK),
    at("pre_user_prompt", Point::UserPromptSubmit, BLOCK),
    at("post_run_command", Point::PostToolUse, &[]),
    at("post_write_code", Point::PostToolUse, &[]),
    at("post_read_code", Point::PostToolUse, &[]),
    at("post_mcp_tool_use", Point::PostToolUse, &[]),
    at("post_cascade_response", Point::Stop, &[]),
    other("post_setup_worktree", "setup"),
];

/// Events name no tool: their own names stand for it.
const TOOLS: &[(&str, Tool)] =
    &[("run_command", Tool::Exec), ("write_code", Tool::EditFile), ("read_code", Tool::ReadFile)];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.codeium/windsurf/hooks.json" },
        Place { level: Level::Project, path: ".windsurf/hooks.json" },
        Place { level: Level::Managed, path: "/etc/windsurf/hooks.json" },
    ],
    shape: Shape::Flat(Entry { timeout: None, typed: false, ..Entry::COMMAND }),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for Windsurf {
    fn name(&self) -> &'static str {
        "windsurf"
    }

    fn title(&self) -> &'static str {
        "Windsurf Cascade"
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
            event: &["agent_action_name"],
            session: &["trajectory_id"],
            call: &[],
            turn: &["execution_id"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let about = payload.get("tool_info").cloned().unwrap_or_default();
        let mut parts = Parts::of(self.fields(), payload);
        parts.cwd = text(&about, &["cwd"]);
        parts.prompt = text(&about, &["user_prompt"]);
        parts.answer = text(&about, &["response"]);
        parts.output = about.get("mcp_result").cloned().unwrap_or_default();
        let what = event.name.trim_start_matches("pre_").trim_start_matches("post_");
        if what == "mcp_tool_use" {
            let (server, tool) = (text(&about, &["mcp_server_name"]), text(&about, &["mcp_tool_name"]));
            parts.tool.clone_from(&tool);
            parts.input = about.get("mcp_tool_arguments").cloned().unwrap_or_default();
            parts.mcp = Some((server, tool));
        } else {
            parts.tool = Some(what.to_owned());
            parts.input = about;
        }
        Ok(parts)
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "There is no other answer than exit code 2 with a reason on standard error, and only before something happens.",
            "Its settings have no limit for a hook; ours is 30 seconds, then the call is stopped.",
        ]
    }

    fn say(&self, _event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        match &outcome.word {
            Word::Block(reason) | Word::Ask(reason) => Said::refusal(reason),
            Word::Nothing => Said::nothing(),
        }
    }
}
