//! What the client gets of an event.

use serde_json::{Map, Value, json};

use super::item::{Item, Kind, List, Part, Place};
use super::read::done_member;
use super::{Meta, Responses, Role, Span};
use crate::proxy::{Change, End, Note, nth_text};
use crate::sse::Event;
use crate::wire::json::{self, is_something, text};

impl Responses {
    pub(super) fn write_event(
        &mut self,
        event: &Event<'_>,
        note: Note,
        changes: &[Change],
        out: &mut Vec<u8>,
    ) {
        let Some(meta) = self.meta(note) else { return };
        if self.client.done || meta.role == Role::Half {
            return;
        }
        let spans = meta.first.iter().chain(&meta.more).copied();
        self.pass_texts(spans, changes);
        let of_item = !matches!(meta.role, Role::Pass | Role::Opening | Role::Final);
        if of_item && self.items.get(meta.item).is_some_and(|item| item.dropped) {
            return;
        }
        if meta.role == Role::Opening && (self.client.opened_by_us || (self.spliced && self.client.started)) {
            return;
        }
        if meta.role == Role::ItemAdded || meta.role == Role::Final {
            if self.spliced && meta.role != Role::Opening {
                self.start(out);
            }
            self.close_earlier(out);
        }
        self.client.started = true;
        self.note_written(&meta);
        if meta.role == Role::Delta && nth_text(changes, 0) == Some("") {
            self.client.shifted = true;
            return;
        }
        if changes.is_empty() && !self.client.shifted && !self.repeats_otherwise(&meta) {
            if let Some(sequence) = meta.sequence {
                self.client.next_sequence = sequence.saturating_add(1);
            }
            return self.frame.pass(event, out);
        }
        let Some(mut value) = json::parse(&event.data) else { return self.frame.pass(event, out) };
        self.edit(&mut value, &meta, changes);
        self.number(&mut value, &meta);
        self.frame.rewrite(event, &value, out);
    }

    /// What is known of the event. Events before it that were not written are forgotten.
    fn meta(&mut self, note: Note) -> Option<Meta> {
        let at = self.metas.iter().position(|meta| meta.number == note.0)?;
        self.client.shifted |= at > 0;
        self.metas.drain(..=at).next_back()
    }

    pub(super) fn pass_texts(&mut self, spans: impl Iterator<Item = Span>, changes: &[Change]) {
        for (span, nth) in spans.zip(0u32..) {
            let item = self.items.get_mut(span.item);
            if let Some(part) = item.and_then(|item| item.parts.get_mut(span.part)) {
                part.pass(span.start, span.end, nth_text(changes, nth));
            }
        }
    }

    /// What the client knows after this event.
    fn note_written(&mut self, meta: &Meta) {
        match meta.role {
            Role::Pass | Role::Opening | Role::Half => return,
            Role::Final => {
                self.client.done = true;
                let new: Vec<usize> = self.in_final.clone();
                new.into_iter().for_each(|at| self.index_item(at));
                return;
            }
            _ => self.index_item(meta.item),
        }
        let Some(item) = self.items.get_mut(meta.item) else { return };
        if meta.role == Role::ItemDone {
            item.done_written = true;
        }
        if let Some(part) = item.parts.get_mut(meta.part) {
            match meta.role {
                Role::PartAdded | Role::Delta => part.begun = true,
                Role::TextDone => part.text_done = true,
                Role::PartDone => part.part_done = true,
                _ => {}
            }
        }
    }

    /// Gives an item its index for the client, unless it has one.
    pub(super) fn index_item(&mut self, at: usize) {
        let (shifted, next) = (self.client.shifted, self.client.next_index);
        let Some(item) = self.items.get_mut(at).filter(|item| !item.dropped) else { return };
        let index = *item.client_index.get_or_insert(match item.index {
            Some(index) if !shifted => index,
            _ => next,
        });
        self.client.next_index = next.max(index.saturating_add(1));
    }

    /// The event repeats a text that the client has got as another one.
    fn repeats_otherwise(&self, meta: &Meta) -> bool {
        let item = self.items.get(meta.item);
        match meta.role {
            Role::TextDone | Role::PartDone => {
                item.and_then(|item| item.parts.get(meta.part)).is_some_and(Part::differs)
            }
            Role::ItemDone => item.is_some_and(Item::differs),
            Role::Final => self.items.iter().any(|item| item.client_index.is_some() && item.differs()),
            _ => false,
        }
    }

