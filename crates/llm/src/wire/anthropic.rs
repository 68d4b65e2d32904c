//! Anthropic's messages.
//!
//! The conversation alternates strictly there: messages of one side in a row become one, tool results belong to the
//! user's side and come first in it, system messages stand apart. Thinking goes back only with its signature. In a
//! stream, blocks are numbered; only `tool_use` blocks are calls for the caller, tools that the provider runs itself
//! become [`Delta::Other`].

use serde_json::{Map, Value, json};

use super::json::{count, is_something, list, text};
use super::{Decode, Failure, Wire, event_json};
use crate::sse::Event;
use crate::{Delta, Error, Finish, Message, Reasoning, Request, Role, ToolCall, ToolChoice, Usage};

/// Anthropic's messages.
pub const WIRE: Wire = Wire {
    name: "anthropic",
    aliases: &["anthropic-messages", "claude"],
    base_url: "https://api.anthropic.com",
    key_env: "ANTHROPIC_API_KEY",
    path: "messages",
    key_header: ("x-api-key", ""),
    headers: &[("anthropic-version", "2023-06-01")],
    encode,
    at_home: |_| {},
    decoder: || Box::new(Decoder::default()),
    whole,
};

/// Sent when a request names no limit: this provider insists on one, and all its models can do this much.
pub const DEFAULT_MAX_TOKENS: u32 = 4096;

/// Writes the body of a request.
pub fn encode(request: &Request, stream: bool) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), json!(request.model));
    body.insert("max_tokens".into(), json!(request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS)));
    let system: Vec<&str> =
        request.messages.iter().filter(|m| m.role == Role::System).map(|m| m.content.as_str()).collect();
    if !system.is_empty() {
        body.insert("system".into(), json!(system.join("\n\n")));
    }
    body.insert("messages".into(), encode_messages(&request.messages));
    if !request.tools.is_empty() {
        let tool = |tool: &crate::ToolSpec| json!({ "name": tool.name, "description": tool.description, "input_schema": tool.schema() });
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
        if let Some(choice) = encode_choice(&request.tool_choice) {
            body.insert("tool_choice".into(), choice);
        }
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".into(), json!(temperature));
    }
    if !request.stop.is_empty() {
        body.insert("stop_sequences".into(), json!(request.stop));
    }
    if stream {
        body.insert("stream".into(), json!(true));
    }
    body.extend(request.extra.clone());
    Value::Object(body)
}

fn encode_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Named(name) => Some(json!({ "type": "tool", "name": name })),
    }
}

/// Messages of one side in a row become one; what has no content is left out.
fn encode_messages(messages: &[Message]) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in messages {
        let (side, blocks) = match message.role {
            Role::System => continue,
            Role::Assistant => ("assistant", assistant_blocks(message)),
            Role::User => ("user", text_block(&message.content).into_iter().collect()),
            Role::Tool => ("user", vec![result_block(message)]),
        };
        match turns.last_mut() {
            Some((last, content)) if *last == side => content.extend(blocks),
            _ if blocks.is_empty() => {}
            _ => turns.push((side, blocks)),
        }
    }
    let turn = |(side, mut blocks): (&str, Vec<Value>)| {
        if side == "user" {
            blocks.sort_by_key(|block| block.get("tool_use_id").is_none());
        }
        json!({ "role": side, "content": blocks })
    };
    turns.into_iter().map(turn).collect()
}

/// Blank text blocks are refused by the provider.
fn text_block(text: &str) -> Option<Value> {
    (!text.trim().is_empty()).then(|| json!({ "type": "text", "text": text }))
}

fn result_block(message: &Message) -> Value {
    let id = message.tool_call_id.as_deref().unwrap_or_default();
    let mut block = json!({ "type": "tool_result", "tool_use_id": id, "content": message.content });
    if let (true, Some(fields)) = (message.is_error, block.as_object_mut()) {
        fields.insert("is_error".into(), json!(true));
    }
    block
}

