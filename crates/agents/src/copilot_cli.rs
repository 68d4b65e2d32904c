//! GitHub Copilot CLI. The case of an event's name chooses between two dialects: flat answers in camel case, or Claude
//! Code's shapes.

use crate::agent::Agent;
use crate::event::{Effect, Event, at, other};
use crate::fields::{Fields, Parts, text};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Entry, Level, Place, Setup, Shape, Switch};
use crate::speech::{BLOCK, CONTEXT, END, GATE, Manner, say};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Map, Value};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct CopilotCli;

const EVENTS: &[Event] = &[
    at("preToolUse", Point::PreToolUse, GATE),
    at("postToolUse", Point::PostToolUse, CONTEXT),
    at("postToolUseFailure", Point::ToolError, CONTEXT),
    at(
        "userPromptSubmitted",
        Point::UserPromptSubmit,
        &[Effect::Block, Effect::ChangeInput, Effect::AddContext],
    ),
    at("sessionStart", Point::SessionStart, CONTEXT),
    at("sessionEnd", Point::SessionEnd, &[]),
    at("agentStop", Point::Stop, END),
    at("subagentStop", Point::SubagentStop, END).spare(),
    at("subagentStart", Point::SubagentStart, &[]).spare(),
    at("preMcpToolCall", Point::PreToolUse, &[]).spare(),
    at("permissionRequest", Point::PreToolUse, BLOCK).meaning("permission_request").spare(),
    other("userPromptTransformed", "prompt_expansion"),
    other("preCompact", "pre_compact"),
    other("errorOccurred", "stop_failure"),
    other("notification", "notification"),
    at("PreToolUse", Point::PreToolUse, GATE).spare(),
    at("PostToolUse", Point::PostToolUse, CONTEXT).spare(),
    at("UserPromptSubmit", Point::UserPromptSubmit, BLOCK).spare(),
    at("SessionStart", Point::SessionStart, CONTEXT).spare(),
    at("SessionEnd", Point::SessionEnd, &[]).spare(),
    at("Stop", Point::Stop, END).spare(),
    at("SubagentStop", Point::SubagentStop, END).spare(),
];

const TOOLS: &[(&str, Tool)] = &[
    ("bash", Tool::Exec),
    ("powershell", Tool::Exec),
    ("create", Tool::WriteFile),
    ("edit", Tool::EditFile),
    ("view", Tool::ReadFile),
    ("grep", Tool::Search),
    ("glob", Tool::Search),
    ("web_fetch", Tool::FetchPage),
    ("web_search", Tool::WebSearch),
    ("task", Tool::Subagent),
    ("Bash", Tool::Exec),
    ("Write", Tool::WriteFile),
    ("Edit", Tool::EditFile),
    ("Read", Tool::ReadFile),
    ("Agent", Tool::Subagent),
    ("Task", Tool::Subagent),
];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.copilot/hooks/hookgate.json" },
        Place { level: Level::Project, path: ".github/hooks/hookgate.json" },
        Place { level: Level::Managed, path: "/etc/github-copilot/policy.d/hookgate.json" },
    ],
    shape: Shape::Flat(Entry {
        command: "bash",
        timeout: Some(("timeoutSec", 1)),
        version: Some(1),
        ..Entry::COMMAND
    }),
    limit: Duration::from_secs(30),
    switches: &[
        Switch { path: "~/.copilot/settings.json", keys: &["disableAllHooks"], off: true },
        Switch { path: ".github/copilot/settings.json", keys: &["disableAllHooks"], off: true },
    ],
    then: &[],
};

impl CopilotCli {
    fn is_flat(event: &Event) -> bool {
        event.name.starts_with(|c: char| c.is_ascii_lowercase())
    }
}

