//! Answers and requests as the four providers write them, and answers as a client reads them.

use hookgate_llm::proxy::{
    ANTHROPIC, ChannelKind, Exchange, GEMINI, Middle, OPENAI_CHAT, OPENAI_RESPONSES, Piece, read_json,
};
use hookgate_llm::sse::Parser;
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wire {
    Chat,
    Responses,
    Messages,
    Gemini,
}

pub(crate) const WIRES: [Wire; 4] = [Wire::Chat, Wire::Responses, Wire::Messages, Wire::Gemini];

/// What the model says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    /// One event each.
    pub(crate) text: Vec<String>,
    pub(crate) calls: Vec<Call>,
    /// The calls' arguments come in turns.
    pub(crate) interleaved: bool,
    /// It is the second of two answers; the first says "ok".
    pub(crate) second: bool,
}

/// A tool call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) name: String,
    /// JSON text, one event each (on a wire that cuts them).
    pub(crate) arguments: Vec<String>,
}

impl Call {
    pub(crate) fn new(name: &str, arguments: &str) -> Call {
        Call { name: name.into(), arguments: vec![arguments.into()] }
    }

    pub(crate) fn cut(name: &str, arguments: &[&str]) -> Call {
        Call { name: name.into(), arguments: arguments.iter().map(|piece| (*piece).to_owned()).collect() }
    }

    fn whole(&self) -> String {
        self.arguments.concat()
    }

    fn value(&self) -> Value {
        serde_json::from_str(&self.whole()).unwrap()
    }
}

/// A text of these pieces.
pub(crate) fn says(pieces: &[&str]) -> Answer {
    Answer { text: pieces.iter().map(|piece| (*piece).to_owned()).collect(), ..Answer::default() }
}

pub(crate) fn calls(calls: Vec<Call>) -> Answer {
    Answer { calls, ..Answer::default() }
}

impl Answer {
    pub(crate) fn and(mut self, call: Call) -> Answer {
        self.calls.push(call);
        self
    }

    fn index(&self) -> usize {
        usize::from(self.second)
    }
}

/// What a client read.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Seen {
    pub(crate) texts: BTreeMap<u32, String>,
    pub(crate) reasoning: String,
    /// Name and arguments.
    pub(crate) calls: Vec<(String, String)>,
    pub(crate) finish: Vec<String>,
    pub(crate) errors: Vec<String>,
    pub(crate) done: usize,
    pub(crate) usage: (Option<u64>, Option<u64>),
    /// It is a whole answer by the wire's rules.
    pub(crate) whole: bool,
}

impl Seen {
    pub(crate) fn text(&self) -> &str {
        self.texts.get(&0).map_or("", String::as_str)
    }

    pub(crate) fn finish(&self) -> &str {
        self.finish.first().map_or("", String::as_str)
    }

    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text { channel, text } => match channel.kind {
                ChannelKind::Content => self.texts.entry(channel.choice).or_default().push_str(&text),
                ChannelKind::Reasoning => self.reasoning.push_str(&text),
                ChannelKind::Call(_) => {}
            },
            Piece::CallEnd { call, .. } => self.calls.push((call.name, call.arguments)),
            Piece::Finish { reason, .. } => self.finish.push(reason.into_owned()),
            Piece::Error(text) => self.errors.push(text.into_owned()),
            Piece::Done => self.done += 1,
            Piece::Closing { .. } | Piece::Loose { .. } => {}
            Piece::Usage { input, output } => self.usage = (input.or(self.usage.0), output.or(self.usage.1)),
            Piece::CallBegin { .. } | Piece::Aside(_) => {}
        }
    }
}

