//! What an event brings.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::Chat;
use super::choice::Reader;
use super::chunk::{Plain, PlainText, Spot, content, walk};
use crate::error::excerpt;
use crate::proxy::leaves::{leaves, member_leaves};
use crate::proxy::{Note, Odd, Piece};
use crate::sse::Event;
use crate::wire::Failure;
use crate::wire::call_pieces::Piece as CallPiece;
use crate::wire::json::{self, is_something, text};
use crate::{FinishReason, finish::Finish};

pub(super) type Out<'o> = &'o mut dyn FnMut(Piece<'_>);

/// The members of the first chunk that our own chunks have too.
const HEAD: &[&str] = &["id", "object", "created", "model", "system_fingerprint", "service_tier"];

/// In place of a call's number: the entry is no call.
pub(super) const NO_CALL: u32 = u32::MAX;

/// What an event is, as it is kept in a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing has to be known of it.
    Pass,
    /// One text of one choice, and whether it says a role.
    Text {
        choice: u32,
        role: bool,
    },
    /// One piece of one call.
    Call {
        choice: u32,
        number: u32,
    },
    /// Anything else that is a chunk; the number under which its calls are kept.
    Chunk {
        event: u32,
    },
    Done,
    /// Half an event, of a stream that was cut.
    Half,
}

/// Choices beyond this are read the long way, so that an index fits into a note.
const MOST_CHOICES: u32 = 1 << 24;

impl Kind {
    pub(super) fn note(self) -> Note {
        let (kind, choice, number) = match self {
            Kind::Pass => (0, 0, 0),
            Kind::Text { choice, role: false } => (1, choice, 0),
            Kind::Text { choice, role: true } => (2, choice, 0),
            Kind::Call { choice, number } => (3, choice, number),
            Kind::Chunk { event } => (4, 0, event),
            Kind::Done => (5, 0, 0),
            Kind::Half => (6, 0, 0),
        };
        Note(kind | u64::from(choice) << 8 | u64::from(number) << 32)
    }

    pub(super) fn of(note: Note) -> Kind {
        let choice = u32::try_from(note.0 >> 8 & 0xFF_FFFF).unwrap_or_default();
        let number = u32::try_from(note.0 >> 32).unwrap_or_default();
        match note.0 & 0xFF {
            1 => Kind::Text { choice, role: false },
            2 => Kind::Text { choice, role: true },
            3 => Kind::Call { choice, number },
            4 => Kind::Chunk { event: number },
            5 => Kind::Done,
            6 => Kind::Half,
            _ => Kind::Pass,
        }
    }
}

impl Chat {
    pub(super) fn read_event(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Note, Odd> {
        let plain = if self.head.is_some() { self.read_plain(&event.data, out)? } else { None };
        let kind = match plain {
            Some(kind) => kind,
            None => self.read_any(event, out)?,
        };
        Ok(kind.note())
    }

    /// Reads a chunk with one piece of one text; `None` when it is another one.
    fn read_plain(&mut self, data: &str, out: Out<'_>) -> Result<Option<Kind>, Odd> {
        if let Some((text, (index, kind, role))) = self.template.text(data) {
            return self.read_piece(index, kind, role, text, out);
        }
        let Ok(Plain { choices: [plain], .. }) = serde_json::from_str::<Plain<'_>>(data) else {
            return Ok(None);
        };
        let finished = plain.finish_reason.as_ref().is_some_and(|word| !word.0.is_empty());
        let Some((kind, text)) = plain.delta.only_text().filter(|_| !finished && plain.index < MOST_CHOICES)
        else {
            return Ok(None);
        };
        let role = plain.delta.role.is_some();
        self.template.learn(data, text, (plain.index, kind, role));
        self.read_piece(plain.index, kind, role, text, out)
    }

    #[inline]
    fn read_piece(
        &mut self,
        index: u32,
        kind: PlainText,
        role: bool,
        text: &str,
        out: Out<'_>,
    ) -> Result<Option<Kind>, Odd> {
        let Some(choice) = self.choice_mut(index) else { return Ok(None) };
        match kind {
            PlainText::Content => choice.say(text, out),
            PlainText::Reasoning(field) => choice.think(field, text, out),
            PlainText::Call(at) => {
                if role || !choice.calls.iter().any(|call| call.wire_index == Some(at)) {
                    return Ok(None);
                }
                let piece = CallPiece { index: Some(at), ..CallPiece::default() };
                let number = choice.argue(piece, text, out)?;
                return Ok(Some(Kind::Call { choice: index, number }));
            }
        }
        Ok(Some(Kind::Text { choice: index, role }))
    }

