//! What hookgate itself writes: events that open, say, close and fail.

use serde_json::{Map, Value, json};

use super::item::{Item, Kind, List, Part, Place};
use super::{Responses, Role, Span};
use crate::proxy::{Change, End, Note, nth_text};
use crate::wire::json::text;

impl Responses {
    /// Writes an event of our own.
    fn own(&mut self, kind: &str, members: Value, out: &mut Vec<u8>) {
        let mut event = Map::new();
        event.insert("type".into(), kind.into());
        if !self.client.no_sequence {
            event.insert("sequence_number".into(), self.client.next_sequence.into());
            self.client.next_sequence = self.client.next_sequence.saturating_add(1);
        }
        if let Value::Object(members) = members {
            event.extend(members);
        }
        self.client.shifted = true;
        self.frame.own(kind, &Value::Object(event), out);
    }

    /// Opens the response for the client, unless it is open.
    pub(super) fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.client.started, true) {
            return;
        }
        self.client.opened_by_us = true;
        let response = self.response("in_progress", Vec::new());
        for kind in ["response.created", "response.in_progress"] {
            self.own(kind, json!({ "response": response }), out);
        }
    }

    fn response(&self, status: &str, output: Vec<Value>) -> Value {
        let mut response = self.head.clone().unwrap_or_default();
        for (name, value) in [
            ("id", json!("resp_hookgate")),
            ("object", json!("response")),
            ("created_at", json!(0)),
            ("status", Value::Null),
            ("error", Value::Null),
            ("incomplete_details", Value::Null),
            ("instructions", Value::Null),
            ("model", json!("")),
            ("output", Value::Null),
            ("parallel_tool_calls", json!(true)),
            ("tool_choice", json!("auto")),
            ("tools", json!([])),
            ("usage", Value::Null),
            ("metadata", json!({})),
        ] {
            response.entry(name).or_insert(value);
        }
        response.insert("status".into(), status.into());
        response.insert("output".into(), output.into());
        Value::Object(response)
    }

    pub(super) fn write_said(&mut self, words: &str, out: &mut Vec<u8>) {
        self.start(out);
        let open = self.items.iter_mut().rev().find(|item| item.client_index.is_some());
        let open = open.filter(|item| item.kind == Kind::Message && !item.done_written && !item.ours);
        if let Some(item) = open
            && let Some(part) = item.parts.last_mut().filter(|part| part.begun && !part.text_done)
            && text(&part.value, "type") == Some("output_text")
        {
            part.say(words);
            let Place::Of(_, content_index) = part.place else { return };
            let delta = json!({ "item_id": item.id, "output_index": item.client_index,
                "content_index": content_index, "delta": words, "logprobs": [] });
            return self.own("response.output_text.delta", delta, out);
        }
        self.write_item(words, out);
    }

    /// Writes a message of ours.
    pub(super) fn write_item(&mut self, words: &str, out: &mut Vec<u8>) {
        self.close_earlier(out);
        let at = self.own_item(words);
        self.index_own(at);
        let Some(item) = self.items.get(at) else { return };
        let (id, index, value) = (item.id.clone(), item.client_index, item.value.clone());
        let mut begun = value.clone();
        if let Value::Object(members) = &mut begun {
            members.insert("status".into(), "in_progress".into());
            members.insert("content".into(), json!([]));
        }
        self.own("response.output_item.added", json!({ "output_index": index, "item": begun }), out);
        let of_part = |more: Value| {
            let mut event = json!({ "item_id": id, "output_index": index, "content_index": 0 });
            if let (Value::Object(event), Value::Object(more)) = (&mut event, more) {
                event.extend(more);
            }
            event
        };
        let part = |text: &str| json!({ "part": output_text(text) });
        self.own("response.content_part.added", of_part(part("")), out);
        let delta = json!({ "delta": words, "logprobs": [] });
        self.own("response.output_text.delta", of_part(delta), out);
        let done = json!({ "text": words, "logprobs": [] });
        self.own("response.output_text.done", of_part(done), out);
        self.own("response.content_part.done", of_part(part(words)), out);
        self.own("response.output_item.done", json!({ "output_index": index, "item": value }), out);
    }

    /// Writes texts that stand only in an event which itself does not go out: as the deltas that they would have been.
    pub(super) fn write_new_texts(&mut self, note: Note, changes: &[Change], out: &mut Vec<u8>) {
        let Some(meta) = self.meta(note).filter(|meta| !self.client.done && meta.role == Role::Final) else {
            return;
        };
        for (span, nth) in meta.first.iter().chain(&meta.more).zip(0u32..) {
            let item = self.items.get(span.item);
            if item.is_some_and(|item| !(item.is_call() || item.dropped || item.done_written)) {
                self.write_new_text(*span, nth_text(changes, nth), out);
            }
        }
    }

    fn write_new_text(&mut self, span: Span, new: Option<&str>, out: &mut Vec<u8>) {
        self.start(out);
        self.close_earlier(out);
        if self.items.get(span.item).is_some_and(|item| item.client_index.is_none()) {
            self.index_own(span.item);
            let Some(item) = self.items.get(span.item) else { return };
            let mut begun = item.value.clone();
            if let Value::Object(members) = &mut begun {
                let lists = ["content", "summary"].into_iter().filter(|name| item.value.get(name).is_some());
                members.extend(lists.map(|name| (name.to_owned(), json!([]))));
                if let Some(status) = members.get_mut("status") {
                    *status = "in_progress".into();
                }
            }
            let event = json!({ "output_index": item.client_index, "item": begun });
            self.own("response.output_item.added", event, out);
        }
        let Some(item) = self.items.get_mut(span.item) else { return };
        let Some(part) = item.parts.get_mut(span.part) else { return };
        let Place::Of(list, n) = part.place else { return };
        let (added, member) = match list {
            List::Content => ("response.content_part.added", "content_index"),
            List::Summary => ("response.reasoning_summary_part.added", "summary_index"),
        };
        let of_part = |name: &str, value: Value| {
            let mut event = json!({ "item_id": item.id, "output_index": item.client_index, member: n });
            if let Value::Object(members) = &mut event {
                members.insert(name.into(), value);
            }
            event
        };
        let mut events = Vec::new();
        if !std::mem::replace(&mut part.begun, true) {
            events.push((added, of_part("part", part.shown())));
        }
        let words = new.unwrap_or_else(|| part.text.get(span.start..span.end).unwrap_or_default()).to_owned();
        part.pass(span.start, span.end, new);
        if !(words.is_empty() || part.text_done) {
            events.push((delta_of(&part.value), of_part("delta", words.into())));
        }
        for (kind, members) in events {
            self.own(kind, members, out);
        }
    }

    fn index_own(&mut self, at: usize) {
        self.client.shifted = true;
        self.index_item(at);
    }

    /// A message of ours, whose place is given.
    pub(super) fn own_item(&mut self, words: &str) -> usize {
        let id = format!("msg_hookgate_{}", self.items.iter().filter(|item| item.ours).count());
        let mut part = Part::new(Place::Of(List::Content, 0), output_text(words));
        part.text.push_str(words);
        part.pass(0, words.len(), None);
        let value = json!({ "id": id, "type": "message", "status": "completed", "role": "assistant",
            "content": [output_text(words)] });
        self.items.push(Item {
            id,
            kind: Kind::Message,
            value,
            parts: vec![part],
            complete: true,
            ours: true,
            done_written: true,
            ..Item::default()
        });
        self.items.len().saturating_sub(1)
    }

    /// Closes what answers before the current one left open.
    pub(super) fn close_earlier(&mut self, out: &mut Vec<u8>) {
        for at in 0..self.first_item {
            self.close(at, "completed", out);
        }
    }

    /// Closes an item that is open for the client.
    fn close(&mut self, at: usize, status: &str, out: &mut Vec<u8>) {
        let Some(item) = self.items.get_mut(at) else { return };
        if item.client_index.is_none() || item.done_written || item.dropped {
            return;
        }
        if item.is_call() && (!item.complete || item.differs()) {
            // Half a call must not look like one to make.
            item.dropped = true;
            return;
        }
        item.done_written = true;
        let value = item.shown(status);
        let mut events = Vec::new();
        for part in item.parts.iter_mut().filter(|part| part.begun) {
            closing(part, &item.id, item.client_index, &mut events);
        }
        events
            .push(("response.output_item.done", json!({ "output_index": item.client_index, "item": value })));
        for (kind, members) in events {
            self.own(kind, members, out);
        }
    }

    pub(super) fn write_end(&mut self, how: &End, out: &mut Vec<u8>) {
        self.start(out);
        let status = if *how == End::Filtered { "incomplete" } else { "completed" };
        for at in 0..self.items.len() {
            self.close(at, status, out);
        }
        let mut items = self.shown_items(status, &[]);
        items.sort_by_key(|(index, _)| *index);
        let mut response = self.response(status, items.into_iter().map(|(_, item)| item).collect());
        let mut usage = self.usage.clone();
        crate::proxy::usage::add(&mut usage, &self.spent);
        if let Value::Object(members) = &mut response {
            let why = json!({ "reason": "content_filter" });
            let details = if *how == End::Filtered { why } else { Value::Null };
            members.insert("incomplete_details".into(), details);
            members.insert("usage".into(), usage);
        }
        self.client.done = true;
        self.own(&format!("response.{status}"), json!({ "response": response }), out);
    }

    pub(super) fn write_failure(&mut self, message: &str, out: &mut Vec<u8>) {
        self.client.done = true;
        // Flat as the wire has it; SDKs raise only if there is an `error` too.
        let error =
            json!({ "message": message, "type": "server_error", "param": null, "code": "server_error" });
        let event = json!({ "code": "server_error", "message": message, "param": null, "error": error });
        self.own("error", event, out);
    }
}

