//! Answers in one piece.

use serde_json::{Value, json};

use super::item::Kind;
use super::{Meta, Responses};
use crate::error::excerpt;
use crate::proxy::{Change, End, Odd, Piece};
use crate::wire::Failure;
use crate::wire::json::text;

impl Responses {
    pub(super) fn read_whole(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd> {
        self.body_spans.clear();
        self.body_added.clear();
        if let Some(failure) = Failure::find(body) {
            out(Piece::Error(failure.message.into()));
            // an error may stand beside an answer, which clients read all the same
            if !body.get("output").is_some_and(Value::is_array) {
                self.others(body, &[], out);
                return Ok(());
            }
        }
        if !body.get("output").is_some_and(Value::is_array) {
            return Err(Odd(format!("it is no response: `{}`", excerpt(&body.to_string()))));
        }
        if let (None, Value::Object(members)) = (&self.head, body) {
            self.head = Some(members.clone());
        }
        let mut meta = Meta::default();
        self.read_final(body, &mut meta, out)?;
        self.body_spans = meta.first.into_iter().chain(meta.more).collect();
        Ok(())
    }

    pub(super) fn write_whole(&mut self, mut body: Value, changes: &[Change], end: Option<End>) -> Value {
        if !body.get("output").is_some_and(Value::is_array) {
            return body;
        }
        self.write_texts(changes);
        self.edit_response(&mut body);
        if let (Some(end), Value::Object(members)) = (end, &mut body) {
            let (status, details) = match end {
                End::Filtered => ("incomplete", json!({ "reason": "content_filter" })),
                End::Stopped => ("completed", Value::Null),
            };
            members.insert("status".into(), status.into());
            members.insert("incomplete_details".into(), details);
        }
        body
    }

    /// Settles what the client gets of the texts, and the places of the items.
    fn write_texts(&mut self, changes: &[Change]) {
        for at in &self.in_final {
            let parts = self.items.get_mut(*at).into_iter().flat_map(|item| &mut item.parts);
            parts.for_each(super::item::Part::reset);
        }
        let spans = self.body_spans.clone();
        self.pass_texts(spans.into_iter(), changes);
        for (item, part, text) in std::mem::take(&mut self.body_added) {
            let item = self.items.get_mut(item);
            item.and_then(|item| item.parts.get_mut(part)).into_iter().for_each(|part| part.say(&text));
        }
        self.client.shifted = true;
        for at in 0..self.items.len() {
            self.index_item(at);
        }
    }

    /// Adds text of ours to the last message that was read, or as a message where there is none.
    pub(super) fn say_whole(&mut self, words: &str) {
        let messages = self.in_final.iter().rev().copied();
        let mut texts = messages.filter_map(|at| {
            let item = self.items.get(at).filter(|item| item.kind == Kind::Message)?;
            let part = item.parts.last().filter(|part| text(&part.value, "type") == Some("output_text"))?;
            let place = item.parts.iter().position(|known| known.place == part.place)?;
            Some((at, place))
        });
        match texts.next() {
            Some((item, part)) => self.body_added.push((item, part, words.to_owned())),
            None => drop(self.own_item(words)),
        }
    }

    /// Another answer follows: what this one said stands before it, without its calls.
    pub(super) fn keep_items(&mut self) {
        for item in self.items.iter_mut().filter(|item| item.is_call()) {
            item.dropped = true;
        }
        let written =
            self.in_final.iter().any(|at| self.items.get(*at).is_some_and(|i| i.client_index.is_some()));
        if !written {
            self.write_texts(&[]);
        }
    }
}
