//! What the client gets of an event.

use serde_json::{Map, Value, json};

use super::chunk::{Spot, call_member};
use super::read::{Kind, NO_CALL, asks_for_calls, for_texts, index_of};
use super::{Chat, Choice, Seen, count};
use crate::proxy::{Change, Channel, ChannelKind, End, Note, nth_text};
use crate::sse::Event;
use crate::wire::json::{self, is_something, text};

/// What is to be changed in the texts of one event or body, and what was.
pub(super) struct Edit<'c> {
    changes: &'c [Change],
    nth: u32,
    /// The calls that the entries belong to.
    numbers: std::vec::IntoIter<u32>,
    /// That the answer ends is left out, and what it cost.
    open: bool,
    pub(super) changed: bool,
}

impl<'c> Edit<'c> {
    pub(super) fn new(changes: &'c [Change], numbers: Vec<u32>) -> Self {
        Edit { changes, nth: 0, numbers: numbers.into_iter(), open: false, changed: false }
    }

    /// The new text of the next text.
    fn next(&mut self) -> Option<&'c str> {
        let nth = self.nth;
        self.nth = nth.saturating_add(1);
        nth_text(self.changes, nth)
    }
}

impl Chat {
    pub(super) fn write_event(
        &mut self,
        event: &Event<'_>,
        note: Note,
        changes: &[Change],
        open: bool,
        out: &mut Vec<u8>,
    ) {
        if self.client.done {
            return;
        }
        let plain = changes.is_empty() && !self.spliced;
        match Kind::of(note) {
            Kind::Half => {}
            Kind::Pass | Kind::Done if open => {}
            Kind::Pass => self.frame.pass(event, out),
            Kind::Done => self.write_done(event, out),
            Kind::Text { choice, role } => {
                let seen = self.client.choice(choice);
                if plain && !(role && seen.role_is_ours) {
                    seen.begun = true;
                    self.frame.pass(event, out);
                } else {
                    self.write_chunk(event, Edit::new(changes, Vec::new()), out);
                }
            }
            Kind::Call { choice, number } => {
                let channel = Channel { choice, kind: ChannelKind::Call(number) };
                let Some(call) = self.call_mut(channel) else { return };
                if call.dropped {
                    return;
                }
                if plain && call.client_index == call.wire_index {
                    call.n_written = call.n_written.saturating_add(1);
                    self.frame.pass(event, out);
                } else {
                    self.write_chunk(event, Edit::new(changes, vec![number]), out);
                }
            }
            Kind::Chunk { event: number } => {
                let edit = Edit { open, ..Edit::new(changes, self.calls_of(number)) };
                self.write_chunk(event, edit, out);
            }
        }
    }

    /// The calls of this event's entries. Events before it that were not written are forgotten.
    fn calls_of(&mut self, event: u32) -> Vec<u32> {
        let at = self.calls_of.iter().position(|(number, _)| event != 0 && *number == event);
        at.and_then(|at| self.calls_of.drain(..=at).next_back()).map(|(_, calls)| calls).unwrap_or_default()
    }

    fn write_chunk(&mut self, event: &Event<'_>, mut edit: Edit<'_>, out: &mut Vec<u8>) {
        let Some(mut chunk) = json::parse(&event.data) else { return };
        let mut choices = match chunk.get_mut("choices") {
            Some(Value::Array(choices)) => std::mem::take(choices),
            _ => Vec::new(),
        };
        let had_choices = !choices.is_empty();
        choices.retain_mut(|choice| self.write_choice(choice, &mut edit));
        let empty = choices.is_empty() && (had_choices || edit.open);
        if let Some(Value::Array(place)) = chunk.get_mut("choices") {
            *place = choices;
        }
        if edit.open && chunk.get("usage").is_some_and(is_something) {
            set(&mut chunk, "usage", Value::Null);
            edit.changed = true;
        }
        let usage = chunk.get("usage").is_some_and(is_something);
        self.client.usage_written |= usage;
        if self.spliced {
            edit.changed = true;
            self.belong_to_first(&mut chunk);
        }
        if !(edit.changed || edit.open) {
            self.frame.pass(event, out);
        } else if !empty || usage {
            self.frame.rewrite(event, &chunk, out);
        }
    }

