//! What the client gets of an event.

use serde_json::{Map, Value, json};

use super::block::{Spot, for_texts, input};
use super::read::Role;
use super::{Kind, Messages, Open};
use crate::proxy::{Change, End, Note, nth_text};
use crate::sse::Event;
use crate::wire::json::{self, text};

/// The counts that a `message_delta` may have.
const COUNTS: &[&str] = &[
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "server_tool_use",
];

impl Messages {
    pub(super) fn write_event(
        &mut self,
        event: &Event<'_>,
        note: Note,
        changes: &[Change],
        out: &mut Vec<u8>,
    ) {
        if self.client.done {
            return;
        }
        match Role::of(note) {
            Role::Half => {}
            Role::Pass => self.frame.pass(event, out),
            Role::Start => self.write_start(event, changes, out),
            Role::BlockStart(at) => self.write_block_start(event, at, changes, out),
            Role::Delta(at) => self.write_delta(event, at, changes, out),
            Role::BlockStop(at) => self.write_block_stop(event, at, out),
            Role::Ending => self.write_ending(event, out),
            Role::Stop => {
                self.close(|open| open.block.is_none(), out);
                self.client.done = true;
                self.frame.pass(event, out);
            }
        }
    }

    fn write_start(&mut self, event: &Event<'_>, changes: &[Change], out: &mut Vec<u8>) {
        let Some(mut value) = json::parse(&event.data) else { return };
        let n = json::list(value.get("message").unwrap_or(&Value::Null), "content").len();
        if self.client.started {
            return;
        }
        self.client.started = true;
        self.client.next_index = self.client.next_index.max(n as u64);
        self.blocks.iter_mut().take(n).for_each(|block| {
            block.client_index = Some(block.index);
            block.stop_written = true;
        });
        if self.spliced {
            if let (Some(head), Some(place)) = (&self.head, value.get_mut("message")) {
                *place = Value::Object(head.clone());
            }
            return self.frame.rewrite(event, &value, out);
        }
        let dropped = self.blocks.iter().take(n).any(|block| block.dropped);
        if changes.is_empty() && !dropped {
            return self.frame.pass(event, out);
        }
        if let Some(Value::Array(blocks)) = value.get_mut("message").and_then(|m| m.get_mut("content")) {
            let mut nth = 0;
            for block in blocks.iter_mut() {
                change_block(block, changes, &mut nth);
            }
            let mut kept = self.blocks.iter();
            blocks.retain(|_| kept.next().is_none_or(|block| !block.dropped));
            self.client.next_index = blocks.len() as u64;
        }
        self.frame.rewrite(event, &value, out);
    }

