//! Gemini's generateContent, seen from the middle.
//!
//! A call comes whole in one part and is complete at once; a call whose arguments come in pieces (`partialArgs`) is
//! [`Odd`]. There is no closing event: an answer is whole when all candidates have finished. A stream that is asked
//! for without `alt=sse` is one JSON array; it counts as a body, whose elements are read and written like events.
//! Comments are never written: SDKs of this wire fail on them. What Google's own tools wrap into `request` and
//! `response` is read as if it were not wrapped.

mod body;
mod chunk;
mod read;
mod request;
mod write;

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::frame::Frame;
use super::{
    Asked, Change, Channel, ChannelKind, End, ErrorKind, Exchange, Middle, Names, Note, Odd, Piece,
    RequestChange,
};
use crate::sse::Event;

/// Gemini's generateContent.
pub static GEMINI: Gemini = Gemini;

/// The wire of Gemini's generateContent.
#[derive(Debug)]
pub struct Gemini;

impl Middle for Gemini {
    fn name(&self) -> &'static str {
        "gemini-generate"
    }

    fn asked(&self, path: &str, body: &Value) -> Result<Asked, Odd> {
        request::asked(path, body)
    }

    fn change(&self, body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
        request::change(body, changes)
    }

    fn exchange(&self, whole: bool) -> Box<dyn Exchange> {
        Box::new(Generate { whole, ..Generate::default() })
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Value {
        let status = match kind {
            ErrorKind::Refused | ErrorKind::BadRequest | ErrorKind::TooLarge => "INVALID_ARGUMENT",
            ErrorKind::Unauthorized => "UNAUTHENTICATED",
            ErrorKind::Forbidden => "PERMISSION_DENIED",
            ErrorKind::NotFound => "NOT_FOUND",
            ErrorKind::Busy => "RESOURCE_EXHAUSTED",
            ErrorKind::Internal => "INTERNAL",
            ErrorKind::Upstream | ErrorKind::Unavailable => "UNAVAILABLE",
            ErrorKind::Late => "DEADLINE_EXCEEDED",
        };
        error(kind.status(), message, status)
    }
}

fn error(code: u16, message: &str, status: &str) -> Value {
    json!({ "error": { "code": code, "message": message, "status": status, "details": [] } })
}

/// One answer on its way.
#[derive(Debug, Default)]
struct Generate {
    whole: bool,
    frame: Frame,
    /// The members of the first chunk that ours have too: its id and the model.
    head: Option<Map<String, Value>>,
    /// Chunks stand in `response`.
    wrapped: bool,
    candidates: Vec<Candidate>,
    /// The prompt was blocked; nothing else follows.
    blocked: bool,
    /// What the current answer costs, as far as it is known.
    usage: Value,
    /// What the answers before it cost.
    spent: Value,
    /// It is not the first answer.
    spliced: bool,
    /// Which calls the events bring that are read and not yet written, by the number of the event.
    calls_of: VecDeque<(u32, Vec<u32>)>,
    n_events_with_calls: u32,
    client: Client,
}

/// One candidate of the provider's current answer.
#[derive(Debug, Default)]
struct Candidate {
    index: u32,
    /// What it said, as parts of a message.
    parts: Vec<Value>,
    calls: Vec<GeminiCall>,
    /// The number of the first call, which counts the calls of the answers before it.
    first_call: u32,
    finish: String,
}

#[derive(Clone, Copy, Debug, Default)]
struct GeminiCall {
    dropped: bool,
}

/// What the client has got.
#[derive(Debug, Default)]
struct Client {
    candidates: Vec<Seen>,
    done: bool,
}

/// One candidate as the client knows it.
#[derive(Debug, Default)]
struct Seen {
    index: u32,
    finished: bool,
    n_calls: u32,
    /// Only for whole bodies: parts before the current answer's, behind them, and all as they were written.
    before: Vec<Value>,
    after: Vec<Value>,
    written: Option<Vec<Value>>,
}

impl Exchange for Generate {
    fn read(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Piece<'_>)) -> Result<Note, Odd> {
        self.frame.learn(event.raw);
        self.read_event(event, out)
    }

