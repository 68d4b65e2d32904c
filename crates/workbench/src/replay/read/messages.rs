//! Lists of messages as requests have them: OpenAI's chat completions and responses, Anthropic's messages.
//!
//! | where | what |
//! |---|---|
//! | a line | an object with `messages` or `input` (also inside `body`), or a bare list: a session; a message: the next of the file's one session |
//! | a whole file | the same, written over several lines; also a list of such objects |
//!
//! The three shapes are told apart message by message: `tool_calls` with the role `tool`, blocks `tool_use` and
//! `tool_result`, items `function_call` and `function_call_output`. What has the role `system` or `developer` is no event.

use super::Reader;
use super::text::{arguments, joined, take, take_text};
use crate::replay::format::is_list;
use crate::replay::step::{Outcome, Step, Told};
use hookgate_agents::agent::Agent;
use hookgate_agents::call::Call;
use hookgate_core::event::{Origin, Role};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) struct Messages {
    agent: Option<&'static dyn Agent>,
    begun: bool,
}

impl Messages {
    pub(super) fn new(agent: Option<&'static dyn Agent>) -> Messages {
        Messages { agent, begun: false }
    }
}

impl Reader for Messages {
    fn line(&mut self, number: u64, line: Value, told: &mut Vec<Told>) -> Result<(), String> {
        let mut tell = |step| told.push(Told { line: number, agent: None, time: None, step });
        self.value(line, &mut tell)
    }
}

impl Messages {
    fn value(&mut self, value: Value, tell: &mut dyn FnMut(Step)) -> Result<(), String> {
        match value {
            Value::Array(items) => {
                if !items.first().is_some_and(holds_a_list) {
                    self.begun = false;
                }
                items.into_iter().try_for_each(|item| self.value(item, tell))
            }
            list @ Value::Object(_) if holds_a_list(&list) => self.list(list, tell),
            item @ Value::Object(_) => {
                self.begin(None, tell);
                self.item(item, tell)
            }
            _ => Err("it is no message".into()),
        }
    }

    fn begin(&mut self, session: Option<String>, tell: &mut dyn FnMut(Step)) {
        if !std::mem::replace(&mut self.begun, true) {
            tell(Step::Begin { session });
        }
    }

    /// An object with the list in it.
    fn list(&mut self, mut value: Value, tell: &mut dyn FnMut(Step)) -> Result<(), String> {
        let ids = ["session_id", "conversation_id", "custom_id", "id"];
        let session = ids.iter().find_map(|name| take_text(&mut value, name));
        let mut body = take(&mut value, "body");
        let holder = if body.is_object() { &mut body } else { &mut value };
        let list = match take(holder, "messages") {
            Value::Null => take(holder, "input"),
            list => list,
        };
        let Value::Array(items) = list else { return Err("its list of messages is none".into()) };
        self.begun = false;
        self.begin(session, tell);
        // an empty list is the head of the messages that follow; behind a full one comes another session
        let is_head = items.is_empty();
        let result = items.into_iter().try_for_each(|item| self.item(item, tell));
        self.begun = is_head;
        result
    }

    fn item(&self, mut item: Value, tell: &mut dyn FnMut(Step)) -> Result<(), String> {
        let kind = take_text(&mut item, "type").unwrap_or_default();
        let role = take_text(&mut item, "role");
        match (kind.as_str(), role.as_deref()) {
            ("function_call", _) => {
                let input = arguments(take(&mut item, "arguments"));
                self.call(&mut item, &["call_id", "id"], input, tell);
            }
            ("function_call_output", _) => {
                let text = joined(&take(&mut item, "output"));
                result(take_text(&mut item, "call_id"), text, false, tell);
            }
            ("reasoning", _) => {
                let text = joined(&take(&mut item, "summary"));
                piece(true, Some(text), tell);
            }
            (_, Some("user")) => user(take(&mut item, "content"), tell),
            (_, Some("assistant")) => self.assistant(&mut item, tell),
            (_, Some("tool" | "function")) => {
                let id = take_text(&mut item, "tool_call_id").or_else(|| take_text(&mut item, "name"));
                result(id, joined(&take(&mut item, "content")), false, tell);
            }
            (_, Some("system" | "developer")) => {}
            (_, Some(role)) => {
                return Err(format!("unknown role `{}`", role.chars().take(40).collect::<String>()));
            }
            // items of hosted tools and the like
            (kind, None) if !kind.is_empty() => {}
            _ => return Err("it is no message".into()),
        }
        Ok(())
    }