impl Wire {
    pub(crate) fn middle(self) -> &'static dyn Middle {
        match self {
            Wire::Chat => &OPENAI_CHAT,
            Wire::Responses => &OPENAI_RESPONSES,
            Wire::Messages => &ANTHROPIC,
            Wire::Gemini => &GEMINI,
        }
    }

    pub(crate) fn path(self, stream: bool) -> &'static str {
        match (self, stream) {
            (Wire::Chat, _) => "/v1/chat/completions",
            (Wire::Responses, _) => "/v1/responses",
            (Wire::Messages, _) => "/v1/messages",
            (Wire::Gemini, true) => "/v1beta/models/m:streamGenerateContent?alt=sse",
            (Wire::Gemini, false) => "/v1beta/models/m:generateContent",
        }
    }

    /// A request with one message of the user.
    pub(crate) fn request(self, stream: bool, text: &str) -> Value {
        self.turns(stream, &[text])
    }

    /// A request in which user and model spoke in turns, the user last.
    pub(crate) fn turns(self, stream: bool, texts: &[&str]) -> Value {
        let role = |n: usize| if n.is_multiple_of(2) { "user" } else { "assistant" };
        let simple: Vec<Value> =
            texts.iter().enumerate().map(|(n, text)| json!({"role": role(n), "content": text})).collect();
        match self {
            Wire::Chat => {
                json!({"model": "m", "stream": stream, "messages": simple, "x_odd": [1, {"a": null}]})
            }
            Wire::Responses => {
                json!({"model": "m", "stream": stream, "input": simple, "x_odd": [1, {"a": null}]})
            }
            Wire::Messages => {
                json!({"model": "m", "max_tokens": 9, "stream": stream, "messages": simple, "x_odd": 1})
            }
            Wire::Gemini => {
                let part = |(n, text): (usize, &&str)| {
                    let role = if n % 2 == 0 { "user" } else { "model" };
                    json!({"role": role, "parts": [{"text": text}]})
                };
                json!({"contents": texts.iter().enumerate().map(part).collect::<Vec<_>>(), "x_odd": 1})
            }
        }
    }

    /// The user asks, the model calls `shell`, the tool answers.
    pub(crate) fn with_result(self, stream: bool, output: &str, failed: bool) -> Value {
        let mut request = self.request(stream, "do it");
        let (list, more) = match self {
            Wire::Chat => (
                "messages",
                json!([
                {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "shell", "arguments": "{\"command\":\"ls\"}"}}]},
                {"role": "tool", "tool_call_id": "c1", "content": output}]),
            ),
            Wire::Responses => (
                "input",
                json!([
                {"type": "function_call", "call_id": "c1", "name": "shell", "arguments": "{\"command\":\"ls\"}"},
                {"type": "function_call_output", "call_id": "c1", "output": output}]),
            ),
            Wire::Messages => (
                "messages",
                json!([
                {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "shell", "input": {"command": "ls"}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": output, "is_error": failed}]}]),
            ),
            Wire::Gemini => (
                "contents",
                json!([
                {"role": "model", "parts": [{"functionCall": {"name": "shell", "args": {"command": "ls"}}}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "shell", "response": if failed { json!({"error": output}) } else { json!({"result": output}) }}}]}]),
            ),
        };
        request[list].as_array_mut().unwrap().extend(more.as_array().unwrap().iter().cloned());
        request
    }

    /// All texts of a request, one after the other, as JSON.
    pub(crate) fn messages(self, request: &Value) -> Vec<Value> {
        let list = match self {
            Wire::Chat | Wire::Messages => "messages",
            Wire::Responses => "input",
            Wire::Gemini => "contents",
        };
        request[list].as_array().cloned().unwrap_or_default()
    }

    pub(crate) fn stream(self, answer: &Answer) -> Vec<String> {
        match self {
            Wire::Chat => chat(answer),
            Wire::Responses => responses(answer),
            Wire::Messages => messages(answer),
            Wire::Gemini => gemini(answer),
        }
    }

    /// The same in one piece.
    pub(crate) fn body(self, answer: &Answer) -> Value {
        let text = answer.text.concat();
        let ended = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
        match self {
            Wire::Chat => {
                let calls: Vec<Value> = answer
                    .calls
                    .iter()
                    .enumerate()
                    .map(|(n, call)| {
                        json!({"id": format!("c{n}"),
                    "type": "function", "function": {"name": call.name, "arguments": call.whole()}})
                    })
                    .collect();
                let mut message = json!({"role": "assistant", "content": if text.is_empty() { Value::Null } else { text.into() }});
                if !calls.is_empty() {
                    message["tool_calls"] = calls.into();
                }
                let choice = json!({"index": answer.index(), "message": message, "finish_reason": ended});
                let first = json!({"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"});
                let choices = if answer.second { json!([first, choice]) } else { json!([choice]) };
                json!({"id": "c1", "object": "chat.completion", "model": "m", "choices": choices, "x_odd": 7,
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}})
            }
            Wire::Responses => {
                let (_, output) = response_items(answer);
                json!({"id": "r1", "object": "response", "status": "completed", "model": "m", "output": output, "x_odd": 7,
                    "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}})
            }
            Wire::Messages => {
                let mut content = Vec::new();
                if !text.is_empty() {
                    content.push(json!({"type": "text", "text": text}));
                }
                content.extend(answer.calls.iter().enumerate().map(|(n, call)| {
                    json!({"type": "tool_use",
                    "id": format!("c{n}"), "name": call.name, "input": call.value()})
                }));
                json!({"id": "m1", "type": "message", "role": "assistant", "model": "m", "content": content, "x_odd": 7,
                    "stop_reason": if ended == "stop" { "end_turn" } else { "tool_use" }, "stop_sequence": null,
                    "usage": {"input_tokens": 10, "output_tokens": 5}})
            }
            Wire::Gemini => {
                let mut parts = Vec::new();
                if !text.is_empty() {
                    parts.push(json!({"text": text}));
                }
                parts.extend(
                    answer
                        .calls
                        .iter()
                        .map(|call| json!({"functionCall": {"name": call.name, "args": call.value()}})),
                );
                let candidate = json!({"content": {"parts": parts, "role": "model"}, "finishReason": "STOP", "index": answer.index()});
                let first = json!({"content": {"parts": [{"text": "ok"}], "role": "model"}, "finishReason": "STOP", "index": 0});
                let candidates = if answer.second { json!([first, candidate]) } else { json!([candidate]) };
                json!({"candidates": candidates, "modelVersion": "m", "responseId": "g1", "x_odd": 7,
                    "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}})
            }
        }
    }

    pub(crate) fn read(self, body: &[u8]) -> Seen {
        let mut seen = Seen::default();
        if let Some(value) = read_json(body).filter(|value| value.is_object() || value.is_array()) {
            let read = self.middle().exchange(true).read_body(&value, &mut |piece| seen.take(piece));
            if let Err(odd) = read {
                seen.errors.push(odd.to_string());
            }
            seen.whole = seen.errors.is_empty();
            return seen;
        }
        let mut exchange: Box<dyn Exchange> = self.middle().exchange(false);
        let mut parser = Parser::new();
        parser.push(body);
        parser.finish();
        while let Some(event) = parser.next_event().unwrap() {
            if let Err(odd) = exchange.read(&event, &mut |piece| seen.take(piece)) {
                seen.errors.push(odd.to_string());
            }
        }
        seen.whole = exchange.ended(&mut |piece| seen.take(piece));
        seen
    }
}

/// As a provider, who gives no id twice.
fn id_of(kind: &str, what: &str) -> String {
    let sum = what.bytes().fold(7u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(byte.into()));
    format!("{kind}_{sum:x}")
}

/// The calls' pieces in the order in which they come.
fn pieces(answer: &Answer) -> Vec<(usize, usize)> {
    let of = |call: usize| (0..answer.calls[call].arguments.len()).map(move |piece| (call, piece));
    let mut all: Vec<(usize, usize)> = (0..answer.calls.len()).flat_map(of).collect();
    if answer.interleaved {
        all.sort_by_key(|(call, piece)| (*piece, *call));
    }
    all
}

fn data(value: &Value) -> String {
    format!("data: {value}\n\n")
}

fn chat(answer: &Answer) -> Vec<String> {
    let index = answer.index();
    let chunk = |index: usize, delta: Value, finish: Value| {
        data(&json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "x_odd": 7,
            "choices": [{"index": index, "delta": delta, "finish_reason": finish}]}))
    };
    let mut out = vec![chunk(index, json!({"role": "assistant", "content": ""}), Value::Null)];
    if answer.second {
        out.push(chunk(0, json!({"role": "assistant", "content": "ok"}), Value::Null));
    }
    out.extend(answer.text.iter().map(|text| chunk(index, json!({"content": text}), Value::Null)));
    let begin = |call: usize| {
        let function = json!({"name": answer.calls[call].name, "arguments": ""});
        let begun =
            json!({"index": call, "id": format!("c{call}"), "type": "function", "function": function});
        chunk(index, json!({"tool_calls": [begun]}), Value::Null)
    };
    if answer.interleaved {
        out.extend((0..answer.calls.len()).map(begin));
    }
    for (call, piece) in pieces(answer) {
        if piece == 0 && !answer.interleaved {
            out.push(begin(call));
        }
        let more = json!({"index": call, "function": {"arguments": answer.calls[call].arguments[piece]}});
        out.push(chunk(index, json!({"tool_calls": [more]}), Value::Null));
    }
    let ended = if answer.calls.is_empty() { "stop" } else { "tool_calls" };
    if answer.second {
        out.push(chunk(0, json!({}), "stop".into()));
    }
    out.push(chunk(index, json!({}), ended.into()));
    out.push(data(
        &json!({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}),
    ));
    out.push("data: [DONE]\n\n".into());
    out
}