fn assistant_blocks(message: &Message) -> Vec<Value> {
    let thoughts =
        message.reasoning.iter().filter_map(|thought| match (&thought.redacted, &thought.signature) {
            (Some(data), _) => Some(json!({ "type": "redacted_thinking", "data": data })),
            (None, Some(signature)) => {
                Some(json!({ "type": "thinking", "thinking": thought.text, "signature": signature }))
            }
            (None, None) => None,
        });
    let calls = message
        .tool_calls
        .iter()
        .map(|call| json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input(call) }));
    thoughts.chain(text_block(&message.content)).chain(calls).collect()
}

/// The provider takes objects only. What the model wrote instead goes back to it under a name that says so.
fn input(call: &ToolCall) -> Value {
    match super::json::parse(&call.arguments) {
        Some(object @ Value::Object(_)) => object,
        None if call.arguments.trim().is_empty() => json!({}),
        _ => json!({ "not_an_object": call.arguments }),
    }
}

/// Reads one streamed answer.
#[derive(Debug, Default)]
pub struct Decoder {
    blocks: Vec<Block>,
    n_calls: u32,
    /// The last word of why it ended; given out at the end, so that nothing comes after it.
    finish: Option<Finish>,
    ended: bool,
    done: bool,
}

/// A block that has begun.
#[derive(Debug)]
struct Block {
    index: u64,
    /// Its call, when it is one for the caller.
    call: Option<Call>,
}

#[derive(Debug)]
struct Call {
    index: u32,
    /// The input that stood in the block's beginning; counts if no piece follows.
    input: String,
    has_pieces: bool,
}

impl Decode for Decoder {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<Delta>) -> Result<(), Error> {
        if event.data.trim() == "[DONE]" {
            self.done = true;
            return Ok(());
        }
        let Some(value) = event_json(event)? else { return Ok(()) };
        let kind = text(&value, "type").unwrap_or(&event.event);
        if kind == "error" {
            return Err(Failure::from_body(event.data.as_bytes()).into());
        }
        if let Some(failure) = Failure::find(&value) {
            return Err(failure.into());
        }
        match kind {
            "message_start" => self.message_start(value.get("message").unwrap_or(&Value::Null), out),
            "content_block_start" => self.block_start(&value, out),
            "content_block_delta" => self.block_delta(&value, out),
            "content_block_stop" => self.block_stop(self.block_index(&value), out),
            "message_delta" => self.message_delta(&value, out),
            "message_stop" => self.done = true,
            "ping" => {}
            kind => out.push(Delta::other(if kind.is_empty() { "message" } else { kind }, &event.data)),
        }
        Ok(())
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
/// [`Error::Malformed`] when it has no list of content blocks.
pub fn whole(body: &Value, out: &mut Vec<Delta>) -> Result<(), Error> {
    if !body.get("content").is_some_and(Value::is_array) {
        return Err(Error::malformed("a message", &body.to_string()));
    }
    let mut decoder = Decoder::default();
    decoder.message_start(body, out);
    decoder.finish = text(body, "stop_reason").map(Finish::from_word);
    decoder.end(out);
    Ok(())
}

impl Decoder {
    /// A stream's message begins empty; a whole answer, and some servers, have its blocks in it.
    fn message_start(&mut self, message: &Value, out: &mut Vec<Delta>) {
        for (index, block) in list(message, "content").iter().enumerate() {
            self.block_start(&json!({ "index": index, "content_block": block }), out);
            self.block_stop(index as u64, out);
        }
        usage(message, out);
    }