    /// Begins the message for the client, unless it has begun.
    fn start(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.client.started, true) {
            return;
        }
        let mut message = self.head.clone().unwrap_or_default();
        for (name, value) in [
            ("id", json!("msg_hookgate")),
            ("type", json!("message")),
            ("role", json!("assistant")),
            ("model", json!("")),
            ("content", json!([])),
            ("stop_reason", Value::Null),
            ("stop_sequence", Value::Null),
            ("usage", json!({ "input_tokens": 0, "output_tokens": 0 })),
        ] {
            message.entry(name).or_insert(value);
        }
        message.insert("content".into(), json!([]));
        self.frame.own("message_start", &json!({ "type": "message_start", "message": message }), out);
    }

    /// A provider that sends no beginning has clients that miss none; only what is woven needs one.
    fn start_if_spliced(&mut self, out: &mut Vec<u8>) {
        if self.spliced { self.start(out) } else { self.client.started = true }
    }

    fn write_block_start(&mut self, event: &Event<'_>, at: usize, changes: &[Change], out: &mut Vec<u8>) {
        let (renumbers, next) = (self.renumbers(), self.client.next_index);
        let Some(block) = self.blocks.get_mut(at).filter(|block| !block.dropped) else { return };
        let index = if renumbers { next } else { block.index };
        block.client_index = Some(index);
        let (same, text) = (index == block.index, block.kind == Kind::Text);
        self.start_if_spliced(out);
        self.close(|open| open.block.is_none(), out);
        self.client.next_index = next.max(index.saturating_add(1));
        self.client.open.push(Open { index, text, block: Some(at) });
        if same && changes.is_empty() {
            return self.frame.pass(event, out);
        }
        let Some(mut value) = json::parse(&event.data) else { return };
        set_index(&mut value, index);
        if let Some(block) = value.get_mut("content_block") {
            change_block(block, changes, &mut 0);
        }
        self.frame.rewrite(event, &value, out);
    }

    fn write_delta(&mut self, event: &Event<'_>, at: usize, changes: &[Change], out: &mut Vec<u8>) {
        let Some(block) = self.blocks.get(at).filter(|block| !block.dropped) else { return };
        let index = block.client_index.unwrap_or(block.index);
        if index == block.index && changes.is_empty() {
            return self.frame.pass(event, out);
        }
        let Some(mut value) = json::parse(&event.data) else { return };
        set_index(&mut value, index);
        if let (Some(new), Some(delta)) = (nth_text(changes, 0), value.get_mut("delta")) {
            if new.is_empty() {
                return;
            }
            for name in ["text", "thinking", "partial_json"] {
                if let Some(place) = delta.get_mut(name) {
                    *place = new.into();
                }
            }
        }
        self.frame.rewrite(event, &value, out);
    }

    fn write_block_stop(&mut self, event: &Event<'_>, at: usize, out: &mut Vec<u8>) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| !block.dropped) else { return };
        block.stop_written = true;
        let index = block.client_index.unwrap_or(block.index);
        let same = index == block.index;
        self.client.open.retain(|open| open.index != index);
        if same {
            return self.frame.pass(event, out);
        }
        let Some(mut value) = json::parse(&event.data) else { return };
        set_index(&mut value, index);
        self.frame.rewrite(event, &value, out);
    }

    fn write_ending(&mut self, event: &Event<'_>, out: &mut Vec<u8>) {
        self.start_if_spliced(out);
        self.close(|open| open.block.is_none(), out);
        self.client.ending = true;
        let Some(mut value) = json::parse(&event.data) else { return };
        let asks = value.get("delta").and_then(|delta| text(delta, "stop_reason")) == Some("tool_use");
        let lost = asks && self.lost_its_calls();
        if lost && let Some(Value::Object(delta)) = value.get_mut("delta") {
            delta.insert("stop_reason".into(), "end_turn".into());
        }
        if self.spliced {
            let usage = self.all_usage();
            if let Value::Object(members) = &mut value {
                members.insert("usage".into(), usage);
            }
        }
        if lost || self.spliced {
            self.frame.rewrite(event, &value, out)
        } else {
            self.frame.pass(event, out)
        }
    }

    /// What all answers cost together, as a `message_delta` says it.
    fn all_usage(&self) -> Value {
        let mut all = self.usage.clone();
        crate::proxy::usage::add(&mut all, &self.spent);
        let mut usage: Map<String, Value> = Map::new();
        for name in COUNTS {
            if let Some(count) = all.get(*name).filter(|count| !count.is_null()) {
                usage.insert((*name).into(), count.clone());
            }
        }
        usage.entry("output_tokens").or_insert(0.into());
        Value::Object(usage)
    }

    /// Stops blocks that are open for the client.
    fn close(&mut self, which: impl Fn(&Open) -> bool, out: &mut Vec<u8>) {
        if self.client.open.is_empty() || self.whole {
            return;
        }
        for open in std::mem::take(&mut self.client.open) {
            if which(&open) {
                let stop = json!({ "type": "content_block_stop", "index": open.index });
                self.frame.own("content_block_stop", &stop, out);
            } else {
                self.client.open.push(open);
            }
        }
    }

    pub(super) fn write_said(&mut self, text: &str, out: &mut Vec<u8>) {
        self.start(out);
        let delta = |index: u64| json!({ "type": "content_block_delta", "index": index, "delta": { "type": "text_delta", "text": text } });
        if let Some(open) = self.client.open.last().filter(|open| open.text) {
            return self.frame.own("content_block_delta", &delta(open.index), out);
        }
        self.close(|open| open.block.is_none(), out);
        let index = self.client.next_index;
        self.client.next_index = index.saturating_add(1);
        self.client.has_said = true;
        let begin = json!({ "type": "content_block_start", "index": index, "content_block": { "type": "text", "text": "" } });
        self.frame.own("content_block_start", &begin, out);
        self.frame.own("content_block_delta", &delta(index), out);
        self.frame.own("content_block_stop", &json!({ "type": "content_block_stop", "index": index }), out);
    }

    pub(super) fn write_end(&mut self, how: &End, out: &mut Vec<u8>) {
        if self.client.done {
            return;
        }
        self.start(out);
        self.close(|_| true, out);
        self.client.done = true;
        if !std::mem::replace(&mut self.client.ending, true) {
            let word = match how {
                End::Filtered => "refusal",
                End::Stopped if self.n_whole_calls() > 0 => "tool_use",
                End::Stopped => "end_turn",
            };
            let usage = if self.spliced {
                self.all_usage()
            } else {
                json!({ "output_tokens": json::count(&self.usage, &["output_tokens"]).unwrap_or(0) })
            };
            let delta = json!({ "stop_reason": word, "stop_sequence": null });
            let ending = json!({ "type": "message_delta", "delta": delta, "usage": usage });
            self.frame.own("message_delta", &ending, out);
        }
        self.frame.own("message_stop", &json!({ "type": "message_stop" }), out);
    }
}

fn set_index(event: &mut Value, index: u64) {
    if let Value::Object(members) = event {
        members.insert("index".into(), index.into());
    }
}

/// Changes the texts of a block, counted from `nth`; true when one was changed.
pub(super) fn change_block(block: &mut Value, changes: &[Change], nth: &mut u32) -> bool {
    let mut changed = false;
    for_texts(block, &mut |spot, value| {
        if let Some(new) = nth_text(changes, *nth) {
            *value = if spot == Spot::Input { input(new) } else { new.into() };
            changed = true;
        }
        *nth = nth.saturating_add(1);
    });
    changed
}
