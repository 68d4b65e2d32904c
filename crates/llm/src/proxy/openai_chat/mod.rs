//! OpenAI's chat completions, and what its many imitators make of them, seen from the middle.
//!
//! Read as generously as the client's decoder ([`crate::wire::openai_chat`]) reads, but all choices count. A call is
//! complete when its choice ends, or the stream: calls may interleave, so the next call's beginning says nothing.
//! Arguments that still come after that are [`Odd`]. A call whose index the server used for another one already gets
//! an index of its own on the way out, because clients would mix the two.

mod body;
mod choice;
mod chunk;
mod read;
mod request;
mod write;

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::errors::openai_error;
use super::frame::Frame;
use super::template::Template;
use super::{
    Asked, Change, Channel, ChannelKind, End, ErrorKind, Exchange, Middle, Names, Note, Odd, Piece,
    RequestChange,
};
use crate::sse::Event;
use crate::wire::call_pieces::CallPieces;
use chunk::PlainText;

/// OpenAI's chat completions.
pub static OPENAI_CHAT: OpenAiChat = OpenAiChat;

/// The wire of OpenAI's chat completions.
#[derive(Debug)]
pub struct OpenAiChat;

impl Middle for OpenAiChat {
    fn name(&self) -> &'static str {
        "openai-chat"
    }

    fn asked(&self, path: &str, body: &Value) -> Result<Asked, Odd> {
        request::asked(path, body)
    }

    fn change(&self, body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
        request::change(body, changes)
    }

    fn exchange(&self, whole: bool) -> Box<dyn Exchange> {
        Box::new(Chat { whole, ..Chat::default() })
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Value {
        openai_error(kind, message)
    }
}

/// One answer on its way.
#[derive(Debug, Default)]
struct Chat {
    whole: bool,
    frame: Frame,
    /// The last plain chunk: its choice, its text, and whether it says a role.
    template: Template<(u32, PlainText, bool)>,
    /// The members of the first chunk that ours have too: id, created, model and so on.
    head: Option<Map<String, Value>>,
    /// What the provider said in its current answer.
    choices: Vec<Choice>,
    done: bool,
    /// What the current answer costs, as far as it is known.
    usage: Value,
    /// What the answers before it cost.
    spent: Value,
    /// It is not the first answer.
    spliced: bool,
    /// Which calls the entries of the events belong to that are read and not yet written, by the number of the event.
    calls_of: VecDeque<(u32, Vec<u32>)>,
    n_events_with_calls: u32,
    client: Client,
}

/// One choice of the provider's current answer.
#[derive(Debug, Default)]
struct Choice {
    index: u32,
    text: String,
    reasoning: String,
    /// The member that its reasoning came in.
    reasoning_field: &'static str,
    reasoning_details: Vec<Value>,
    pieces: CallPieces,
    calls: Vec<ChatCall>,
    /// The number of the first call, which counts the calls of the answers before it.
    first_call: u32,
    /// Its calls came as `function_call`.
    legacy: bool,
    /// Two calls have the same index.
    collision: bool,
    /// The provider's last word of why it ended.
    finish: String,
}

#[derive(Debug, Default)]
struct ChatCall {
    id: String,
    name: String,
    arguments: String,
    /// The index that the server gave.
    wire_index: Option<u64>,
    /// A tool with free text where functions have arguments.
    custom: bool,
    ended: bool,
    dropped: bool,
    /// The index that the client knows it by.
    client_index: Option<u64>,
    n_read: u32,
    n_written: u32,
}

/// What the client has got.
#[derive(Debug, Default)]
struct Client {
    choices: Vec<Seen>,
    usage_written: bool,
    done: bool,
}

/// One choice as the client knows it.
#[derive(Debug, Default)]
struct Seen {
    index: u32,
    begun: bool,
    /// We said its role; the provider's would be the second.
    role_is_ours: bool,
    finished: bool,
    /// How many calls the answers before the current one had.
    n_calls: u32,
    /// The index for the next call.
    next_index: u64,
    /// Whole calls of answers before the current one.
    n_whole_calls: u32,
    /// Only for whole bodies: what stands before the current answer's text, and behind it.
    before: String,
    after: String,
    reasoning_before: String,
    /// Only for whole bodies: text and reasoning as the current answer was written, if it was.
    written: Option<(String, String)>,
}

impl Exchange for Chat {
    fn read(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Piece<'_>)) -> Result<Note, Odd> {
        self.frame.learn(event.raw);
        self.read_event(event, out)
    }

    fn ended(&mut self, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let answer = self.head.as_ref().and_then(|head| head.get("id")?.as_str()).unwrap_or_default();
        self.choices.iter_mut().for_each(|choice| choice.end_calls(answer, out));
        let finished = !self.choices.is_empty() && self.choices.iter().all(|c| !c.finish.is_empty());
        self.done || finished
    }

    fn drop_call(&mut self, channel: Channel) {
        if let Some(call) = self.call_mut(channel) {
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
            let read = self.choices.iter().any(|c| c.index == choice);
            let seen = self.client.choice(choice);
            if read { seen.after.push_str(text) } else { seen.before.push_str(text) }
        } else if !self.client.done {
            self.write_said(choice, text, out);
        }
    }

    fn end(&mut self, how: End, out: &mut Vec<u8>) {
        if !self.whole {
            self.write_end(&how, out);
        }
    }

    fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        self.client.done = true;
        let error = json!({ "message": message, "type": "server_error", "param": null, "code": null });
        self.frame.own("", &json!({ "error": error }), out);
    }

    fn next_answer(&mut self) {
        for choice in std::mem::take(&mut self.choices) {
            let seen = self.client.choice(choice.index);
            let whole = choice.calls.iter().filter(|call| call.is_whole()).count();
            seen.n_whole_calls = seen.n_whole_calls.saturating_add(count(whole));
            seen.n_calls = seen.n_calls.saturating_add(count(choice.calls.len()));
            if self.whole {
                seen.keep_texts(&choice.text, &choice.reasoning);
            }
        }
        self.calls_of.clear();
        self.done = false;
        super::usage::add(&mut self.spent, &std::mem::take(&mut self.usage));
        self.spliced = true;
    }

    fn echo(&self) -> Vec<Value> {
        self.choices.iter().find(|choice| choice.has_said()).map(Choice::echo).into_iter().collect()
    }

    fn names(&self) -> Names<'_> {
        Names::of(self.head.as_ref(), "id", "model")
    }

    fn read_body(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd> {
        self.read_whole(body, out)
    }

    fn write_body(&mut self, body: Value, changes: &[Change], end: Option<End>) -> Value {
        self.write_whole(body, changes, end)
    }
}

impl Chat {
    fn call_mut(&mut self, channel: Channel) -> Option<&mut ChatCall> {
        let ChannelKind::Call(number) = channel.kind else { return None };
        self.choices.iter_mut().find(|c| c.index == channel.choice)?.call_mut(number)
    }

    fn choice_mut(&mut self, index: u32) -> Option<&mut Choice> {
        match self.choices.iter().position(|choice| choice.index == index) {
            Some(at) => self.choices.get_mut(at),
            None => {
                let first_call = self.client.choice(index).n_calls;
                self.choices.push(Choice { index, first_call, ..Choice::default() });
                self.choices.last_mut()
            }
        }
    }
}

impl Client {
    fn choice(&mut self, index: u32) -> &mut Seen {
        let at = self.choices.iter().position(|seen| seen.index == index);
        let at = at.unwrap_or_else(|| {
            self.choices.push(Seen { index, ..Seen::default() });
            self.choices.len().saturating_sub(1)
        });
        #[expect(clippy::indexing_slicing, reason = "the place was looked up or made above")]
        &mut self.choices[at]
    }
}

impl Seen {
    /// Another answer follows: what this one said stands before it.
    fn keep_texts(&mut self, text: &str, reasoning: &str) {
        let after = std::mem::take(&mut self.after);
        if let Some((text, reasoning)) = self.written.take() {
            (self.before, self.reasoning_before) = (text, reasoning);
        } else {
            self.before.push_str(text);
            self.before.push_str(&after);
            self.reasoning_before.push_str(reasoning);
        }
    }
}

impl Choice {
    fn call_mut(&mut self, number: u32) -> Option<&mut ChatCall> {
        self.calls.get_mut(usize::try_from(number.checked_sub(self.first_call)?).ok()?)
    }

    fn channel(&self, kind: ChannelKind) -> Channel {
        Channel { choice: self.index, kind }
    }

    fn has_said(&self) -> bool {
        !(self.text.is_empty() && self.reasoning.is_empty() && self.calls.is_empty())
    }

    /// Calls go out under other indexes than the server's.
    fn renumbers(&self) -> bool {
        self.collision || self.first_call > 0 || self.calls.iter().any(|call| call.dropped)
    }

    /// It had calls, and none of them goes out.
    fn lost_its_calls(&self) -> bool {
        !self.calls.is_empty() && self.calls.iter().all(|call| call.dropped)
    }

    /// What it said, as a message of a request.
    fn echo(&self) -> Value {
        let mut message = Map::new();
        message.insert("role".into(), "assistant".into());
        let silent = self.text.is_empty() && !self.calls.is_empty();
        message.insert("content".into(), if silent { Value::Null } else { self.text.as_str().into() });
        if !self.reasoning.is_empty() && !self.reasoning_field.is_empty() {
            message.insert(self.reasoning_field.into(), self.reasoning.as_str().into());
        }
        if !self.reasoning_details.is_empty() {
            message.insert("reasoning_details".into(), self.reasoning_details.clone().into());
        }
        match self.calls.first() {
            Some(call) if self.legacy => {
                let function = json!({ "name": call.name, "arguments": call.arguments });
                message.insert("function_call".into(), function);
            }
            Some(_) => {
                message.insert("tool_calls".into(), self.calls.iter().map(ChatCall::echo).collect());
            }
            None => {}
        }
        Value::Object(message)
    }
}

impl ChatCall {
    fn is_whole(&self) -> bool {
        self.ended && !self.dropped && self.client_index.is_some() && self.n_read == self.n_written
    }

    fn echo(&self) -> Value {
        if self.custom {
            let custom = json!({ "name": self.name, "input": self.arguments });
            return json!({ "id": self.id, "type": "custom", "custom": custom });
        }
        let arguments = if self.arguments.trim().is_empty() { "{}" } else { &self.arguments };
        let function = json!({ "name": self.name, "arguments": arguments });
        json!({ "id": self.id, "type": "function", "function": function })
    }
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
