//! What the client gets of an event.

use serde_json::{Value, json};

use super::item::{Item, Part};
use super::read::done_member;
use super::{Meta, Responses, Role, Span};
use crate::proxy::{Change, Note, nth_text};
use crate::sse::Event;
use crate::wire::json::{self, is_something};

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
    pub(super) fn meta(&mut self, note: Note) -> Option<Meta> {
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
    pub(super) fn shown_items(&self, open: &str, but: &[usize]) -> Vec<(u64, Value)> {
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
