//! Codex CLI. One field that it does not know, or a deny without a reason, and the whole answer is dropped.

use crate::agent::Agent;
use crate::event::{Effect, Event, at, other};
use crate::fields::Fields;
use crate::outcome::{Outcome, Said};
use crate::read::Read;
use crate::setup::{Entry, Level, Place, Setup, Shape, Switch};
use crate::speech::{AFTER, BLOCK, CONTEXT, END, Manner, PROMPT, say};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::Value;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Codex;

const EVENTS: &[Event] = &[
    at("PreToolUse", Point::PreToolUse, &[Effect::Block, Effect::ChangeInput, Effect::AddContext]),
    at("PostToolUse", Point::PostToolUse, AFTER),
    at("UserPromptSubmit", Point::UserPromptSubmit, PROMPT),
    at("SessionStart", Point::SessionStart, CONTEXT),
    at("SessionEnd", Point::SessionEnd, &[]).within(1000),
    at("Stop", Point::Stop, END),
    at("SubagentStop", Point::SubagentStop, END),
    at("SubagentStart", Point::SubagentStart, CONTEXT).spare(),
    at("PermissionRequest", Point::PreToolUse, BLOCK).meaning("permission_request").spare(),
    other("PreCompact", "pre_compact"),
    other("PostCompact", "post_compact"),
    other("Interrupt", "interrupt").within(1000),
    other("PreModelRequest", "pre_model_call"),
    other("PostModelRequest", "post_model_call"),
    other("notify", "notification"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("Bash", Tool::Exec),
    ("exec_command", Tool::Exec),
    ("shell", Tool::Exec),
    ("apply_patch", Tool::Patch),
    ("view_image", Tool::ReadFile),
    ("spawn_agent", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.codex/hooks.json" },
        Place { level: Level::Project, path: ".codex/hooks.json" },
        Place { level: Level::Managed, path: "/etc/codex/hooks.json" },
    ],
    shape: Shape::Grouped(Entry::COMMAND),
    limit: Duration::from_secs(30),
    switches: &[
        Switch { path: "~/.codex/config.toml", keys: &["features", "hooks"], off: false },
        Switch { path: ".codex/config.toml", keys: &["features", "hooks"], off: false },
    ],
    then: &[
        "codex skips a new or changed hook until it is reviewed: start `codex` and open /hooks, or nothing is guarded (hooks that are installed with --managed need no review)",
        "with --managed: `[features] hooks = true` in /etc/codex/requirements.toml keeps a trusted project from switching all hooks off",
    ],
};

impl Agent for Codex {
    fn name(&self) -> &'static str {
        "codex"
    }

    fn title(&self) -> &'static str {
        "Codex CLI"
    }

    fn evidence(&self) -> &'static str {
        "0.171.0, run against a scripted model"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields { turn: &["turn_id"], ..Fields::CLAUDE };
        &FIELDS
    }

    fn guess(&self, payload: &Value) -> Option<&'static str> {
        (payload.get("type")? == "agent-turn-complete").then_some("notify")
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "New and changed hooks are skipped, in one-shot runs without a word, until they are reviewed with `/hooks`.",
            "There is no question to a person: a hook that asks for one blocks.",
            "A changed input goes out with `allow`, because Codex takes it over in no other way.",
            "Keys typed into a terminal that is open already (`write_stdin`) and the hosted web search fire no hook: rules that must hold stop interactive shells at `exec`.",
            "The reason of a block after a tool ran replaces the tool's output.",
            "A turn that is made to go on has no limit of the agent's own. Ours: never twice in a row by its flag, three times a turn at most.",
            "A trusted project's `.codex/config.toml` with `[features] hooks = false` switches all hooks off, also those that are installed with `--managed`, unless `/etc/codex/requirements.toml` says `[features] hooks = true` (seen with 0.171).",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        say(Manner { change_needs_allow: true, stop_inside: false }, event, outcome)
    }
}
