//! What one choice says: its texts and its calls.

use std::borrow::Cow;

use serde_json::Value;

use super::chunk::{Spot, call_member};
use super::read::{NO_CALL, Out, aside};
use super::{Channel, ChatCall, Choice};
use crate::error::excerpt;
use crate::proxy::leaves::loose;
use crate::proxy::{Call, ChannelKind, Odd, Piece};
use crate::wire::call_pieces::{Piece as CallPiece, Placed};
use crate::wire::json::{self, text};

/// Reads one choice of one event.
pub(super) struct Reader<'r, 'o> {
    pub(super) choice: &'r mut Choice,
    /// Every entry is a call of its own.
    pub(super) whole: bool,
    pub(super) numbers: &'r mut Vec<u32>,
    /// Names and arguments that the event's calls had so far.
    pub(super) said: Vec<(String, String)>,
    pub(super) result: Result<(), Odd>,
    pub(super) out: Out<'o>,
}

impl Reader<'_, '_> {
    pub(super) fn see(&mut self, spot: Spot, name: &str, value: &mut Value) {
        match spot {
            Spot::Content => self.choice.say(value.as_str().unwrap_or_default(), self.out),
            Spot::Reasoning(field) => self.choice.think(field, value.as_str().unwrap_or_default(), self.out),
            Spot::Again => {}
            Spot::Detail => self.choice.reasoning_details.push(value.clone()),
            Spot::Call if value.is_object() => self.call(value, false),
            Spot::Function if self.choice.calls.is_empty() || self.choice.legacy => self.call(value, true),
            Spot::Call | Spot::Function => {
                self.numbers.push(NO_CALL);
                // The old form beside the new one says the same again.
                if !self.said.contains(&name_and_arguments(value)) {
                    aside(name, value, self.out);
                }
            }
            Spot::Other if self.whole => aside(name, value, self.out),
            Spot::Other => loose(self.choice.index, name, value, self.out),
        }
    }

    fn call(&mut self, entry: &Value, legacy: bool) {
        let member = call_member(entry);
        let body = member.and_then(|member| entry.get(member)).unwrap_or(entry);
        let place = if legacy { Some(0) } else { json::count(entry, &["index"]) };
        let piece = CallPiece { index: place, id: text(entry, "id"), name: text(body, "name") };
        self.said.push(name_and_arguments(body));
        self.choice.legacy |= legacy;
        let (_, arguments) = name_and_arguments(body);
        let number = if self.whole {
            self.choice.argue_anew(piece, &arguments, self.out)
        } else {
            self.choice.argue(piece, &arguments, self.out)
        };
        match number {
            Ok(number) => {
                self.numbers.push(number);
                if let Some(call) = self.choice.call_mut(number) {
                    call.custom |= member == Some("custom");
                }
            }
            Err(odd) => self.result = Err(odd),
        }
        for (name, value) in entry.as_object().into_iter().flatten() {
            if !matches!(name.as_str(), "function" | "custom" | "name" | "arguments" | "input") {
                aside(name, value, self.out);
            }
        }
        if member.is_some() {
            for (name, value) in body.as_object().into_iter().flatten() {
                if !matches!(name.as_str(), "name" | "arguments" | "input") {
                    aside(name, value, self.out);
                }
            }
        }
    }
}

fn name_and_arguments(body: &Value) -> (String, String) {
    let arguments = match body.get("arguments").or_else(|| body.get("input")) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(whole) => whole.to_string(),
    };
    (text(body, "name").unwrap_or_default().to_owned(), arguments)
}

impl Choice {
    #[inline]
    pub(super) fn say(&mut self, text: &str, out: Out<'_>) {
        self.text.push_str(text);
        out(Piece::Text { channel: self.channel(ChannelKind::Content), text: Cow::Borrowed(text) });
    }

    pub(super) fn think(&mut self, field: &'static str, text: &str, out: Out<'_>) {
        self.reasoning.push_str(text);
        if self.reasoning_field.is_empty() {
            self.reasoning_field = field;
        }
        out(Piece::Text { channel: self.channel(ChannelKind::Reasoning), text: Cow::Borrowed(text) });
    }

    /// Reads a piece of a call; gives the call's number.
    pub(super) fn argue(&mut self, piece: CallPiece<'_>, arguments: &str, out: Out<'_>) -> Result<u32, Odd> {
        let placed = self.pieces.place(piece);
        self.add_to_call(placed, piece, arguments, out)
    }

    /// Reads a call that is whole.
    fn argue_anew(&mut self, piece: CallPiece<'_>, arguments: &str, out: Out<'_>) -> Result<u32, Odd> {
        let placed = self.pieces.begin(piece);
        self.add_to_call(placed, piece, arguments, out)
    }

    fn add_to_call(
        &mut self,
        placed: Option<Placed<'_>>,
        piece: CallPiece<'_>,
        arguments: &str,
        out: Out<'_>,
    ) -> Result<u32, Odd> {
        let placed = placed.ok_or_else(|| Odd("an answer has too many calls".into()))?;
        let number = self.first_call.saturating_add(placed.index);
        let channel = self.channel(ChannelKind::Call(number));
        if placed.new {
            let taken = |call: &ChatCall| call.wire_index.is_some() && call.wire_index == piece.index;
            self.collision |= self.calls.iter().any(taken);
            self.calls.push(ChatCall { wire_index: piece.index, ..ChatCall::default() });
            let (id, name) = (piece.id.unwrap_or_default(), piece.name.unwrap_or_default());
            out(Piece::CallBegin { channel, id: id.into(), name: name.into() });
        }
        let call = self.call_mut(number).ok_or_else(|| Odd("a call has no place".into()))?;
        let news = placed.id.is_some() || placed.name.is_some() || !arguments.is_empty();
        if call.ended && news {
            return Err(Odd(format!("the call `{}` goes on after its choice ended", excerpt(&call.name))));
        }
        call.id.push_str(placed.id.unwrap_or_default());
        call.name.push_str(placed.name.unwrap_or_default());
        call.n_read = call.n_read.saturating_add(1);
        if !arguments.is_empty() {
            call.arguments.push_str(arguments);
            out(Piece::Text { channel, text: Cow::Borrowed(arguments) });
        }
        Ok(number)
    }

    /// Nothing follows for its calls. Those without an id get one; the answer's makes it unique.
    pub(super) fn end_calls(&mut self, answer: &str, out: Out<'_>) {
        let (choice, first) = (self.index, self.first_call);
        for (call, n) in self.calls.iter_mut().zip(0u32..).filter(|(call, _)| !call.ended) {
            call.ended = true;
            if call.id.is_empty() {
                call.id = if answer.is_empty() { format!("call_{n}") } else { format!("call_{answer}_{n}") };
            }
            let channel = Channel { choice, kind: ChannelKind::Call(first.saturating_add(n)) };
            let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
            out(Piece::CallEnd { channel, call: Call { id, name, arguments } });
        }
    }
}
