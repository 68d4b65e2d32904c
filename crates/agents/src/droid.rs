//! Factory Droid: Claude Code's shapes with tools of its own.

use crate::agent::Agent;
use crate::event::{Effect, Event, at};
use crate::fields::Fields;
use crate::outcome::{Outcome, Said};
use crate::read::Read;
use crate::setup::{Entry, Level, Place, Setup, Shape};
use crate::speech::{Manner, say};
use crate::tools::Tool;
use hookgate_core::point::Point;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Droid;

const EVENTS: &[Event] =
    &[at("PreToolUse", Point::PreToolUse, &[Effect::Block, Effect::Ask, Effect::ChangeInput])];

const TOOLS: &[(&str, Tool)] = &[
    ("Execute", Tool::Exec),
    ("Create", Tool::WriteFile),
    ("Edit", Tool::EditFile),
    ("ApplyPatch", Tool::Patch),
    ("Read", Tool::ReadFile),
    ("FetchUrl", Tool::FetchPage),
    ("Task", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.factory/settings.json" },
        Place { level: Level::Project, path: ".factory/settings.json" },
    ],
    shape: Shape::Grouped(Entry::COMMAND),
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for Droid {
    fn name(&self) -> &'static str {
        "droid"
    }

    fn title(&self) -> &'static str {
        "Factory Droid"
    }

    fn evidence(&self) -> &'static str {
        "0.245.0, from others' notes and documentation, not run"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        &Fields::CLAUDE
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &["Only the event before a tool is known for certain; the others are not wired."]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        say(Manner { change_needs_allow: true, stop_inside: false }, event, outcome)
    }
}