    fn assistant(&self, item: &mut Value, tell: &mut dyn FnMut(Step)) {
        tell(Step::AnswerEnd);
        for name in ["reasoning_content", "reasoning"] {
            piece(true, take_text(item, name), tell);
        }
        match take(item, "content") {
            Value::Array(parts) => {
                for mut part in parts {
                    let kind = take_text(&mut part, "type").unwrap_or_default();
                    match kind.as_str() {
                        "tool_use" => {
                            let input = take(&mut part, "input");
                            self.call(&mut part, &["id"], input, tell);
                        }
                        "thinking" => piece(true, take_text(&mut part, "thinking"), tell),
                        "refusal" => piece(false, take_text(&mut part, "refusal"), tell),
                        _ => piece(false, take_text(&mut part, "text"), tell),
                    }
                }
            }
            Value::String(text) => piece(false, Some(text), tell),
            _ => {}
        }
        if let Value::Array(calls) = take(item, "tool_calls") {
            for mut call in calls {
                let mut function = take(&mut call, "function");
                let input = arguments(take(&mut function, "arguments"));
                if let (Some(id), Some(members)) = (take_text(&mut call, "id"), function.as_object_mut()) {
                    members.insert("id".into(), id.into());
                }
                self.call(&mut function, &["id", "name"], input, tell);
            }
        }
        // before there were tool calls; the result names the function
        let mut function = take(item, "function_call");
        if function.is_object() {
            let input = arguments(take(&mut function, "arguments"));
            self.call(&mut function, &["name"], input, tell);
        }
    }

    fn call(&self, from: &mut Value, ids: &[&str], input: Value, tell: &mut dyn FnMut(Step)) {
        let id =
            ids.iter().find_map(|name| from.get(name).and_then(Value::as_str)).unwrap_or_default().to_owned();
        let Some(name) = take_text(from, "name") else { return };
        let call = match self.agent {
            Some(agent) => agent.call(&name, &input, None),
            None => Call::plain(name, input),
        };
        tell(Step::Call { id, call: Box::new(call) });
    }
}

/// Whether there is a list of messages in this object.
fn holds_a_list(value: &Value) -> bool {
    let body = value.get("body").filter(|body| body.is_object()).unwrap_or(value);
    !value.is_array() && ["messages", "input"].iter().any(|name| body.get(name).is_some_and(Value::is_array))
}

fn user(content: Value, tell: &mut dyn FnMut(Step)) {
    let parts = match content {
        Value::Array(parts) => parts,
        text => vec![text],
    };
    let mut texts = Vec::new();
    for mut part in parts {
        if part.get("type").is_some_and(|kind| kind == "tool_result") {
            let failed = part.get("is_error").and_then(Value::as_bool).unwrap_or(false);
            let text = joined(&take(&mut part, "content"));
            result(take_text(&mut part, "tool_use_id"), text, failed, tell);
        } else if let Some(text) = part.as_str().map(str::to_owned).or_else(|| take_text(&mut part, "text")) {
            texts.push(text);
        }
    }
    if texts.iter().any(|text| !text.is_empty()) {
        tell(Step::Prompt(texts.join("\n")));
    }
}

fn piece(is_thought: bool, text: Option<String>, tell: &mut dyn FnMut(Step)) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        tell(Step::Piece { is_thought, text });
    }
}

