//! Claude Code, and the Agent SDK, whose callbacks get and give the same objects.

use crate::agent::Agent;
use crate::event::{Event, at, other};
use crate::fields::Fields;
use crate::outcome::{Outcome, Said};
use crate::read::Read;
use crate::setup::{Closed, Entry, Level, Place, Setup, Shape, Switch};
use crate::speech::{AFTER, BLOCK, CONTEXT, END, GATE, Manner, PROMPT, say};
use crate::tools::Tool;
use hookgate_core::point::Point;
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct ClaudeCode;

const EVENTS: &[Event] = &[
    at("PreToolUse", Point::PreToolUse, GATE),
    at("PreSkillShellCommand", Point::PreToolUse, BLOCK),
    at("PostToolUse", Point::PostToolUse, AFTER),
    at("PostToolUseFailure", Point::ToolError, CONTEXT),
    at("UserPromptSubmit", Point::UserPromptSubmit, PROMPT),
    at("UserPromptExpansion", Point::UserPromptSubmit, BLOCK).meaning("prompt_expansion"),
    at("SessionStart", Point::SessionStart, CONTEXT),
    at("SessionEnd", Point::SessionEnd, &[]).within(1500),
    at("Stop", Point::Stop, END),
    at("SubagentStop", Point::SubagentStop, END),
    at("SubagentStart", Point::SubagentStart, CONTEXT).spare(),
    at("PermissionRequest", Point::PreToolUse, BLOCK).meaning("permission_request").spare(),
    other("PermissionDenied", "permission_denied"),
    other("PostToolBatch", "post_tool_batch"),
    other("StopFailure", "stop_failure"),
    other("PreCompact", "pre_compact"),
    other("PostCompact", "post_compact"),
    other("MessageDisplay", "message_delta"),
    other("Notification", "notification"),
    other("Setup", "setup"),
    other("InstructionsLoaded", "instructions_loaded"),
    other("ConfigChange", "config_change"),
    other("FileChanged", "file_changed"),
    other("CwdChanged", "cwd_changed"),
    other("TaskCreated", "task_created"),
    other("TaskCompleted", "task_completed"),
    other("Elicitation", "elicitation"),
];

/// The names of Claude Code's tools; others took them over.
pub(crate) const TOOLS: &[(&str, Tool)] = &[
    ("Bash", Tool::Exec),
    ("PowerShell", Tool::Exec),
    ("Write", Tool::WriteFile),
    ("Edit", Tool::EditFile),
    ("MultiEdit", Tool::EditFile),
    ("NotebookEdit", Tool::EditFile),
    ("Read", Tool::ReadFile),
    ("Grep", Tool::Search),
    ("Glob", Tool::Search),
    ("WebFetch", Tool::FetchPage),
    ("WebSearch", Tool::WebSearch),
    ("Agent", Tool::Subagent),
    ("Task", Tool::Subagent),
    ("Workflow", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.claude/settings.json" },
        Place { level: Level::Project, path: ".claude/settings.json" },
        Place { level: Level::Managed, path: "/etc/claude-code/managed-settings.json" },
    ],
    shape: Shape::Grouped(Entry { closed: Some(("onFailure", Closed::Block)), ..Entry::COMMAND }),
    limit: Duration::from_secs(30),
    switches: &[
        Switch { path: "~/.claude/settings.json", keys: &["disableAllHooks"], off: true },
        Switch { path: ".claude/settings.json", keys: &["disableAllHooks"], off: true },
        Switch { path: ".claude/settings.local.json", keys: &["disableAllHooks"], off: true },
        Switch { path: "/etc/claude-code/managed-settings.json", keys: &["disableAllHooks"], off: true },
    ],
    then: &[],
};

impl Agent for ClaudeCode {
    fn name(&self) -> &'static str {
        "claude-code"
    }

    fn title(&self) -> &'static str {
        "Claude Code"
    }

    fn evidence(&self) -> &'static str {
        "2.1.332, run against a scripted model"
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

    fn patience(&self) -> Duration {
        Duration::from_secs(60)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "A changed input goes out without a decision: the agent's own permission prompt still comes.",
            "Shell lines inside skills and slash commands fire `PreSkillShellCommand` only; it is a `pre_tool_use` of `exec`. Its input cannot be changed, so a hook that changes it stops it.",
            "A slash command reaches `UserPromptSubmit` as it was typed and `UserPromptExpansion` with its text; both ask `user_prompt_submit`.",
            "A sub-agent cannot be refused when it starts. `subagent_start` hooks are asked when the tool `Agent` is called.",
            "A project's `.claude/settings.json` with `disableAllHooks` switches the user's hooks off; hooks that are installed with `--managed` stay.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        say(Manner { change_needs_allow: false, stop_inside: false }, event, outcome)
    }
}
