//! OpenAI's chat completions, and what its many imitators make of them.
//!
//! Read generously: content may be a text, null or a list of parts; reasoning stands in `reasoning_content`,
//! `reasoning` or `reasoning_details`; tool calls come in every shape that the tests of `call_pieces` list, or as the old
//! `function_call`. Only choice 0 counts. A refusal is text of the answer. What is not known becomes
//! [`Delta::Other`].

use serde_json::{Map, Value, json};

use super::call_pieces::{CallPieces, Piece};
use super::json::{count, is_something, list, text};
use super::{Decode, Failure, Wire, event_json};
use crate::sse::Event;
use crate::{Delta, Error, Finish, Message, Reasoning, Request, Role, ToolChoice, ToolSpec, Usage};

/// OpenAI's chat completions.
pub const WIRE: Wire = Wire {
    name: "openai-chat",
    aliases: &["openai", "openai_chat"],
    base_url: "https://api.openai.com/v1",
    key_env: "OPENAI_API_KEY",
    path: "chat/completions",
    key_header: ("authorization", "Bearer "),
    headers: &[],
    encode,
    at_home,
    decoder: || Box::new(Decoder::default()),
    whole,
};

/// Writes the body of a request; `stream` asks for a stream that also reports usage.
pub fn encode(request: &Request, stream: bool) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("messages".into(), request.messages.iter().map(encode_message).collect());
    if !request.tools.is_empty() {
        body.insert("tools".into(), request.tools.iter().map(encode_tool).collect());
        if let Some(choice) = encode_choice(&request.tool_choice) {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let Some(most) = request.max_tokens {
        body.insert("max_tokens".into(), json!(most));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    if !request.stop.is_empty() {
        body.insert("stop".into(), json!(request.stop));
    }
    if stream {
        body.insert("stream".into(), json!(true));
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    body.extend(request.extra.clone());
    Value::Object(body)
}

/// OpenAI itself wants `max_completion_tokens`; its imitators mostly know only the old name.
fn at_home(body: &mut Map<String, Value>) {
    if let Some(most) = body.remove("max_tokens") {
        body.entry("max_completion_tokens").or_insert(most);
    }
}

fn encode_message(message: &Message) -> Value {
    let mut out = Map::new();
    out.insert("role".into(), json!(message.role.as_str()));
    let silent = message.content.is_empty() && !message.tool_calls.is_empty();
    out.insert("content".into(), if silent { Value::Null } else { json!(message.content) });
    if message.role == Role::Assistant && !message.tool_calls.is_empty() {
        let call = |call: &crate::ToolCall| {
            // A call without arguments is written as an empty text by some servers and refused as one by others.
            let arguments = if call.arguments.trim().is_empty() { "{}" } else { &call.arguments };
            let function = json!({ "name": call.name, "arguments": arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        };
        out.insert("tool_calls".into(), message.tool_calls.iter().map(call).collect());
    }
    if message.role == Role::Tool {
        out.insert("tool_call_id".into(), json!(message.tool_call_id.as_deref().unwrap_or_default()));
    }
    Value::Object(out)
}

fn encode_tool(tool: &ToolSpec) -> Value {
    let mut function = Map::new();
    function.insert("name".into(), json!(tool.name));
    if !tool.description.is_empty() {
        function.insert("description".into(), json!(tool.description));
    }
    function.insert("parameters".into(), tool.schema());
    json!({ "type": "function", "function": function })
}

fn encode_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!("none")),
        ToolChoice::Required => Some(json!("required")),
        ToolChoice::Named(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

/// Reads one streamed answer.
#[derive(Debug, Default)]
pub struct Decoder {
    calls: CallPieces,
    /// The server writes `tool_calls`; a `function_call` beside them says the same again.
    modern_calls: bool,
    answer_id: String,
    /// The last word of why it ended. Some servers say it in every chunk, so it is given out at the end.
    finish: Option<Finish>,
    ended: bool,
    done: bool,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<Delta>) -> Result<(), Error> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let Some(chunk) = event_json(event)? else { return Ok(()) };
        if let Some(failure) = Failure::find(&chunk) {
            return Err(failure.into());
        }
        match (&*event.event, &chunk) {
            ("error", _) => Err(Failure::from_body(event.data.as_bytes()).into()),
            (_, Value::Object(fields)) if fields.contains_key("choices") => self.chunk(fields, out),
            (kind, _) => {
                let named = Some(kind).filter(|kind| !kind.is_empty());
                let kind = named.or_else(|| text(&chunk, "object")).or_else(|| text(&chunk, "type"));
                self.usage(&chunk, out);
                out.push(Delta::other(kind.unwrap_or("message"), &event.data));
                Ok(())
            }
        }
    }

    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), Error> {
        if !self.complete() {
            return Err(Error::cut());
        }
        self.end(out);
        Ok(())
    }

    fn done(&self) -> bool {
        self.done
    }

    fn complete(&self) -> bool {
        self.done || self.finish.is_some()
    }
}

/// Reads a whole answer.
///
/// # Errors
/// [`Error::Malformed`] when it has no choices, [`Error::Provider`] when its choice is an error.
pub fn whole(body: &Value, out: &mut Vec<Delta>) -> Result<(), Error> {
    let mut decoder = Decoder::default();
    match body.as_object().filter(|_| !list(body, "choices").is_empty()) {
        Some(fields) => decoder.chunk(fields, out)?,
        None => return Err(Error::malformed("a chat completion", &body.to_string())),
    }
    decoder.end(out);
    Ok(())
}

impl Decoder {
    fn chunk(&mut self, fields: &Map<String, Value>, out: &mut Vec<Delta>) -> Result<(), Error> {
        let mut choices: &[Value] = &[];
        for (field, value) in fields {
            match field.as_str() {
                "choices" => choices = value.as_array().map_or(&[], Vec::as_slice),
                "id" if self.answer_id.is_empty() => {
                    self.answer_id.push_str(value.as_str().unwrap_or_default())
                }
                "id" | "object" | "created" | "model" | "system_fingerprint" | "service_tier" | "usage"
                | "provider" | "obfuscation" => {}
                _ => other(field, value, out),
            }
        }
        let first = choices.iter().filter(|choice| count(choice, &["index"]).unwrap_or(0) == 0);
        for choice in first {
            self.choice(choice, out)?;
        }
        if let Some(usage) = fields.get("usage") {
            self.usage_counts(usage, out);
        }
        Ok(())
    }

    fn choice(&mut self, choice: &Value, out: &mut Vec<Delta>) -> Result<(), Error> {
        if let Some(failure) = Failure::find(choice) {
            return Err(failure.into());
        }
        for (field, value) in choice.as_object().into_iter().flatten() {
            match field.as_str() {
                "delta" | "message" => self.message(value, out),
                "text" => content(value, out),
                "index" | "finish_reason" => {}
                _ => other(field, value, out),
            }
        }
        if let Some(word) = text(choice, "finish_reason") {
            self.finish = Some(Finish::from_word(word));
        }
        Ok(())
    }

    fn message(&mut self, message: &Value, out: &mut Vec<Delta>) {
        reasoning(message, out);
        self.modern_calls |= !list(message, "tool_calls").is_empty();
        for (field, value) in message.as_object().into_iter().flatten() {
            match field.as_str() {
                "content" | "refusal" => content(value, out),
                "tool_calls" => list(message, field).iter().for_each(|call| self.call(call, out)),
                "function_call" if !self.modern_calls && is_something(value) => {
                    self.call_piece(Piece { index: Some(0), ..function(value) }, value, out);
                }
                "role" | "function_call" | "reasoning_content" | "reasoning" | "reasoning_details" => {}
                _ => other(field, value, out),
            }
        }
    }

    fn call(&mut self, call: &Value, out: &mut Vec<Delta>) {
        // Custom tools have free text where functions have arguments.
        let body = call.get("function").or_else(|| call.get("custom")).unwrap_or(&Value::Null);
        let piece = Piece { index: count(call, &["index"]), id: text(call, "id"), ..function(body) };
        self.call_piece(piece, body, out);
    }

    fn call_piece(&mut self, piece: Piece<'_>, body: &Value, out: &mut Vec<Delta>) {
        let arguments = match body.get("arguments").or_else(|| body.get("input")) {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(whole) => whole.to_string(),
        };
        out.extend(self.calls.add(piece, arguments));
    }

    /// Ends the answer with the provider's word; without one if it never came.
    fn end(&mut self, out: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.ended, true) {
            self.calls.missing_ids(&self.answer_id, out);
            out.push(Delta::Finish(self.finish.clone().unwrap_or_else(|| Finish::from_word(""))));
        }
    }

    fn usage(&self, chunk: &Value, out: &mut Vec<Delta>) {
        chunk.get("usage").into_iter().for_each(|usage| self.usage_counts(usage, out));
    }

    fn usage_counts(&self, usage: &Value, out: &mut Vec<Delta>) {
        let usage = Usage {
            input_tokens: count(usage, &["prompt_tokens"]),
            output_tokens: count(usage, &["completion_tokens"]),
            reasoning_tokens: count(usage, &["completion_tokens_details", "reasoning_tokens"]),
            cached_tokens: count(usage, &["prompt_tokens_details", "cached_tokens"]),
            cache_write_tokens: None,
        };
        if !usage.is_empty() {
            out.push(Delta::Usage(usage));
        }
    }
}

fn function(body: &Value) -> Piece<'_> {
    Piece { name: text(body, "name"), ..Piece::default() }
}