fn result(id: Option<String>, text: String, failed: bool, tell: &mut dyn FnMut(Step)) {
    let outcome =
        if failed { Outcome::Error(text.clone()) } else { Outcome::Output(Value::String(text.clone())) };
    tell(Step::Result { id: id.unwrap_or_default(), outcome });
    tell(Step::Message { role: Role::Tool, origin: Origin::Tool, text });
}

/// The parts of a document that is written over several lines: what is handed to the reader, each with its line.
///
/// # Errors
/// It is no JSON, or holds no list of messages; one sentence.
pub(crate) fn document(text: &str) -> Result<Vec<(u64, Value)>, String> {
    let mut gathered = Gathered { lines: LineCount { whole: text, place: 0, line: 1 }, parts: Vec::new() };
    gathered.go_into(text)?;
    if gathered.parts.is_empty() { Err(NO_LIST.into()) } else { Ok(gathered.parts) }
}

const NO_LIST: &str = "it holds no list of messages";

/// The parts of a document on the way through it.
struct Gathered<'a> {
    lines: LineCount<'a>,
    parts: Vec<(u64, Value)>,
}

/// Counts lines. It is asked about places in their order, so that each line is looked at once.
struct LineCount<'a> {
    whole: &'a str,
    place: usize,
    line: u64,
}

impl LineCount<'_> {
    /// The line in which a part of the text begins.
    fn of(&mut self, part: &str) -> u64 {
        let place = part.as_ptr().addr().saturating_sub(self.whole.as_ptr().addr());
        if let Some(between) = self.whole.as_bytes().get(self.place..place) {
            let lines = memchr::memchr_iter(b'\n', between).count();
            self.line = self.line.saturating_add(u64::try_from(lines).unwrap_or(0));
            self.place = place;
        }
        self.line
    }
}

impl Gathered<'_> {
    /// Goes into lists, so that each message has its line. A list inside an object becomes a list of its own.
    fn go_into(&mut self, part: &str) -> Result<(), String> {
        #[derive(serde::Deserialize)]
        struct Holder<'a> {
            #[serde(borrow)]
            messages: Option<&'a RawValue>,
            #[serde(borrow)]
            input: Option<&'a RawValue>,
            #[serde(borrow)]
            body: Option<&'a RawValue>,
        }
        if part.trim_start().starts_with('[') {
            let items: Vec<&RawValue> =
                serde_json::from_str(part).map_err(|error| self.wrong(part, &error))?;
            return self.go_through(&items);
        }
        let holder: Holder<'_> = serde_json::from_str(part).map_err(|error| self.wrong(part, &error))?;
        match (holder.messages.or(holder.input), holder.body) {
            (Some(list), _) => {
                // an empty object with a list says where a session begins
                let line = self.lines.of(part);
                self.parts.push((line, serde_json::json!({"messages": []})));
                self.go_into(list.get())
            }
            (None, Some(body)) => self.go_into(body.get()),
            (None, None) => Err(NO_LIST.into()),
        }
    }

    fn go_through(&mut self, items: &[&RawValue]) -> Result<(), String> {
        let first = items.first().and_then(|item| serde_json::from_str::<Value>(item.get()).ok());
        if first.is_some_and(|first| holds_a_list(&first)) {
            return items.iter().try_for_each(|item| self.go_into(item.get()));
        }
        for item in items {
            let value: Value =
                serde_json::from_str(item.get()).map_err(|error| self.wrong(item.get(), &error))?;
            if self.parts.is_empty() && !is_list(&value) {
                return Err(NO_LIST.into());
            }
            let line = self.lines.of(item.get());
            self.parts.push((line, value));
        }
        Ok(())
    }

    /// What is wrong with a part, with its line in the whole.
    fn wrong(&mut self, part: &str, error: &serde_json::Error) -> String {
        if error.is_data() {
            return NO_LIST.to_owned();
        }
        let inside = u64::try_from(error.line()).unwrap_or(1);
        let line = self.lines.of(part).saturating_add(inside).saturating_sub(1);
        format!("it is not JSON (line {line}, column {})", error.column())
    }
}