    fn read_any(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Kind, Odd> {
        let data = &*event.data;
        if data.trim() == "[DONE]" {
            if !std::mem::replace(&mut self.done, true) {
                out(Piece::Done);
            }
            return Ok(Kind::Done);
        }
        let Some(mut value) = json::parse(data) else {
            return match &*event.event {
                _ if !event.closed => {
                    out(Piece::Aside(Cow::Borrowed(data)));
                    Ok(Kind::Half)
                }
                "error" => {
                    out(Piece::Error(Cow::Borrowed(data)));
                    Ok(Kind::Pass)
                }
                _ => Err(Odd(format!("an event is no JSON: `{}`", excerpt(data)))),
            };
        };
        if let Some(failure) = Failure::find(&value) {
            out(Piece::Error(failure.message.into()));
        } else if event.event == "error" {
            out(Piece::Error(Failure::from_body(data.as_bytes()).message.into()));
        }
        let mut numbers = Vec::new();
        self.read_chunk(&mut value, false, &mut numbers, out)?;
        if !numbers.is_empty() {
            self.n_events_with_calls = self.n_events_with_calls.wrapping_add(1).max(1);
            self.calls_of.push_back((self.n_events_with_calls, numbers));
            return Ok(Kind::Chunk { event: self.n_events_with_calls });
        }
        Ok(Kind::Chunk { event: 0 })
    }

    /// Reads a chunk, or a whole answer. The numbers of the calls that its entries belong to go into `numbers`.
    pub(super) fn read_chunk(
        &mut self,
        chunk: &mut Value,
        whole: bool,
        numbers: &mut Vec<u32>,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let Value::Object(members) = chunk else {
            leaves(chunk).into_iter().for_each(|text| out(Piece::Aside(text.into())));
            return Ok(());
        };
        self.keep_head(members);
        for (name, value) in members.iter_mut() {
            match (name.as_str(), value) {
                ("choices", Value::Array(choices)) => {
                    for choice in choices {
                        self.read_choice(choice, whole, numbers, out)?;
                    }
                }
                ("usage", usage @ Value::Object(_)) => {
                    let tokens = |name| json::count(usage, &[name]);
                    out(Piece::Usage { input: tokens("prompt_tokens"), output: tokens("completion_tokens") });
                    self.usage = usage.take();
                }
                (name, value) => aside(name, value, out),
            }
        }
        Ok(())
    }

    fn keep_head(&mut self, members: &Map<String, Value>) {
        let full =
            members.get("choices").and_then(Value::as_array).is_some_and(|choices| !choices.is_empty());
        if full && self.head.is_none() {
            let known =
                HEAD.iter().filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())));
            self.head = Some(known.collect());
        }
    }

    fn read_choice(
        &mut self,
        choice: &mut Value,
        whole: bool,
        numbers: &mut Vec<u32>,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        if let Some(failure) = Failure::find(choice) {
            out(Piece::Error(failure.message.into()));
        }
        let index = index_of(choice)?;
        let answer =
            self.head.as_ref().and_then(|head| head.get("id")?.as_str()).unwrap_or_default().to_owned();
        let Some(state) = self.choice_mut(index) else { return Ok(()) };
        let n_before = state.text.len();
        let mut reader = Reader { choice: state, whole, numbers, said: Vec::new(), result: Ok(()), out };
        for_texts(choice, &mut |spot, name, value| reader.see(spot, name, value));
        let Reader { result, out, .. } = reader;
        result?;
        let said = state.text.get(n_before..).unwrap_or_default();
        for (name, value) in choice.as_object().into_iter().flatten() {
            match name.as_str() {
                "delta" | "message" | "text" | "error" | "index" | "finish_reason" => {}
                "native_finish_reason" | "stop_reason" | "matched_stop" | "content_filter_results" => {}
                "logprobs" => {
                    if tokens(value).as_deref() != Some(said) {
                        aside(name, value, out);
                    }
                }
                name => aside(name, value, out),
            }
        }
        if let Some(word) = text(choice, "finish_reason") {
            state.end_calls(&answer, out);
            if state.finish != word {
                word.clone_into(&mut state.finish);
                let finish = Finish::from_word(word);
                out(Piece::Finish { choice: index, reason: finish.as_str().to_owned().into() });
            }
        }
        Ok(())
    }
}

/// A missing index counts as 0.
pub(super) fn index_of(choice: &Value) -> Result<u32, Odd> {
    match choice.get("index") {
        None | Some(Value::Null) => Ok(0),
        Some(index) => {
            let index = index.as_u64().and_then(|index| u32::try_from(index).ok());
            index.ok_or_else(|| Odd("a choice's index is no small number".into()))
        }
    }
}

/// Shows all texts of a choice, in the order that counts them.
pub(super) fn for_texts(choice: &mut Value, see: &mut dyn FnMut(Spot, &str, &mut Value)) {
    for name in ["delta", "message"] {
        if let Some(message) = choice.get_mut(name).filter(|message| is_something(message)) {
            walk(message, see);
        }
    }
    choice.get_mut("text").into_iter().for_each(|value| content(value, see));
}

/// The text that the tokens of `logprobs` make.
fn tokens(logprobs: &Value) -> Option<String> {
    let lists = ["content", "refusal"].into_iter().flat_map(|name| json::list(logprobs, name));
    lists.map(|token| token.get("token")?.as_str()).collect()
}

pub(super) fn aside(name: &str, value: &Value, out: Out<'_>) {
    if let Some(text) = member_leaves(name, value) {
        out(Piece::Aside(text.into()));
    }
}

/// Whether the word says that calls are to be made.
pub(super) fn asks_for_calls(word: &str) -> bool {
    Finish::from_word(word).reason == FinishReason::ToolCalls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_say_what_was_put_in() {
        for kind in [
            Kind::Pass,
            Kind::Text { choice: 3, role: false },
            Kind::Text { choice: MOST_CHOICES - 1, role: true },
            Kind::Call { choice: 1, number: u32::MAX },
            Kind::Chunk { event: 7 },
            Kind::Done,
            Kind::Half,
        ] {
            assert_eq!(Kind::of(kind.note()), kind);
        }
        assert_eq!(Kind::of(Note::default()), Kind::Pass);
    }
}