fn other(field: &str, value: &Value, out: &mut Vec<Delta>) {
    if is_something(value) {
        out.push(Delta::other(field, value));
    }
}

/// A text, null, or a list of parts.
fn content(value: &Value, out: &mut Vec<Delta>) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(text) => out.push(Delta::Content(text.clone())),
        Value::Array(parts) => parts.iter().for_each(|part| content_part(part, out)),
        value => other("content", value, out),
    }
}

fn content_part(part: &Value, out: &mut Vec<Delta>) {
    match text(part, "type").unwrap_or_default() {
        "text" | "output_text" => out.extend(text(part, "text").map(|text| Delta::Content(text.into()))),
        "refusal" => out.extend(text(part, "refusal").map(|text| Delta::Content(text.into()))),
        "thinking" => {
            let nested = list(part, "thinking").iter().filter_map(|inner| text(inner, "text"));
            let pieces = text(part, "thinking").into_iter().chain(nested);
            out.extend(pieces.map(|text| Delta::Reasoning(text.into())));
        }
        kind => other(if kind.is_empty() { "content" } else { kind }, part, out),
    }
}

/// Reasoning stands in one of three fields; servers that fill several of them say the same in each.
fn reasoning(message: &Value, out: &mut Vec<Delta>) {
    let plain = text(message, "reasoning_content").or_else(|| text(message, "reasoning"));
    out.extend(plain.map(|text| Delta::Reasoning(text.into())));
    for detail in list(message, "reasoning_details") {
        if plain.is_none() {
            let piece = text(detail, "text").or_else(|| text(detail, "summary"));
            out.extend(piece.map(|text| Delta::Reasoning(text.into())));
        }
        let (signature, redacted) = (text(detail, "signature"), text(detail, "data"));
        if signature.is_some() || redacted.is_some() {
            let mark = Reasoning {
                text: String::new(),
                signature: signature.map(Into::into),
                redacted: redacted.map(Into::into),
            };
            out.push(Delta::ReasoningSignature(mark));
        }
    }
}
