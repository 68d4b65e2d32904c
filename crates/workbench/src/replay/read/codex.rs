//! Rollouts of Codex: `~/.codex/sessions/**/rollout-*.jsonl`, an envelope a line.
//!
//! | line | steps |
//! |---|---|
//! | `session_meta` | the session begins; working directory |
//! | `turn_context` | working directory |
//! | `response_item`, and bare items of old rollouts | prompts, pieces of an answer, calls, results |
//! | `event_msg`, `compacted` | none: they say again what the items say |
//!
//! What Codex writes in the user's name (instructions, the environment) is no prompt. A shell call is shown as Codex shows
//! it to hooks: the line, not the words that start the shell.

use super::Reader;
use super::text::{arguments, is_put_there, joined, take, take_text};
use crate::replay::step::{Outcome, Step, Told};
use hookgate_agents::agent::Agent;
use hookgate_agents::table;
use hookgate_core::event::{Origin, Role};
use serde_json::{Map, Value, json};

const PUT_THERE: [&str; 10] = [
    "<environment_context>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<turn_aborted>",
    "<skill>",
    "<subagent_notification>",
    "<user_shell_command>",
];

pub(super) struct Codex {
    agent: Option<&'static dyn Agent>,
    begun: bool,
    cwd: Option<String>,
}

impl Default for Codex {
    fn default() -> Codex {
        Codex { agent: table::find("codex"), begun: false, cwd: None }
    }
}

impl Reader for Codex {
    fn line(&mut self, number: u64, mut line: Value, told: &mut Vec<Told>) -> Result<(), String> {
        if !line.is_object() {
            return Err("it is no object".into());
        }
        let time = line.get("timestamp").and_then(Value::as_str).map(str::to_owned);
        let kind = line.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_envelope = line.get("payload").is_some();
        let (kind, mut item) = match kind {
            "session_meta" | "turn_context" | "response_item" if !is_envelope => {
                return Err(format!("a line of type `{kind}` has no payload"));
            }
            _ if is_envelope => (kind.to_owned(), take(&mut line, "payload")),
            "" => ("session_meta".to_owned(), line),
            _ => ("response_item".to_owned(), line),
        };
        let mut tell = |step| told.push(Told { line: number, agent: None, time: time.clone(), step });
        match kind.as_str() {
            "session_meta" => {
                self.cwd = take_text(&mut item, "cwd").or(self.cwd.take());
                let session = take_text(&mut item, "id").or_else(|| take_text(&mut item, "session_id"));
                if !std::mem::replace(&mut self.begun, true) {
                    tell(Step::Begin { session });
                }
            }
            "turn_context" => self.cwd = take_text(&mut item, "cwd").or(self.cwd.take()),
            "response_item" => {
                if !std::mem::replace(&mut self.begun, true) {
                    tell(Step::Begin { session: None });
                }
                self.item(item, &mut tell);
            }
            _ => {}
        }
        Ok(())
    }
}

impl Codex {
    fn item(&self, mut item: Value, tell: &mut dyn FnMut(Step)) {
        let kind = take_text(&mut item, "type").unwrap_or_default();
        match kind.as_str() {
            "message" => message(&mut item, tell),
            "reasoning" => {
                for part in ["summary", "content"] {
                    let text = joined(&take(&mut item, part));
                    if !text.is_empty() {
                        tell(Step::Piece { is_thought: true, text });
                    }
                }
            }
            "function_call" => {
                let input = arguments(take(&mut item, "arguments"));
                self.call(&mut item, input, tell);
            }
            "custom_tool_call" => {
                let text = take(&mut item, "input");
                // a patch is the one text whose member hooks know
                let is_patch = item.get("name").is_some_and(|name| name == "apply_patch");
                let input = if is_patch { json!({"command": text}) } else { text };
                self.call(&mut item, input, tell);
            }
            "local_shell_call" => {
                let input = take(&mut item, "action");
                if let Some(members) = item.as_object_mut() {
                    members.insert("name".into(), "shell".into());
                }
                self.call(&mut item, input, tell);
            }
            "function_call_output" | "custom_tool_call_output" | "local_shell_call_output" => {
                output(&mut item, tell)
            }
            _ => {}
        }
    }