impl Agent for CopilotCli {
    fn name(&self) -> &'static str {
        "copilot-cli"
    }

    fn title(&self) -> &'static str {
        "GitHub Copilot CLI"
    }

    fn evidence(&self) -> &'static str {
        "1.0.102, run against a scripted model"
    }

    fn events(&self) -> &'static [Event] {
        EVENTS
    }

    fn tools(&self) -> &'static [(&'static str, Tool)] {
        TOOLS
    }

    fn fields(&self) -> &'static Fields {
        const FIELDS: Fields = Fields {
            event: &["hook_event_name", "hookName"],
            session: &["sessionId", "session_id"],
            tool: &["toolName", "tool_name"],
            input: &["toolArgs", "toolInput", "arguments", "tool_input"],
            output: &["toolResult", "tool_result"],
            call: &["toolCallId", "tool_use_id"],
            answer: &["response"],
            turn: &[],
            inside: &[],
            parent: &["parentAgentId"],
            ..Fields::CLAUDE
        };
        &FIELDS
    }

    fn guess(&self, payload: &Value) -> Option<&'static str> {
        let has = |name: &str| payload.get(name).is_some();
        Some(match () {
            () if has("serverName") && has("arguments") => "preMcpToolCall",
            () if has("toolArgs") && has("toolResult") => "postToolUse",
            () if has("toolArgs") && has("error") => "postToolUseFailure",
            () if has("toolArgs") || has("toolName") => "preToolUse",
            () if has("transformedPrompt") => "userPromptTransformed",
            () if has("initialPrompt") => "sessionStart",
            () if has("prompt") => "userPromptSubmitted",
            () if has("response") => "subagentStop",
            () if has("stopReason") => "agentStop",
            () if has("agentName") => "subagentStart",
            () if has("source") => "sessionStart",
            () if has("reason") => "sessionEnd",
            () => return None,
        })
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let mut parts = Parts::of(self.fields(), payload);
        if event.name == "preMcpToolCall" {
            parts.mcp = Some((text(payload, &["serverName"]), parts.tool.clone()));
        }
        if event.name == "agentStop" && parts.parent.is_some() {
            parts.point = Some(Point::SubagentStop);
        }
        if event.point != Some(Point::ToolError) {
            parts.error = None;
        }
        Ok(parts)
    }

    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        // with hyphens in both names nobody can tell where one ends
        tool.split_once('-').or_else(|| tool.split_once('/'))
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "A late answer counts as consent, so ours comes before the limit, also when several calls queue up; everything else that goes wrong with a hook program is a refusal.",
            "An exit code refuses without a reason, so a block is JSON with exit code 0.",
            "A changed input goes out without a decision: the agent's own permission prompt still comes.",
            "A prompt can be changed (`modifiedPrompt`).",
            "Tools of servers are called `server-tool`; where both names have hyphens, the first one ends the server's.",
            "After a tool ran the model can be told something, but the result cannot be refused.",
            "`agentStop` fires in sub-agents as well; it is a `subagent_stop` there.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, _read: Option<&Read>) -> Said {
        if !CopilotCli::is_flat(event) {
            return say(Manner { change_needs_allow: true, stop_inside: false }, event, outcome);
        }
        let mut top = Map::new();
        match &outcome.word {
            Word::Nothing => {}
            Word::Block(reason) if event.means == "permission_request" => {
                top.insert("behavior".into(), "deny".into());
                top.insert("message".into(), reason.as_str().into());
            }
            Word::Block(reason) | Word::Ask(reason) if event.point == Some(Point::PreToolUse) => {
                let word = if matches!(outcome.word, Word::Ask(_)) { "ask" } else { "deny" };
                top.insert("permissionDecision".into(), word.into());
                top.insert("permissionDecisionReason".into(), reason.as_str().into());
            }
            Word::Block(reason) | Word::Ask(reason) => {
                top.insert("decision".into(), "block".into());
                top.insert("reason".into(), reason.as_str().into());
            }
        }
        if let Some(input) = &outcome.input {
            top.insert("modifiedArgs".into(), input.clone());
        }
        if let Some(text) = &outcome.text {
            top.insert("modifiedPrompt".into(), text.as_str().into());
        }
        if let Some(context) = outcome.joined_context() {
            top.insert("additionalContext".into(), context.into());
        }
        if top.is_empty() { Said::nothing() } else { Said::json(&Value::Object(top)) }
    }
}
