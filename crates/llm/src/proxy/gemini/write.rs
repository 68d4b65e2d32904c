//! What the client gets of an event.

use serde_json::{Map, Value, json};

use super::chunk::{Spot, call, for_parts, inner};
use super::read::{Kind, index_of};
use super::{Candidate, Generate, candidate};
use crate::proxy::{Change, End, Note, nth_text};
use crate::sse::Event;
use crate::wire::json::{self, is_something, list, text};

/// What is to be changed in the texts of one event or body, and what was.
pub(super) struct Edit<'c> {
    changes: &'c [Change],
    nth: u32,
    /// The calls that it has.
    numbers: std::vec::IntoIter<u32>,
    /// That the answer ends is left out.
    open: bool,
    pub(super) changed: bool,
}

impl<'c> Edit<'c> {
    pub(super) fn new(changes: &'c [Change], numbers: Vec<u32>) -> Self {
        Edit { changes, nth: 0, numbers: numbers.into_iter(), open: false, changed: false }
    }

    fn next(&mut self) -> Option<&'c str> {
        let nth = self.nth;
        self.nth = nth.saturating_add(1);
        nth_text(self.changes, nth)
    }
}

/// What says that a candidate ends, and why.
const OF_THE_END: &[&str] = &["finishReason", "finishMessage"];

fn says_something(part: &Value) -> bool {
    part.as_object()
        .is_some_and(|part| part.iter().any(|(name, value)| name != "thought" && is_something(value)))
}

impl Generate {
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
        match Kind::of(note) {
            Kind::Half => {}
            Kind::Pass if open => {}
            Kind::Pass => self.frame.pass(event, out),
            Kind::Text(index) if changes.is_empty() && !self.spliced => {
                self.client.candidate(index);
                self.frame.pass(event, out);
            }
            Kind::Text(_) => self.write_chunk(event, Edit::new(changes, Vec::new()), out),
            Kind::Chunk(number) => {
                let edit = Edit { open, ..Edit::new(changes, self.calls_of(number)) };
                self.write_chunk(event, edit, out);
            }
        }
    }

    /// The calls of this event. Events before it that were not written are forgotten.
    fn calls_of(&mut self, event: u32) -> Vec<u32> {
        let at = self.calls_of.iter().position(|(number, _)| event != 0 && *number == event);
        at.and_then(|at| self.calls_of.drain(..=at).next_back()).map(|(_, calls)| calls).unwrap_or_default()
    }

    fn write_chunk(&mut self, event: &Event<'_>, mut edit: Edit<'_>, out: &mut Vec<u8>) {
        let Some(mut whole) = json::parse(&event.data) else { return };
        let chunk = inner(&mut whole);
        let mut empty = edit.open;
        if let Some(Value::Array(candidates)) = chunk.get_mut("candidates") {
            let had = !candidates.is_empty();
            candidates.retain_mut(|candidate| self.write_candidate(candidate, &mut edit));
            empty = candidates.is_empty() && (had || edit.open);
        }
        if self.spliced {
            edit.changed = true;
            self.belong_to_first(chunk);
        }
        if !(edit.changed || edit.open) {
            self.frame.pass(event, out);
        } else if !empty {
            self.frame.rewrite(event, &whole, out);
        }
    }

    /// Makes a chunk one of the first answer's.
    pub(super) fn belong_to_first(&self, chunk: &mut Value) {
        let Value::Object(members) = chunk else { return };
        for (name, value) in self.head.iter().flatten() {
            if let Some(place) = members.get_mut(name) {
                *place = value.clone();
            }
        }
        if let Some(usage) = members.get_mut("usageMetadata").filter(|usage| is_something(usage)) {
            crate::proxy::usage::add(usage, &self.spent);
        }
    }

    /// Changes one candidate; false when nothing of it is to go out.
    fn write_candidate(&mut self, candidate: &mut Value, edit: &mut Edit<'_>) -> bool {
        let Ok(index) = index_of(candidate) else { return true };
        if let (true, Value::Object(members)) = (edit.open, &mut *candidate) {
            members.retain(|name, _| !OF_THE_END.contains(&name.as_str()));
            edit.changed = true;
        }
        let seen = self.client.candidate(index);
        seen.finished |= text(candidate, "finishReason").is_some();
        let state = self.candidates.iter_mut().find(|state| state.index == index);
        let emptied = state.is_some_and(|state| change_parts(candidate, state, edit));
        if edit.open {
            return parts_of(candidate).iter().any(says_something);
        }
        if !emptied {
            return true;
        }
        let mut others = candidate.as_object().into_iter().flatten();
        let says_more = others.any(|(name, value)| {
            !matches!(name.as_str(), "content" | "safetyRatings") && !value.is_number() && is_something(value)
        });
        // Clients expect a part where there is content.
        set_parts(candidate, vec![json!({ "text": "" })]);
        says_more
    }

    /// Writes a chunk of our own.
    pub(super) fn own(&mut self, candidates: &[Value], usage: bool, out: &mut Vec<u8>) {
        let mut chunk = Map::new();
        chunk.insert("candidates".into(), candidates.into());
        if usage {
            let mut usage = self.usage.clone();
            crate::proxy::usage::add(&mut usage, &self.spent);
            if is_something(&usage) {
                chunk.insert("usageMetadata".into(), usage);
            }
        }
        chunk.extend(self.head.clone().unwrap_or_default());
        let chunk = Value::Object(chunk);
        let whole = if self.wrapped { json!({ "response": chunk }) } else { chunk };
        self.frame.own("", &whole, out);
    }

    pub(super) fn write_end(&mut self, how: &End, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.client.done, true) {
            return;
        }
        let read = self.candidates.iter().map(|candidate| candidate.index);
        let mut indexes: Vec<u32> =
            read.chain(self.client.candidates.iter().map(|seen| seen.index)).collect();
        if indexes.is_empty() {
            indexes.push(0);
        }
        indexes.sort_unstable();
        indexes.dedup();
        indexes.retain(|index| !std::mem::replace(&mut self.client.candidate(*index).finished, true));
        let ends: Vec<Value> =
            indexes.into_iter().map(|index| candidate(index, "", Some(word(how)))).collect();
        if !ends.is_empty() {
            self.own(&ends, true, out);
        }
    }
}