    fn ended(&mut self, _: &mut dyn FnMut(Piece<'_>)) -> bool {
        let finished = !self.candidates.is_empty() && self.candidates.iter().all(|c| !c.finish.is_empty());
        finished || self.blocked
    }

    fn drop_call(&mut self, channel: Channel) {
        let ChannelKind::Call(number) = channel.kind else { return };
        let candidate = self.candidates.iter_mut().find(|candidate| candidate.index == channel.choice);
        if let Some(call) = candidate.and_then(|candidate| candidate.call_mut(number)) {
            call.dropped = true;
        }
    }

    fn write(&mut self, event: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>) {
        self.write_event(event, note, changes, false, out);
    }

    fn write_open(&mut self, event: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>) {
        self.write_event(event, note, changes, true, out);
    }

    fn say(&mut self, choice: u32, text: &str, out: &mut Vec<u8>) {
        if self.whole {
            let read = self.candidates.iter().any(|candidate| candidate.index == choice);
            let seen = self.client.candidate(choice);
            let place = if read { &mut seen.after } else { &mut seen.before };
            place.push(json!({ "text": text }));
        } else if !self.client.done {
            self.client.candidate(choice);
            self.own(&[candidate(choice, text, None)], false, out);
        }
    }

    fn end(&mut self, how: End, out: &mut Vec<u8>) {
        if !self.whole {
            self.write_end(&how, out);
        }
    }

    fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        self.client.done = true;
        self.frame.own("", &error(503, message, "UNAVAILABLE"), out);
    }

    fn next_answer(&mut self) {
        for candidate in std::mem::take(&mut self.candidates) {
            let seen = self.client.candidate(candidate.index);
            let n = u32::try_from(candidate.calls.len()).unwrap_or(u32::MAX);
            seen.n_calls = seen.n_calls.saturating_add(n);
            if self.whole {
                seen.keep_parts(candidate.parts);
            }
        }
        self.calls_of.clear();
        self.blocked = false;
        super::usage::add(&mut self.spent, &std::mem::take(&mut self.usage));
        self.spliced = true;
    }

    fn echo(&self) -> Vec<Value> {
        let said = self.candidates.iter().find(|candidate| !candidate.parts.is_empty());
        said.map(|said| json!({ "role": "model", "parts": said.parts })).into_iter().collect()
    }

    fn names(&self) -> Names<'_> {
        Names::of(self.head.as_ref(), "responseId", "modelVersion")
    }

    fn read_body(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd> {
        self.read_whole(body, out)
    }

    fn write_body(&mut self, body: Value, changes: &[Change], end: Option<End>) -> Value {
        self.write_whole(body, changes, end)
    }
}

impl Generate {
    fn candidate_mut(&mut self, index: u32) -> Option<&mut Candidate> {
        if let Some(at) = self.candidates.iter().position(|candidate| candidate.index == index) {
            return self.candidates.get_mut(at);
        }
        let first_call = self.client.candidate(index).n_calls;
        self.candidates.push(Candidate { index, first_call, ..Candidate::default() });
        self.candidates.last_mut()
    }
}

impl Candidate {
    fn call_mut(&mut self, number: u32) -> Option<&mut GeminiCall> {
        self.calls.get_mut(usize::try_from(number.checked_sub(self.first_call)?).ok()?)
    }
}

impl Client {
    fn candidate(&mut self, index: u32) -> &mut Seen {
        let at = self.candidates.iter().position(|seen| seen.index == index);
        let at = at.unwrap_or_else(|| {
            self.candidates.push(Seen { index, ..Seen::default() });
            self.candidates.len().saturating_sub(1)
        });
        #[expect(clippy::indexing_slicing, reason = "the place was looked up or made above")]
        &mut self.candidates[at]
    }
}

impl Seen {
    /// Another answer follows: what this one said stands before it, without its calls.
    fn keep_parts(&mut self, parts: Vec<Value>) {
        let after = std::mem::take(&mut self.after);
        if let Some(written) = self.written.take() {
            self.before = written;
            return;
        }
        self.before.extend(parts.into_iter().filter(|part| chunk::call(part).is_none()));
        self.before.extend(after);
    }
}

/// A candidate of our own.
fn candidate(index: u32, text: &str, finish: Option<&str>) -> Value {
    let mut candidate =
        json!({ "content": { "parts": [{ "text": text }], "role": "model" }, "index": index });
    if let (Some(word), Value::Object(members)) = (finish, &mut candidate) {
        members.insert("finishReason".into(), word.into());
    }
    candidate
}

#[cfg(test)]
mod tests;
