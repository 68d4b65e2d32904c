//! Gemini CLI: `decision` at the top is what counts, and `ask` hangs without a terminal.

use crate::agent::Agent;
use crate::event::{Effect, Event, at, other};
use crate::fields::{Fields, Parts, first, text};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape, Switch};
use crate::speech::{AFTER, CONTEXT, END, PROMPT};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct GeminiCli;

const EVENTS: &[Event] = &[
    at("BeforeTool", Point::PreToolUse, &[Effect::Block, Effect::ChangeInput]),
    at("AfterTool", Point::PostToolUse, AFTER),
    at("BeforeAgent", Point::UserPromptSubmit, PROMPT),
    at("AfterAgent", Point::Stop, END),
    at("SessionStart", Point::SessionStart, CONTEXT),
    at("SessionEnd", Point::SessionEnd, &[]),
    other("BeforeModel", "pre_model_call"),
    other("AfterModel", "post_model_call"),
    other("BeforeToolSelection", "tool_selection"),
    other("PreCompress", "pre_compact"),
    other("Notification", "notification"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("run_shell_command", Tool::Exec),
    ("write_file", Tool::WriteFile),
    ("replace", Tool::EditFile),
    ("read_file", Tool::ReadFile),
    ("read_many_files", Tool::ReadFile),
    ("grep_search", Tool::Search),
    ("search_file_content", Tool::Search),
    ("glob", Tool::Search),
    ("list_directory", Tool::Search),
    ("web_fetch", Tool::FetchPage),
    ("google_web_search", Tool::WebSearch),
    ("invoke_agent", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.gemini/settings.json" },
        Place { level: Level::Project, path: ".gemini/settings.json" },
        Place { level: Level::Managed, path: "/etc/gemini-cli/settings.json" },
    ],
    shape: Shape::Grouped(Entry { timeout: Some(("timeout", 1000)), named: true, ..Entry::COMMAND }),
    limit: Duration::from_secs(30),
    switches: &[
        Switch { path: "~/.gemini/settings.json", keys: &["hooksConfig", "enabled"], off: false },
        Switch { path: ".gemini/settings.json", keys: &["hooksConfig", "enabled"], off: false },
    ],
    then: &[],
};

impl Agent for GeminiCli {
    fn name(&self) -> &'static str {
        "gemini-cli"
    }

    fn title(&self) -> &'static str {
        "Gemini CLI"
    }

    fn evidence(&self) -> &'static str {
        "0.61.0, run against a scripted model"
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
        const FIELDS: Fields =
            Fields { answer: &["prompt_response"], call: &[], turn: &[], ..Fields::CLAUDE };
        &FIELDS
    }

    fn parts(&self, _event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        if let Some(context) = first(payload, &["mcp_context"]) {
            parts.mcp = Some((text(context, &["server_name"]), text(context, &["tool_name"])));
        }
        if let Some(error) = first(&parts.output, &["error"]) {
            parts.error = Some(text(error, &["message"]).unwrap_or_else(|| error.to_string()));
        }
        Ok(parts)
    }

    /// Single underscores say nothing of where a server's name ends; the payload does.
    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        tool.strip_prefix("mcp_")?.split_once('_')
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "`ask` hangs where there is no terminal, so a hook that asks for a person blocks.",
            "Calls have no id: each is an event of its own in the audit trail.",
            "A changed input is merged by the agent, which appends a note that the model reads.",
            "The reason of a block after a tool ran replaces the tool's output. A shell line that fails arrives as a normal result.",
            "A turn that is made to go on has no limit of the agent's own. Ours: never twice in a row by its flag, three times a turn at most.",
            "A trusted project's `.gemini/settings.json` with `hooksConfig.enabled: false` switches the user's hooks off; hooks that are installed with `--managed` stay.",
            "`BeforeModel` and `AfterModel` are understood and not wired: they would start a process for every request and every piece of an answer.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        let mut top = Map::new();
        let mut inner = Map::new();
        if let Word::Block(reason) | Word::Ask(reason) = &outcome.word {
            top.insert("decision".into(), "deny".into());
            top.insert("reason".into(), reason.as_str().into());
        }
        if let Some(input) = &outcome.input {
            inner.insert("tool_input".into(), input.clone());
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
}