/// The word that a candidate ends with; calls have none of their own.
pub(super) fn word(how: &End) -> &'static str {
    if *how == End::Filtered { "SAFETY" } else { "STOP" }
}

/// Carries out the changes of one candidate's texts and calls; true when that left no part.
pub(super) fn change_parts(candidate: &mut Value, state: &mut Candidate, edit: &mut Edit<'_>) -> bool {
    let mut changed = false;
    for_parts(candidate, &mut |spot, _, value| match spot {
        Spot::Content | Spot::Reasoning => {
            if let Some(new) = edit.next() {
                *value = new.into();
                changed = true;
            }
        }
        Spot::Call => {
            if !write_call(value, state, edit, &mut changed) {
                *value = Value::Null;
                changed = true;
            }
        }
        Spot::Other => {}
    });
    if !changed {
        return false;
    }
    edit.changed = true;
    if let Value::Object(members) = candidate {
        // The tokens would say what the text no longer does.
        members.shift_remove("logprobsResult");
    }
    let Some(Value::Array(parts)) = candidate.get_mut("content").and_then(|content| content.get_mut("parts"))
    else {
        return false;
    };
    parts.retain(|part| {
        let only_text =
            part.as_object().is_some_and(|p| p.keys().all(|name| name == "text" || name == "thought"));
        !(part.is_null() || only_text && text(part, "text").is_none())
    });
    parts.is_empty()
}

/// Changes one call; false when it is not to go out.
fn write_call(part: &mut Value, state: &mut Candidate, edit: &mut Edit<'_>, changed: &mut bool) -> bool {
    let number = edit.numbers.next();
    let says = call(part).is_some_and(|call| call.get("args").is_some_and(is_something));
    if let Some(new) = if says { edit.next() } else { None } {
        for name in ["functionCall", "function_call"] {
            if let Some(Value::Object(call)) = part.get_mut(name) {
                let args = json::parse(new).filter(Value::is_object);
                call.insert("args".into(), args.unwrap_or_else(|| json!({ "not_an_object": new })));
                *changed = true;
            }
        }
    }
    number.and_then(|number| state.call_mut(number)).is_none_or(|call| !call.dropped)
}

pub(super) fn set_parts(candidate: &mut Value, parts: Vec<Value>) {
    let Value::Object(members) = candidate else { return };
    let content = members.entry("content").or_insert_with(|| json!({ "role": "model" }));
    if let Value::Object(content) = content {
        content.insert("parts".into(), parts.into());
    }
}

/// The parts of a candidate.
pub(super) fn parts_of(candidate: &Value) -> &[Value] {
    list(candidate.get("content").unwrap_or(&Value::Null), "parts")
}