    /// Makes a chunk, or a body, one of the first answer's.
    pub(super) fn belong_to_first(&self, chunk: &mut Value) {
        let Value::Object(members) = chunk else { return };
        for (name, value) in self.head.iter().flatten() {
            if let Some(place) = members.get_mut(name).filter(|_| name != "object") {
                *place = value.clone();
            }
        }
        if let Some(usage) = members.get_mut("usage").filter(|usage| is_something(usage)) {
            crate::proxy::usage::add(usage, &self.spent);
        }
    }

    /// Changes one choice; false when nothing of it is to go out.
    fn write_choice(&mut self, choice: &mut Value, edit: &mut Edit<'_>) -> bool {
        let Ok(index) = index_of(choice) else { return true };
        let was_changed = std::mem::replace(&mut edit.changed, false);
        let seen = self.client.choice(index);
        let state = self.choices.iter_mut().find(|state| state.index == index);
        if let Some(state) = state {
            change_texts(choice, state, seen, edit);
            if text(choice, "finish_reason").is_some_and(asks_for_calls)
                && state.lost_its_calls()
                && seen.n_whole_calls == 0
            {
                set(choice, "finish_reason", "stop".into());
                edit.changed = true;
            }
        }
        if edit.open {
            set(choice, "finish_reason", Value::Null);
            edit.changed = true;
        }
        let repeats_role = seen.role_is_ours || (self.spliced && seen.begun);
        if let Some(Value::Object(delta)) = choice.get_mut("delta")
            && delta.get("role").is_some_and(is_something)
        {
            if repeats_role {
                delta.shift_remove("role");
                edit.changed = true;
            }
            seen.begun = true;
        }
        let keep = !(edit.changed || self.spliced) || !is_void(choice);
        edit.changed |= was_changed || !keep;
        if keep {
            seen.begun = true;
            seen.finished |= text(choice, "finish_reason").is_some();
        }
        keep
    }

    fn write_done(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        if self.spliced && !self.client.usage_written {
            self.write_usage(out);
        }
        self.frame.pass(event, out);
        self.client.done = true;
    }

    /// A chunk of our own.
    fn own(&mut self, choices: Value, usage: Option<Value>, out: &mut Vec<u8>) {
        let mut chunk = self.head.clone().unwrap_or_default();
        for (name, value) in [
            ("id", json!("chatcmpl-hookgate")),
            ("object", json!("chat.completion.chunk")),
            ("created", json!(0)),
            ("model", json!("")),
        ] {
            chunk.entry(name).or_insert(value);
        }
        chunk.insert("choices".into(), choices);
        chunk.extend(usage.map(|usage| ("usage".to_owned(), usage)));
        self.frame.own("", &Value::Object(chunk), out);
    }

    fn write_usage(&mut self, out: &mut Vec<u8>) {
        let mut usage = self.usage.clone();
        crate::proxy::usage::add(&mut usage, &self.spent);
        if is_something(&usage) {
            self.client.usage_written = true;
            self.own(json!([]), Some(usage), out);
        }
    }

    pub(super) fn write_said(&mut self, choice: u32, text: &str, out: &mut Vec<u8>) {
        let mut delta = self.begin(choice);
        delta.insert("content".into(), text.into());
        self.own(json!([{ "index": choice, "delta": delta, "finish_reason": null }]), None, out);
    }

    /// The delta that begins a choice, unless it has begun.
    fn begin(&mut self, choice: u32) -> Map<String, Value> {
        let seen = self.client.choice(choice);
        let mut delta = Map::new();
        if !std::mem::replace(&mut seen.begun, true) {
            seen.role_is_ours = true;
            delta.insert("role".into(), "assistant".into());
        }
        delta
    }

    pub(super) fn write_end(&mut self, how: &End, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.client.done, true) {
            return;
        }
        let read = self.choices.iter().map(|choice| choice.index);
        let mut indexes: Vec<u32> = read.chain(self.client.choices.iter().map(|seen| seen.index)).collect();
        if indexes.is_empty() {
            indexes.push(0);
        }
        indexes.sort_unstable();
        indexes.dedup();
        for index in indexes {
            let word = self.word(index, how);
            if !std::mem::replace(&mut self.client.choice(index).finished, true) {
                let delta = self.begin(index);
                self.own(json!([{ "index": index, "delta": delta, "finish_reason": word }]), None, out);
            }
        }
        if !self.client.usage_written {
            self.write_usage(out);
        }
        self.frame.own_text("", "[DONE]", out);
    }

    /// The word that a choice ends with.
    fn word(&mut self, index: u32, how: &End) -> &'static str {
        let state = self.choices.iter().find(|choice| choice.index == index);
        let whole = state.map_or(0, |state| count(state.calls.iter().filter(|call| call.is_whole()).count()));
        match how {
            End::Filtered => "content_filter",
            End::Stopped if whole.saturating_add(self.client.choice(index).n_whole_calls) > 0 => "tool_calls",
            End::Stopped => "stop",
        }
    }
}

