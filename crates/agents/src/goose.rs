//! goose: the layout of Open Plugins, with an own switch for "no answer means no".

use crate::agent::Agent;
use crate::event::{Event, at, other};
use crate::fields::Fields;
use crate::outcome::{Outcome, Said, Word};
use crate::read::Read;
use crate::setup::{Closed, Entry, Level, Place, Setup, Shape};
use crate::speech::{BLOCK, END};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::json;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Goose;

const EVENTS: &[Event] = &[
    at("PreToolUse", Point::PreToolUse, BLOCK),
    at("PostToolUse", Point::PostToolUse, &[]),
    at("PostToolUseFailure", Point::ToolError, &[]),
    at("UserPromptSubmit", Point::UserPromptSubmit, &[]),
    at("Stop", Point::Stop, END),
    at("SessionStart", Point::SessionStart, &[]),
    at("SessionEnd", Point::SessionEnd, &[]),
    other("PreToolUseResult", "decision_record"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("developer__shell", Tool::Exec),
    ("developer__write", Tool::WriteFile),
    ("developer__edit", Tool::EditFile),
    ("developer__text_editor", Tool::WriteOrEdit),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.agents/plugins/hookgate/hooks/hooks.json" },
        Place { level: Level::Project, path: ".agents/plugins/hookgate/hooks/hooks.json" },
    ],
    shape: Shape::Grouped(Entry { closed: Some(("on_failure", Closed::Block)), ..Entry::COMMAND }),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for Goose {
    fn name(&self) -> &'static str {
        "goose"
    }

    fn title(&self) -> &'static str {
        "goose"
    }

    fn evidence(&self) -> &'static str {
        "1.38 and later, documentation, not run"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields {
            event: &["event"],
            cwd: &["working_dir"],
            call: &["tool_call_id"],
            prompt: &["message"],
            error: &["message"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn parts(
        &self,
        event: &'static Event,
        payload: &serde_json::Value,
    ) -> Result<crate::fields::Parts, crate::read::Unread> {
        let mut parts = crate::fields::Parts::of(self.fields(), payload);
        if event.point != Some(Point::ToolError) {
            parts.error = None;
        }
        Ok(parts)
    }

    /// Its own extensions are servers as well.
    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        tool.split_once("__")
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "Entries have `on_failure: block` and no matcher: `*` is no pattern there and would skip the entry without a word.",
            "A prompt can be watched, not stopped. Events of sub-agents are not sent.",
        ]
    }

    fn say(&self, _event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        match &outcome.word {
            Word::Block(reason) | Word::Ask(reason) => {
                Said::json(&json!({"decision": "block", "reason": reason}))
            }
            Word::Nothing => Said::nothing(),
        }
    }
}