/// The events and the items of a response.
fn response_items(answer: &Answer) -> (Vec<(String, Value)>, Vec<Value>) {
    let mut events = Vec::new();
    let mut output = Vec::new();
    let mut push = |kind: &str, value: Value| events.push((kind.to_owned(), value));
    if !answer.text.is_empty() {
        let whole = answer.text.concat();
        let msg = &id_of("msg", &whole);
        let part = |text: &str| json!({"type": "output_text", "annotations": [], "text": text});
        let item = |status: &str, content: Value| json!({"id": msg, "type": "message", "status": status, "role": "assistant", "content": content});
        let at = |more: Value| {
            let mut event = json!({"item_id": msg, "output_index": 0, "content_index": 0});
            event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            event
        };
        push(
            "response.output_item.added",
            json!({"output_index": 0, "item": item("in_progress", json!([]))}),
        );
        push("response.content_part.added", at(json!({"part": part("")})));
        for text in &answer.text {
            push("response.output_text.delta", at(json!({"delta": text})));
        }
        push("response.output_text.done", at(json!({"text": whole})));
        push("response.content_part.done", at(json!({"part": part(&whole)})));
        let done = item("completed", json!([part(&whole)]));
        push("response.output_item.done", json!({"output_index": 0, "item": done}));
        output.push(done);
    }
    let first = output.len();
    let item = |call: usize, status: &str, arguments: &str| {
        json!({"id": id_of("fc", &format!("{call}{}", answer.calls[call].whole())), "type": "function_call",
        "status": status, "call_id": format!("c{call}"), "name": answer.calls[call].name, "arguments": arguments})
    };
    let done = |call: usize, push: &mut dyn FnMut(&str, Value), output: &mut Vec<Value>| {
        let whole = answer.calls[call].whole();
        push(
            "response.function_call_arguments.done",
            json!({"item_id": id_of("fc", &format!("{call}{}", answer.calls[call].whole())), "output_index": first + call, "arguments": whole}),
        );
        let item = item(call, "completed", &whole);
        push("response.output_item.done", json!({"output_index": first + call, "item": item}));
        output.push(item);
    };
    if answer.interleaved {
        for call in 0..answer.calls.len() {
            push(
                "response.output_item.added",
                json!({"output_index": first + call, "item": item(call, "in_progress", "")}),
            );
        }
    }
    for (call, piece) in pieces(answer) {
        if piece == 0 && !answer.interleaved {
            push(
                "response.output_item.added",
                json!({"output_index": first + call, "item": item(call, "in_progress", "")}),
            );
        }
        push(
            "response.function_call_arguments.delta",
            json!({"item_id": id_of("fc", &format!("{call}{}", answer.calls[call].whole())), "output_index": first + call,
            "delta": answer.calls[call].arguments[piece]}),
        );
        if piece + 1 == answer.calls[call].arguments.len() && !answer.interleaved {
            done(call, &mut push, &mut output);
        }
    }
    if answer.interleaved {
        (0..answer.calls.len()).for_each(|call| done(call, &mut push, &mut output));
    }
    (events, output)
}

