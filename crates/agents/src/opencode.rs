//! opencode: no hook programs, but plugins. The one that an installation writes hands us the arguments of its functions
//! as `{"input": …, "output": …}` or `{"event": …}` and does what the answer says:
//!
//! | answer | the plugin |
//! |---|---|
//! | `{"throw": "Error: REASON"}` | throws, which stops a tool and tells the model why |
//! | `{"output": {…}}` | puts these members into its `output`, in place |
//! | nothing, where nothing can be stopped | goes on |
//! | anything else, no answer in time, another exit code | throws, before a tool and before a prompt |

use crate::agent::Agent;
use crate::event::{Effect, Event, at, other};
use crate::fields::{Fields, Parts, first, text};
use crate::outcome::{Outcome, Said, Word};
use crate::read::{Read, Unread};
use crate::setup::{Level, Place, Setup, Shape};
use crate::tools::Tool;
use hookgate_core::point::Point;
use serde_json::{Value, json};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct OpenCode;

const EVENTS: &[Event] = &[
    at("tool.execute.before", Point::PreToolUse, &[Effect::Block, Effect::ChangeInput]),
    at("tool.execute.after", Point::PostToolUse, &[Effect::Feedback]),
    at("chat.message", Point::UserPromptSubmit, &[Effect::Block, Effect::ChangeInput, Effect::AddContext]),
    at("experimental.text.complete", Point::PreResponse, &[Effect::ChangeText]),
    at("event.session.created", Point::SessionStart, &[]),
    at("event.session.idle", Point::Stop, &[]),
    other("event.permission.asked", "permission_request"),
    other("chat.params", "pre_model_call"),
    other("chat.headers", "pre_model_call"),
    other("shell.env", "shell_env"),
];

const TOOLS: &[(&str, Tool)] = &[
    ("bash", Tool::Exec),
    ("write", Tool::WriteFile),
    ("edit", Tool::EditFile),
    ("multiedit", Tool::EditFile),
    ("patch", Tool::Patch),
    ("read", Tool::ReadFile),
    ("list", Tool::Search),
    ("grep", Tool::Search),
    ("glob", Tool::Search),
    ("webfetch", Tool::FetchPage),
    ("websearch", Tool::WebSearch),
    ("task", Tool::Subagent),
];

/// Tools of its own that are no kind of ours and whose names could be those of a server's.
const OWN: &[&str] = &["todo_write", "todo_read"];

static SETUP: Setup = Setup {
    places: &[
        Place { level: Level::User, path: "~/.config/opencode/plugin/hookgate.js" },
        Place { level: Level::Project, path: ".opencode/plugin/hookgate.js" },
    ],
    shape: Shape::Plugin { text: include_str!("opencode.js") },
    limit: Duration::from_secs(30),
    switches: &[],
    then: &[],
};