/// The event that adds to a part.
fn delta_of(part: &Value) -> &'static str {
    match text(part, "type").unwrap_or_default() {
        "refusal" => "response.refusal.delta",
        "summary_text" => "response.reasoning_summary_text.delta",
        "reasoning_text" => "response.reasoning_text.delta",
        _ => "response.output_text.delta",
    }
}

fn output_text(text: &str) -> Value {
    json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text })
}

/// The events that close a part.
fn closing(part: &mut Part, id: &str, index: Option<u64>, events: &mut Vec<(&'static str, Value)>) {
    let (member, place) = match part.place {
        Place::Of(List::Content, n) => ("content_index", n),
        Place::Of(List::Summary, n) => ("summary_index", n),
        Place::Member(member) => {
            if !std::mem::replace(&mut part.text_done, true) {
                let kind = match member {
                    "arguments" => "response.function_call_arguments.done",
                    "input" => "response.custom_tool_call_input.done",
                    _ => return,
                };
                events.push((kind, json!({ "item_id": id, "output_index": index, member: part.written() })));
            }
            return;
        }
    };
    let kind = match text(&part.value, "type").unwrap_or_default() {
        "refusal" => "response.refusal.done",
        "summary_text" => "response.reasoning_summary_text.done",
        "reasoning_text" => "response.reasoning_text.done",
        _ => "response.output_text.done",
    };
    if !std::mem::replace(&mut part.text_done, true) {
        let said = super::item::text_member(&part.value);
        let mut event = json!({ "item_id": id, "output_index": index, member: place, said: part.written() });
        if let (Value::Object(members), "response.output_text.done") = (&mut event, kind) {
            members.insert("logprobs".into(), json!([]));
        }
        events.push((kind, event));
    }
    if !std::mem::replace(&mut part.part_done, true) {
        let kind = match part.place {
            Place::Of(List::Summary, _) => "response.reasoning_summary_part.done",
            _ => "response.content_part.done",
        };
        let event = json!({ "item_id": id, "output_index": index, member: place, "part": part.shown() });
        events.push((kind, event));
    }
}