    fn edit(&mut self, value: &mut Value, meta: &Meta, changes: &[Change]) {
        if let Role::Opening | Role::Final = meta.role {
            if let Some(response) = value.get_mut("response") {
                self.edit_response(response);
            }
            return;
        }
        let Some(item) = self.items.get(meta.item).filter(|_| meta.role != Role::Pass) else { return };
        if let (Some(index), Some(place)) = (item.client_index, value.get_mut("output_index")) {
            *place = index.into();
        }
        let part = item.parts.get(meta.part);
        match (meta.role, part) {
            (Role::Delta, _) => {
                if let Some(new) = nth_text(changes, 0) {
                    say_instead(value, "delta", new);
                }
            }
            (Role::TextDone, Some(part)) if part.differs() => {
                say_instead(value, done_member(value), part.written());
            }
            (Role::PartAdded | Role::PartDone, Some(part)) => {
                value.get_mut("part").into_iter().for_each(|place| super::item::show(place, part.written()));
            }
            (Role::ItemAdded | Role::ItemDone, _) if item.differs() => {
                let all = meta.role == Role::ItemDone;
                value.get_mut("item").into_iter().for_each(|place| item.show_in(place, all));
            }
            _ => {}
        }
    }

    /// Makes a response one of the first answer's, with the items that the client has got.
    pub(super) fn edit_response(&mut self, response: &mut Value) {
        let Value::Object(members) = response else { return };
        let theirs = match members.get_mut("output") {
            Some(Value::Array(output)) => std::mem::take(output),
            _ => Vec::new(),
        };
        let mut items: Vec<(u64, Value)> = Vec::new();
        for (mut value, at) in theirs.into_iter().zip(&self.in_final) {
            let Some(item) = self.items.get(*at).filter(|item| !item.dropped) else { continue };
            if item.differs() {
                item.show_in(&mut value, true);
            }
            items.push((item.client_index.unwrap_or(u64::MAX), value));
        }
        items.extend(self.shown_items("completed", &self.in_final));
        items.sort_by_key(|(index, _)| *index);
        if members.contains_key("output") || !items.is_empty() {
            members.insert("output".into(), items.into_iter().map(|(_, item)| item).collect());
        }
        if self.spliced {
            let head =
                self.head.iter().flatten().filter(|(name, _)| matches!(name.as_str(), "id" | "created_at"));
            members.extend(head.map(|(name, value)| (name.clone(), value.clone())));
            if let Some(usage) = members.get_mut("usage").filter(|usage| is_something(usage)) {
                crate::proxy::usage::add(usage, &self.spent);
            }
        }
        if members.get("output_text").is_some_and(Value::is_string) {
            members.insert("output_text".into(), self.content(true).into());
        }
    }

    /// The items that the client has got, but for these.
    fn shown_items(&self, open: &str, but: &[usize]) -> Vec<(u64, Value)> {
        let seen = self.items.iter().enumerate().filter(|(at, item)| !but.contains(at) && !item.dropped);
        let shown = |(_, item): (usize, &Item)| {
            Some((
                item.client_index?,
                item.shown(if item.complete || item.ours { "completed" } else { open }),
            ))
        };
        seen.filter_map(shown).collect()
    }

    /// Gives an event its place in the sequence.
    fn number(&mut self, value: &mut Value, meta: &Meta) {
        if let (Some(_), Value::Object(members)) = (meta.sequence, value) {
            members.insert("sequence_number".into(), self.client.next_sequence.into());
            self.client.next_sequence = self.client.next_sequence.saturating_add(1);
        }
    }

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
    fn start(&mut self, out: &mut Vec<u8>) {
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
    fn close_earlier(&mut self, out: &mut Vec<u8>) {
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

/// Puts a text into a member, and takes out the tokens that would say the old one.
fn say_instead(event: &mut Value, member: &str, new: &str) {
    if let Value::Object(members) = event {
        members.insert(member.into(), new.into());
        if members.get("logprobs").is_some_and(is_something) {
            members.insert("logprobs".into(), json!([]));
        }
    }
}