/// Carries out the changes of one choice's texts and calls.
pub(super) fn change_texts(choice: &mut Value, state: &mut Choice, seen: &mut Seen, edit: &mut Edit<'_>) {
    let mut said_otherwise = false;
    let mut again = None;
    let mut dropped = false;
    for_texts(choice, &mut |spot, _, value| match spot {
        Spot::Content | Spot::Reasoning(_) => {
            let new = edit.next();
            if spot != Spot::Content {
                again = new;
            }
            if let Some(new) = new {
                *value = new.into();
                edit.changed = true;
                said_otherwise = true;
            }
        }
        Spot::Again => {
            if let Some(new) = again {
                *value = new.into();
            }
        }
        Spot::Call | Spot::Function => {
            if !write_call(value, state, seen, edit) {
                *value = Value::Null;
                edit.changed = true;
                dropped = true;
            }
        }
        Spot::Detail | Spot::Other => {}
    });
    // The tokens would say what the text no longer does.
    if said_otherwise && choice.get("logprobs").is_some_and(is_something) {
        set(choice, "logprobs", Value::Null);
    }
    if dropped {
        for name in ["delta", "message"] {
            choice.get_mut(name).and_then(Value::as_object_mut).into_iter().for_each(remove_dropped);
        }
    }
}

/// Changes one entry of calls; false when it is not to go out.
fn write_call(entry: &mut Value, state: &mut Choice, seen: &mut Seen, edit: &mut Edit<'_>) -> bool {
    let number = edit.numbers.next().unwrap_or(NO_CALL);
    let renumbers = state.renumbers();
    let drops = state.calls.iter().any(|call| call.dropped);
    let Some(call) = state.call_mut(number) else {
        // The old form beside the new one says a call again, perhaps one that is dropped or changed.
        return !(drops || edit.changed);
    };
    let member = call_member(entry);
    let body = match member {
        Some(member) => entry.get_mut(member),
        None => Some(&mut *entry),
    };
    let name =
        if body.as_ref().is_some_and(|body| body.get("arguments").is_some()) { "arguments" } else { "input" };
    if let Some(arguments) = body.and_then(|body| body.get_mut(name)).filter(|arguments| says(arguments))
        && let Some(new) = edit.next()
    {
        let whole = if arguments.is_string() { None } else { json::parse(new) };
        *arguments = whole.unwrap_or_else(|| new.into());
        edit.changed = true;
    }
    if call.dropped {
        return false;
    }
    call.n_written = call.n_written.saturating_add(1);
    let next = seen.next_index;
    let client_index =
        *call.client_index.get_or_insert(if renumbers { next } else { call.wire_index.unwrap_or(next) });
    seen.next_index = next.max(client_index.saturating_add(1));
    if let Some(index) = entry.get_mut("index").filter(|index| index.is_u64())
        && index.as_u64() != Some(client_index)
        && renumbers
    {
        *index = client_index.into();
        edit.changed = true;
    }
    true
}

/// Whether arguments gave a text when they were read.
fn says(arguments: &Value) -> bool {
    match arguments {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn remove_dropped(message: &mut Map<String, Value>) {
    if message.get("function_call").is_some_and(Value::is_null) {
        message.shift_remove("function_call");
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls") {
        calls.retain(|call| !call.is_null());
        if calls.is_empty() {
            message.shift_remove("tool_calls");
        }
    }
}

pub(super) fn set(object: &mut Value, name: &str, value: Value) {
    if let Value::Object(members) = object {
        members.insert(name.into(), value);
    }
}

/// Nothing is left in it that a client would miss.
fn is_void(choice: &Value) -> bool {
    let silent = |name: &str| match choice.get(name) {
        Some(Value::Object(members)) => !members.values().any(is_something),
        Some(value) => !is_something(value),
        None => true,
    };
    ["delta", "message", "text", "finish_reason", "logprobs"].into_iter().all(silent)
}