    fn call(&self, item: &mut Value, input: Value, tell: &mut dyn FnMut(Step)) {
        let (Some(agent), Some(name)) = (self.agent, take_text(item, "name")) else { return };
        // tools of a server are told apart from the agent's own by a member of their own in newer rollouts
        let name = match take_text(item, "namespace") {
            Some(server) if server.starts_with("mcp__") => {
                format!("{}__{name}", server.trim_end_matches('_'))
            }
            _ => name,
        };
        let input = with_a_line(input);
        let id = take_text(item, "call_id").or_else(|| take_text(item, "id")).unwrap_or_default();
        tell(Step::Call { id, call: Box::new(agent.call(&name, &input, self.cwd.as_deref())) });
    }
}

fn message(item: &mut Value, tell: &mut dyn FnMut(Step)) {
    let role = take_text(item, "role").unwrap_or_default();
    let content = take(item, "content");
    match role.as_str() {
        "user" => {
            let parts = match content {
                Value::Array(parts) => parts,
                text => vec![text],
            };
            let texts = parts.into_iter().filter_map(|mut part| match part {
                Value::String(text) => Some(text),
                _ => take_text(&mut part, "text"),
            });
            let texts: Vec<String> = texts.filter(|text| !is_put_there(text, &PUT_THERE)).collect();
            if !texts.is_empty() {
                tell(Step::Prompt(texts.join("\n")));
            }
        }
        "assistant" => {
            let text = joined(&content);
            if !text.is_empty() {
                tell(Step::Piece { is_thought: false, text });
            }
        }
        _ => {}
    }
}

fn output(item: &mut Value, tell: &mut dyn FnMut(Step)) {
    let id = take_text(item, "call_id").unwrap_or_default();
    let mut written = take(item, "output");
    let mut failed = false;
    // a text that holds an object, or the object itself
    if let Some(inner @ Value::Object(_)) = written.as_str().and_then(|text| serde_json::from_str(text).ok())
        && inner.get("output").is_some()
    {
        written = inner;
    }
    let text = match &mut written {
        Value::Object(members) => {
            failed = members.get("success").and_then(Value::as_bool) == Some(false);
            let content = members.get("output").or(members.get("content")).cloned();
            joined(&content.unwrap_or_default())
        }
        other => joined(other),
    };
    let outcome =
        if failed { Outcome::Error(text.clone()) } else { Outcome::Output(without_head(&text).into()) };
    tell(Step::Result { id, outcome });
    tell(Step::Message { role: Role::Tool, origin: Origin::Tool, text });
}

/// The output of a command without the lines that Codex puts above it for the model.
fn without_head(text: &str) -> &str {
    let is_headed = ["Chunk ID:", "Exit code:", "Wall time:"].iter().any(|head| text.starts_with(head));
    match text.split_once("\nOutput:\n") {
        Some((_, output)) if is_headed => output,
        _ => text,
    }
}

/// The input with its command as one line.
fn with_a_line(mut input: Value) -> Value {
    let words: Option<Vec<String>> = input
        .get("command")
        .and_then(Value::as_array)
        .map(|words| words.iter().filter_map(Value::as_str).map(str::to_owned).collect());
    if let (Some(words), Some(members)) = (words, input.as_object_mut()) {
        members.insert("command".into(), line_of(&words).into());
        return Value::Object(std::mem::take::<Map<String, Value>>(members));
    }
    input
}

/// `bash -lc LINE` is LINE; all else the words, quoted where they need it.
fn line_of(words: &[String]) -> String {
    if let [shell, flag, line] = words
        && matches!(flag.as_str(), "-lc" | "-c" | "-ic" | "-Command")
        && shell.rsplit('/').next().is_some_and(|name| name.contains("sh"))
    {
        return line.clone();
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:,@%+~".contains(c);
    let quoted = words.iter().map(|word| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r"'\''"))
        }
    });
    quoted.collect::<Vec<_>>().join(" ")
}