impl Agent for OpenCode {
    fn name(&self) -> &'static str {
        "opencode"
    }

    fn title(&self) -> &'static str {
        "opencode"
    }

    fn evidence(&self) -> &'static str {
        "1.18.33, run against a scripted model"
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
        const FIELDS: Fields = Fields { event: &[], ..Fields::CLAUDE };
        &FIELDS
    }

    fn parts(&self, event: &'static Event, payload: &Value) -> Result<Parts, Unread> {
        let input = payload.get("input").unwrap_or(&Value::Null);
        let output = payload.get("output").unwrap_or(&Value::Null);
        let about = payload.get("event").unwrap_or(payload);
        let properties = about.get("properties").unwrap_or(&Value::Null);
        let mut parts = Parts {
            session: text(input, &["sessionID"]).or_else(|| text(properties, &["sessionID"])),
            call: text(input, &["callID"]),
            tool: text(input, &["tool"]),
            cwd: text(payload, &["directory"]),
            ..Parts::default()
        };
        parts.parent = first(properties, &["info"]).and_then(|info| text(info, &["parentID"]));
        match event.name {
            "tool.execute.before" => parts.input = output.get("args").cloned().unwrap_or_default(),
            "tool.execute.after" => {
                parts.input = input.get("args").cloned().unwrap_or_default();
                let failed =
                    output.pointer("/metadata/exit").and_then(Value::as_i64).is_some_and(|code| code != 0);
                let said = first(output, &["output", "content"]).cloned().unwrap_or_default();
                if failed || output.get("isError") == Some(&Value::Bool(true)) {
                    parts.error = Some(said.as_str().map_or_else(|| said.to_string(), str::to_owned));
                }
                parts.output = said;
            }
            "chat.message" => parts.prompt = Some(prompt(output)),
            "experimental.text.complete" => parts.answer = text(output, &["text"]),
            _ => {}
        }
        Ok(parts)
    }

    fn mcp<'n>(&self, tool: &'n str) -> Option<(&'n str, &'n str)> {
        // nothing but the underscore marks it
        if OWN.contains(&tool) { None } else { tool.split_once('_') }
    }

    fn setup(&self) -> Option<&'static Setup> {
        Some(&SETUP)
    }

    fn notes(&self) -> &'static [&'static str] {
        &[
            "The plugin brings its own limit, because the agent would wait for ever: 30 seconds, then the call is stopped.",
            "Tools of servers are called `server_tool`; a tool of another plugin with an underscore in its name looks the same.",
            "A turn cannot be made to go on.",
            "A block after a tool ran takes the tool's result away from the model, which reads the reason instead.",
            "`policy_text` and other hooks at `pre_response` change the text that is kept; what was streamed to the terminal stays there.",
        ]
    }

    fn say(&self, event: &Event, outcome: &Outcome, read: Option<&Read>) -> Said {
        if let Word::Block(reason) | Word::Ask(reason) = &outcome.word {
            return self.no(reason);
        }
        let output = read.and_then(|read| read.payload.get("output"));
        match (event.name, output) {
            ("tool.execute.before", Some(output)) => {
                let args = outcome.input.as_ref().or(output.get("args")).cloned().unwrap_or(json!({}));
                Said::json(&json!({"output": {"args": args}}))
            }
            ("chat.message", Some(output)) if outcome.text.is_some() || !outcome.context.is_empty() => {
                Said::json(&json!({"output": {"parts": parts(output, outcome)}}))
            }
            ("experimental.text.complete", _) => match &outcome.text {
                Some(text) => Said::json(&json!({"output": {"text": text}})),
                None => Said::nothing(),
            },
            _ => Said::nothing(),
        }
    }

    fn no(&self, reason: &str) -> Said {
        Said::json(&json!({"throw": format!("Error: {reason}")}))
    }
}

/// What the user wrote: the texts of a message's parts.
fn prompt(output: &Value) -> String {
    let texts = output.get("parts").and_then(Value::as_array).into_iter().flatten();
    let texts = texts.filter(|part| part.get("type").is_some_and(|kind| kind == "text"));
    texts.filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
}

/// The parts of a message with another text, and with one more for the model.
fn parts(output: &Value, outcome: &Outcome) -> Vec<Value> {
    let mut parts = output.get("parts").and_then(Value::as_array).cloned().unwrap_or_default();
    if let Some(text) = &outcome.text {
        let mut text = Some(text.as_str());
        for part in parts.iter_mut().filter(|part| part.get("type").is_some_and(|kind| kind == "text")) {
            // the first one holds all of it
            if let Some(members) = part.as_object_mut() {
                members.insert("text".into(), text.take().unwrap_or_default().into());
            }
        }
    }
    if let Some(context) = outcome.joined_context() {
        let mut part = parts.iter().find(|part| part.get("id").is_some()).cloned().unwrap_or(json!({}));
        if let Some(members) = part.as_object_mut() {
            let id = members.get("id").and_then(Value::as_str).map(|id| format!("{id}-hookgate"));
            members.retain(|name, _| matches!(name.as_str(), "messageID" | "sessionID"));
            members.insert("type".into(), "text".into());
            members.insert("text".into(), context.into());
            members.insert("synthetic".into(), true.into());
            if let Some(id) = id {
                members.insert("id".into(), id.into());
            }
        }
        parts.push(part);
    }
    parts
}
