//! Anthropic's messages, seen from the middle.
//!
//! A call is complete when its block stops. Tools that the provider runs itself (`server_tool_use`, `mcp_tool_use` and
//! their results) are asides. Blocks keep the provider's indexes until a call is dropped, a block of hookgate's own is
//! put in, another answer follows, or the provider gives two blocks one index; from then on they are counted anew.

mod block;
mod body;
mod read;
mod request;
mod write;

use serde_json::{Map, Value, json};

use super::frame::Frame;
use super::template::Template;
use super::{
    Asked, Change, Channel, ChannelKind, End, ErrorKind, Exchange, Middle, Names, Note, Odd, Piece,
    RequestChange,
};
use crate::sse::Event;
use read::Role;

/// Anthropic's messages.
pub static ANTHROPIC: Anthropic = Anthropic;

/// The wire of Anthropic's messages.
#[derive(Debug)]
pub struct Anthropic;

impl Middle for Anthropic {
    fn name(&self) -> &'static str {
        "anthropic-messages"
    }

    fn asked(&self, _: &str, body: &Value) -> Result<Asked, Odd> {
        request::asked(body)
    }

    fn change(&self, body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
        request::change(body, changes)
    }

    fn exchange(&self, whole: bool) -> Box<dyn Exchange> {
        Box::new(Messages { whole, ..Messages::default() })
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Value {
        let word = match kind {
            ErrorKind::Refused | ErrorKind::BadRequest => "invalid_request_error",
            ErrorKind::Unauthorized => "authentication_error",
            ErrorKind::Forbidden => "permission_error",
            ErrorKind::NotFound => "not_found_error",
            ErrorKind::TooLarge => "request_too_large",
            ErrorKind::Busy => "rate_limit_error",
            ErrorKind::Internal | ErrorKind::Upstream => "api_error",
            ErrorKind::Unavailable => "overloaded_error",
            ErrorKind::Late => "timeout_error",
        };
        json!({ "type": "error", "error": { "type": word, "message": message } })
    }
}

/// One answer on its way.
#[derive(Debug, Default)]
struct Messages {
    whole: bool,
    frame: Frame,
    /// The last plain delta: its block's index and its kind.
    template: Template<(u64, &'static str)>,
    /// The message that the first `message_start` brought.
    head: Option<Map<String, Value>>,
    /// The blocks of the provider's current answer.
    blocks: Vec<Block>,
    /// How many calls the answers before it had, and it has.
    first_call: u32,
    n_calls: u32,
    /// Two blocks have the same index.
    collision: bool,
    stop_reason: String,
    done: bool,
    /// What the current answer costs, as far as it is known.
    usage: Value,
    /// What the answers before it cost.
    spent: Value,
    /// It is not the first answer.
    spliced: bool,
    client: Client,
}

/// A block of the provider's current answer.
#[derive(Debug, Default)]
struct Block {
    /// The index that the provider gave.
    index: u64,
    kind: Kind,
    /// The block as it began.
    begun: Value,
    /// Its text, thoughts, or input.
    text: String,
    signature: String,
    citations: Vec<Value>,
    stopped: bool,
    dropped: bool,
    /// The index that the client knows it by, once it does.
    client_index: Option<u64>,
    /// Its stop went out.
    stop_written: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Text,
    Thinking,
    /// A call for the client, and its number.
    Call(u32),
    #[default]
    Other,
}

/// What the client has got.
#[derive(Debug, Default)]
struct Client {
    started: bool,
    next_index: u64,
    /// The blocks that have begun and not stopped.
    open: Vec<Open>,
    /// There is a block of our own among them.
    has_said: bool,
    n_whole_calls: u32,
    ending: bool,
    done: bool,
    /// Only for whole bodies: what stands before the current answer's blocks, behind them, and all as it was written.
    before: Vec<Value>,
    after: Vec<Value>,
    written: Option<Vec<Value>>,
}

/// A block that is open for the client.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: u64,
    text: bool,
    /// Its place in the current answer; none for one of an answer before.
    block: Option<usize>,
}

impl Exchange for Messages {
    fn read(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Piece<'_>)) -> Result<Note, Odd> {
        self.frame.learn(event.raw);
        let note = self.read_event(event, out)?;
        if let Role::BlockStop(at) = Role::of(note)
            && self.blocks.get(at).is_some_and(|block| block.kind == Kind::Text)
        {
            out(Piece::Closing { choice: 0 });
        }
        Ok(note)
    }

    fn ended(&mut self, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        for at in 0..self.blocks.len() {
            self.stop_block(at, out);
        }
        self.done || !self.stop_reason.is_empty()
    }

    fn drop_call(&mut self, channel: Channel) {
        let ChannelKind::Call(number) = channel.kind else { return };
        let block = self.blocks.iter_mut().find(|block| block.kind == Kind::Call(number));
        block.into_iter().for_each(|block| block.dropped = true);
    }

    fn write(&mut self, event: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>) {
        self.write_event(event, note, changes, out);
    }

    /// The event that brings the end brings no text on this wire.
    fn write_open(&mut self, _: &Event<'_>, _: Note, _: &[Change], _: &mut Vec<u8>) {}

    fn say(&mut self, _: u32, text: &str, out: &mut Vec<u8>) {
        if self.whole {
            let block = json!({ "type": "text", "text": text });
            let place = if self.done { &mut self.client.after } else { &mut self.client.before };
            place.push(block);
        } else if !self.client.done {
            self.write_said(text, out);
        }
    }

    fn end(&mut self, how: End, out: &mut Vec<u8>) {
        if !self.whole {
            self.write_end(&how, out);
        }
    }

    fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        self.client.done = true;
        let error = json!({ "type": "error", "error": { "type": "api_error", "message": message } });
        self.frame.own("error", &error, out);
    }

    fn next_answer(&mut self) {
        self.client.n_whole_calls = self.n_whole_calls();
        self.client.open.iter_mut().for_each(|open| open.block = None);
        if self.whole {
            self.keep_blocks();
        }
        self.blocks.clear();
        self.first_call = self.first_call.saturating_add(std::mem::take(&mut self.n_calls));
        self.stop_reason.clear();
        self.done = false;
        super::usage::add(&mut self.spent, &std::mem::take(&mut self.usage));
        self.spliced = true;
    }

    fn echo(&self) -> Vec<Value> {
        let blocks: Vec<Value> = self.blocks.iter().filter_map(Block::value).collect();
        if blocks.is_empty() {
            return Vec::new();
        }
        vec![json!({ "role": "assistant", "content": blocks })]
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

impl Messages {
    /// Blocks go out under other indexes than the provider's.
    fn renumbers(&self) -> bool {
        self.spliced
            || self.collision
            || self.client.has_said
            || self.blocks.iter().any(|block| block.dropped)
    }

    /// It had calls, and none of them goes out.
    fn lost_its_calls(&self) -> bool {
        let mut calls = self.blocks.iter().filter(|block| matches!(block.kind, Kind::Call(_))).peekable();
        calls.peek().is_some() && calls.all(|call| call.dropped) && self.client.n_whole_calls == 0
    }

    /// The calls that the client has got whole, of all answers.
    fn n_whole_calls(&self) -> u32 {
        let whole = |block: &&Block| matches!(block.kind, Kind::Call(_)) && block.stop_written;
        let n = self.blocks.iter().filter(whole).count();
        self.client.n_whole_calls.saturating_add(u32::try_from(n).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests;