    fn block_start(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let index = count(event, &["index"]).unwrap_or(self.blocks.len() as u64);
        let block = event.get("content_block").unwrap_or(&Value::Null);
        let mut call = None;
        match text(block, "type").unwrap_or_default() {
            "text" => out.extend(text(block, "text").map(|text| Delta::Content(text.into()))),
            "thinking" => {
                out.extend(text(block, "thinking").map(|text| Delta::Reasoning(text.into())));
                out.extend(text(block, "signature").map(signed));
            }
            "redacted_thinking" => out.extend(text(block, "data").map(redacted)),
            "tool_use" => {
                let input = block.get("input").filter(|input| is_something(input));
                let input = input.map_or_else(|| "{}".to_owned(), Value::to_string);
                call = Some(Call { index: self.n_calls, input, has_pieces: false });
                let owned = |field| text(block, field).map(str::to_owned);
                let id = owned("id").unwrap_or_else(|| format!("toolu_{}", self.n_calls));
                let (index, name) = (self.n_calls, owned("name"));
                out.push(Delta::ToolCall { index, id: Some(id), name, arguments: String::new() });
                self.n_calls += 1;
            }
            kind => out.push(Delta::other(if kind.is_empty() { "content_block" } else { kind }, block)),
        }
        self.blocks.push(Block { index, call });
    }

    fn block_delta(&mut self, event: &Value, out: &mut Vec<Delta>) {
        let index = self.block_index(event);
        let delta = event.get("delta").unwrap_or(&Value::Null);
        match text(delta, "type").unwrap_or_default() {
            "text_delta" => out.extend(text(delta, "text").map(|text| Delta::Content(text.into()))),
            "thinking_delta" => out.extend(text(delta, "thinking").map(|text| Delta::Reasoning(text.into()))),
            "signature_delta" => out.extend(text(delta, "signature").map(signed)),
            "input_json_delta" => match (self.call(index), text(delta, "partial_json")) {
                (Some(call), Some(piece)) => {
                    call.has_pieces = true;
                    out.push(Delta::ToolCall {
                        index: call.index,
                        id: None,
                        name: None,
                        arguments: piece.into(),
                    });
                }
                (None, Some(_)) => out.push(Delta::other("input_json_delta", delta)),
                (_, None) => {}
            },
            kind => out.push(Delta::other(if kind.is_empty() { "content_block_delta" } else { kind }, delta)),
        }
    }

    fn block_stop(&mut self, index: u64, out: &mut Vec<Delta>) {
        if let Some(call) = self.call(index).filter(|call| !call.has_pieces) {
            call.has_pieces = true;
            let arguments = std::mem::take(&mut call.input);
            out.push(Delta::ToolCall { index: call.index, id: None, name: None, arguments });
        }
    }

    fn message_delta(&mut self, event: &Value, out: &mut Vec<Delta>) {
        usage(event, out);
        if let Some(word) = event.get("delta").and_then(|delta| text(delta, "stop_reason")) {
            self.finish = Some(Finish::from_word(word));
        }
    }

    fn end(&mut self, out: &mut Vec<Delta>) {
        if !std::mem::replace(&mut self.ended, true) {
            out.push(Delta::Finish(self.finish.clone().unwrap_or_else(|| Finish::from_word(""))));
        }
    }

    /// The event's block; the one that began last when it does not say.
    fn block_index(&self, event: &Value) -> u64 {
        count(event, &["index"]).or(self.blocks.last().map(|block| block.index)).unwrap_or(0)
    }

    fn call(&mut self, index: u64) -> Option<&mut Call> {
        self.blocks.iter_mut().rev().find(|block| block.index == index)?.call.as_mut()
    }
}

fn signed(signature: &str) -> Delta {
    Delta::ReasoningSignature(Reasoning { signature: Some(signature.into()), ..Reasoning::default() })
}

fn redacted(data: &str) -> Delta {
    Delta::ReasoningSignature(Reasoning { redacted: Some(data.into()), ..Reasoning::default() })
}

/// This provider counts cached tokens beside the others, not among them.
fn usage(message: &Value, out: &mut Vec<Delta>) {
    let n = |field| count(message, &["usage", field]);
    let (read, written) = (n("cache_read_input_tokens"), n("cache_creation_input_tokens"));
    let cached = read.unwrap_or(0).saturating_add(written.unwrap_or(0));
    let usage = Usage {
        input_tokens: n("input_tokens").map(|fresh| fresh.saturating_add(cached)),
        output_tokens: n("output_tokens"),
        reasoning_tokens: None,
        cached_tokens: read,
        cache_write_tokens: written,
    };
    if !usage.is_empty() {
        out.push(Delta::Usage(usage));
    }
}