fn responses(answer: &Answer) -> Vec<String> {
    let (events, output) = response_items(answer);
    let response = |status: &str, output: &[Value], usage: Value| {
        json!({"response": {"id": "r1", "object": "response",
        "status": status, "model": "m", "output": output, "usage": usage, "x_odd": 7}})
    };
    let mut all = vec![
        ("response.created".to_owned(), response("in_progress", &[], Value::Null)),
        ("response.in_progress".to_owned(), response("in_progress", &[], Value::Null)),
    ];
    all.extend(events);
    let usage = json!({"input_tokens": 10, "output_tokens": 5, "total_tokens": 15});
    all.push(("response.completed".to_owned(), response("completed", &output, usage)));
    let written = |(n, (kind, value)): (usize, (String, Value))| {
        let mut event = json!({"type": kind, "sequence_number": n});
        event.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
        format!("event: {kind}\ndata: {event}\n\n")
    };
    all.into_iter().enumerate().map(written).collect()
}

fn messages(answer: &Answer) -> Vec<String> {
    let event = |value: Value| format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap());
    let mut out = vec![event(
        json!({"type": "message_start", "message": {"id": "m1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1}}}),
    )];
    let mut index = 0;
    let begin = |index: usize, block: Value| {
        event(json!({"type": "content_block_start", "index": index, "content_block": block}))
    };
    let delta = |index: usize, delta: Value| {
        event(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    };
    let stop = |index: usize| event(json!({"type": "content_block_stop", "index": index}));
    if !answer.text.is_empty() {
        out.push(begin(0, json!({"type": "text", "text": ""})));
        out.extend(answer.text.iter().map(|text| delta(0, json!({"type": "text_delta", "text": text}))));
        out.push(stop(0));
        index = 1;
    }
    let block = |call: usize| json!({"type": "tool_use", "id": format!("c{call}"), "name": answer.calls[call].name, "input": {}});
    if answer.interleaved {
        out.extend((0..answer.calls.len()).map(|call| begin(index + call, block(call))));
    }
    for (call, piece) in pieces(answer) {
        let at = index + call;
        if piece == 0 && !answer.interleaved {
            out.push(begin(at, block(call)));
        }
        let json = &answer.calls[call].arguments[piece];
        out.push(delta(at, json!({"type": "input_json_delta", "partial_json": json})));
        if piece + 1 == answer.calls[call].arguments.len() && !answer.interleaved {
            out.push(stop(at));
        }
    }
    if answer.interleaved {
        out.extend((0..answer.calls.len()).map(|call| stop(index + call)));
    }
    let reason = if answer.calls.is_empty() { "end_turn" } else { "tool_use" };
    out.push(event(json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 5}})));
    out.push(event(json!({"type": "message_stop"})));
    out
}

fn gemini(answer: &Answer) -> Vec<String> {
    let usage = json!({"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15});
    let chunk = |index: usize, parts: Value, finish: Option<&str>| {
        let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": index});
        if let Some(word) = finish {
            candidate["finishReason"] = word.into();
        }
        let value = json!({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": "g1", "x_odd": 7});
        format!("data: {value}\r\n\r\n")
    };
    let index = answer.index();
    let mut out: Vec<String> =
        answer.text.iter().map(|text| chunk(index, json!([{"text": text}]), None)).collect();
    if answer.second {
        out.push(chunk(0, json!([{"text": "ok"}]), Some("STOP")));
    }
    let call = |call: &Call| json!({"functionCall": {"name": call.name, "args": call.value()}});
    match answer.interleaved {
        true => out.push(chunk(index, answer.calls.iter().map(call).collect(), None)),
        false => out.extend(answer.calls.iter().map(|one| chunk(index, json!([call(one)]), None))),
    }
    out.push(chunk(index, json!([{"text": ""}]), Some("STOP")));
    out
}
