//! What repeats: wholes are compared with what the pieces brought.

use serde_json::Value;

use super::item::{Kind, List, Place, arguments, arguments_member, text_member, tool};
use super::read::{Out, channel, part_text};
use super::{Meta, Responses};
use crate::error::excerpt;
use crate::proxy::{Call, ChannelKind, Odd, Piece};
use crate::wire::Failure;
use crate::wire::json::{self, list, text};

/// Members of a response that say what was asked, and numbers.
const OF_THE_REQUEST: &[&str] = &[
    "output",
    "output_text",
    "usage",
    "incomplete_details",
    "instructions",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "text",
    "tool_choice",
    "tools",
    "truncation",
    "user",
    "metadata",
    "conversation",
    "billing",
];

impl Responses {
    /// Compares a whole text with what there is of it; what it has more is text.
    pub(super) fn settle_text(
        &mut self,
        item: usize,
        part: usize,
        whole: &str,
        meta: &mut Meta,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let known = self.items.get(item).and_then(|item| item.parts.get(part));
        let known = known.map_or("", |part| part.text.as_str());
        match whole.strip_prefix(known) {
            Some(more) => self.add(item, part, more, meta, out),
            // Some repeat nothing.
            None if whole.is_empty() => Ok(()),
            None => Err(Odd(format!("a text ends as another one than it was: `{}`", excerpt(whole)))),
        }
    }

    pub(super) fn settle_part(
        &mut self,
        item: usize,
        at: usize,
        part: &Value,
        meta: &mut Meta,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let whole = part_text(part);
        self.settle_text(item, at, whole, meta, out)?;
        self.logprobs(part, whole, out);
        self.others(part, &[text_member(part), "logprobs"], out);
        if let Some(known) = self.items.get_mut(item).and_then(|item| item.parts.get_mut(at)) {
            known.value = part.clone();
        }
        Ok(())
    }

    pub(super) fn settle_item(
        &mut self,
        at: usize,
        item: &Value,
        meta: &mut Meta,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let Some(known) = self.items.get_mut(at) else { return Ok(()) };
        let kind = known.kind;
        known.value = item.clone();
        match kind {
            Kind::Other => {
                self.others(item, &[], out);
                return Ok(());
            }
            Kind::Call(_) => {
                let member = arguments_member(item).unwrap_or("arguments");
                self.others(item, &[member, "name", "namespace"], out);
                let whole = arguments(item, member);
                let part = self.part(at, Place::Member(member), Value::Null);
                return self.settle_text(at, part, &whole, meta, out);
            }
            Kind::Message | Kind::Reasoning => self.others(item, &["content", "summary", "phase"], out),
        }
        for in_list in [List::Summary, List::Content] {
            if let Some(odd) = item.get(in_list.name()).filter(|value| !value.is_array()) {
                self.aside(in_list.name(), odd, out);
            }
            for (part, index) in list(item, in_list.name()).iter().zip(0u64..) {
                let place = self.part(at, Place::Of(in_list, index), part.clone());
                self.settle_part(at, place, part, meta, out)?;
            }
        }
        Ok(())
    }

    /// Nothing follows for an item.
    pub(super) fn complete(&mut self, at: usize, out: Out<'_>) {
        let Some(item) = self.items.get_mut(at).filter(|item| !item.complete && !item.ours) else { return };
        item.complete = true;
        if let Kind::Call(number) = item.kind {
            let arguments = item.parts.first().map(|part| part.text.clone()).unwrap_or_default();
            let (id, name) = (call_id(&item.value).to_owned(), tool(&item.value).to_owned());
            let call = Call { id, name, arguments };
            out(Piece::CallEnd { channel: channel(ChannelKind::Call(number)), call });
        }
    }

    fn is_ours(&self, at: usize) -> bool {
        self.items.get(at).is_some_and(|item| item.ours)
    }

    /// Whether an item of the wire can be the one at this place.
    pub(super) fn same_kind(&self, at: usize, item: &Value) -> bool {
        self.items.get(at).is_some_and(|known| text(&known.value, "type") == text(item, "type"))
    }

    /// Reads the items of a response; those that are known repeat.
    pub(super) fn settle_response(
        &mut self,
        response: &Value,
        last: bool,
        meta: &mut Meta,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let mut in_final = Vec::new();
        for (n, item) in list(response, "output").iter().enumerate() {
            let by_id = text(item, "id").and_then(|id| self.item_at(None, Some(id)));
            let by_place = || (self.first_item..self.items.len()).filter(|at| !self.is_ours(*at)).nth(n);
            let known =
                by_id.or_else(by_place).filter(|at| self.same_kind(*at, item) && !in_final.contains(at));
            let at = match known {
                Some(at) => at,
                None => self.begin(Some(n as u64), item, out),
            };
            in_final.push(at);
            self.settle_item(at, item, meta, out)?;
            if last {
                self.complete(at, out);
            }
        }
        if last {
            self.in_final = in_final;
        }
        Ok(())
    }

    pub(super) fn response_asides(&mut self, response: &Value, out: Out<'_>) {
        self.others(response, OF_THE_REQUEST, out);
        if let Some(usage) = response.get("usage").filter(|usage| usage.is_object()) {
            self.usage = usage.clone();
            let n = |name| json::count(usage, &[name]);
            out(Piece::Usage { input: n("input_tokens"), output: n("output_tokens") });
        }
    }

    /// Reads the response that ends an answer.
    pub(super) fn read_final(&mut self, response: &Value, meta: &mut Meta, out: Out<'_>) -> Result<(), Odd> {
        self.settle_response(response, true, meta, out)?;
        self.response_asides(response, out);
        if let Some(said) = text(response, "output_text")
            && said != self.content(false)
        {
            self.aside("output_text", &said.into(), out);
        }
        let current = self.items.get(self.first_item..).unwrap_or_default();
        let calls = current.iter().any(|item| item.is_call());
        let word = match text(response, "status").unwrap_or_default() {
            "failed" => {
                let failure = Failure::find(response).map(|failure| failure.message);
                out(Piece::Error(failure.unwrap_or_else(|| "the response failed".into()).into()));
                None
            }
            "incomplete" => {
                let why = response.get("incomplete_details").and_then(|details| text(details, "reason"));
                Some(match why {
                    Some("max_output_tokens") => "length",
                    other => other.unwrap_or("incomplete"),
                })
            }
            // Asked for in the background: it comes by another way.
            "queued" | "in_progress" => None,
            "completed" | "" if calls => Some("tool_calls"),
            "completed" | "" => Some("stop"),
            other => Some(other),
        };
        if let Some(word) = word {
            if !std::mem::replace(&mut self.finished, true) {
                out(Piece::Finish { choice: 0, reason: word.to_owned().into() });
            }
            if !std::mem::replace(&mut self.done, true) {
                out(Piece::Done);
            }
        }
        Ok(())
    }

    /// The text of all messages: as it was written, or as the provider said it in the current answer.
    pub(super) fn content(&self, written: bool) -> String {
        let from = if written { 0 } else { self.first_item };
        let items = self.items.get(from..).unwrap_or_default().iter();
        let messages = items.filter(|item| item.kind == Kind::Message && (written || !item.ours));
        let parts = messages.flat_map(|item| &item.parts);
        let parts = parts.filter(|part| text(&part.value, "type") == Some("output_text"));
        parts.map(|part| if written { part.written() } else { part.text.as_str() }).collect()
    }
}

/// The id that a call's result names.
pub(super) fn call_id(item: &Value) -> &str {
    text(item, "call_id").or_else(|| text(item, "id")).unwrap_or_default()
}
