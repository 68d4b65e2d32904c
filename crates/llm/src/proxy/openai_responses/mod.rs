//! OpenAI's responses, seen from the middle.
//!
//! This wire says everything several times: in deltas, in the `done` of the text, of the part, of the item, and in the
//! response at the end. What repeats brings no piece; what it has more does; what contradicts is [`Odd`]. Each part
//! remembers its text as it was written, and every repeat shows that.
//!
//! Calls that the client runs (`function_call`, `custom_tool_call`, and those for its shell, computer and files) are
//! calls, complete with the `done` of their item; what the provider runs itself is an aside.

mod body;
mod item;
mod own;
mod read;
mod request;
mod settle;
mod write;

use std::collections::{HashSet, VecDeque};

use serde_json::{Map, Value};

use super::errors::openai_error;
use super::frame::Frame;
use super::{
    Asked, Change, Channel, ChannelKind, Continues, End, ErrorKind, Exchange, Middle, Names, Note, Odd,
    Piece, RequestChange,
};
use crate::sse::Event;
use crate::wire::json;
use item::{Item, Kind};

/// OpenAI's responses.
pub static OPENAI_RESPONSES: OpenAiResponses = OpenAiResponses;

/// The wire of OpenAI's responses.
#[derive(Debug)]
pub struct OpenAiResponses;

impl Middle for OpenAiResponses {
    fn name(&self) -> &'static str {
        "openai-responses"
    }

    fn asked(&self, _: &str, body: &Value) -> Result<Asked, Odd> {
        request::asked(body)
    }

    fn change(&self, body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd> {
        request::change(body, changes)
    }

    fn exchange(&self, whole: bool) -> Box<dyn Exchange> {
        Box::new(Responses { whole, ..Responses::default() })
    }

    fn error(&self, kind: ErrorKind, message: &str) -> Value {
        openai_error(kind, message)
    }
}

/// One answer on its way.
#[derive(Debug, Default)]
struct Responses {
    whole: bool,
    frame: Frame,
    /// The response as the first event that had one brought it.
    head: Option<Map<String, Value>>,
    /// The provider's id of its newest answer; empty until it is known.
    newest_id: String,
    /// The items of all answers, and ours, in the order in which they began.
    items: Vec<Item>,
    /// Where the items of the current answer begin.
    first_item: usize,
    n_calls: u32,
    /// The items of the last response that was read whole, in its order.
    in_final: Vec<usize>,
    finished: bool,
    done: bool,
    usage: Value,
    spent: Value,
    /// It is not the first answer.
    spliced: bool,
    /// Asides of the current answer, which repeats would bring again.
    told: HashSet<String>,
    /// What is to be known of the events that are read and not yet written.
    metas: VecDeque<Meta>,
    n_read: u64,
    /// The texts of the body that was read last.
    body_spans: Vec<Span>,
    /// What is added to parts of that body: item, part and text.
    body_added: Vec<(usize, usize, String)>,
    /// The text of a message is closed by the events that were read last.
    closing: bool,
    client: Client,
}

/// What the client has got.
#[derive(Debug, Default)]
struct Client {
    started: bool,
    /// The opening events were ours.
    opened_by_us: bool,
    done: bool,
    next_index: u64,
    next_sequence: u64,
    /// The provider's events have no sequence numbers.
    no_sequence: bool,
    /// Something was put in, left out or renumbered: the rest is written anew.
    shifted: bool,
}

/// What an event is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Role {
    /// It belongs to no item.
    #[default]
    Pass,
    Opening,
    ItemAdded,
    PartAdded,
    Delta,
    /// A text is complete.
    TextDone,
    PartDone,
    ItemDone,
    /// Something else of an item.
    OfItem,
    Final,
    /// Half an event, of a stream that was cut.
    Half,
}

/// What is to be known of an event to write it.
#[derive(Debug, Default)]
struct Meta {
    number: u64,
    role: Role,
    sequence: Option<u64>,
    item: usize,
    part: usize,
    /// The texts that it brought.
    first: Option<Span>,
    more: Vec<Span>,
}

/// A piece of a part's text.
#[derive(Clone, Copy, Debug)]
struct Span {
    item: usize,
    part: usize,
    start: usize,
    end: usize,
}

impl Exchange for Responses {
    fn read(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Piece<'_>)) -> Result<Note, Odd> {
        self.frame.learn(event.raw);
        let mut meta = self.read_event(event, out)?;
        if self.closes(&meta) {
            out(Piece::Closing { choice: 0 });
        }
        self.n_read = self.n_read.saturating_add(1);
        meta.number = self.n_read;
        self.client.no_sequence |= meta.sequence.is_none() && meta.role != Role::Half;
        self.metas.push_back(meta);
        Ok(Note(self.n_read))
    }

    fn ended(&mut self, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        for at in self.first_item..self.items.len() {
            self.complete(at, out);
        }
        self.done
    }

    fn drop_call(&mut self, channel: Channel) {
        let ChannelKind::Call(number) = channel.kind else { return };
        if let Some(item) = self.items.iter_mut().find(|item| item.kind == Kind::Call(number)) {
            item.dropped = true;
            self.client.shifted = true;
        }
    }

    fn write(&mut self, event: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>) {
        self.write_event(event, note, changes, out);
    }

    fn write_open(&mut self, _: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>) {
        self.write_new_texts(note, changes, out);
    }

    fn say(&mut self, _: u32, text: &str, out: &mut Vec<u8>) {
        if self.whole {
            self.say_whole(text);
        } else if !self.client.done {
            self.write_said(text, out);
        }
    }

    fn has_messages(&self) -> bool {
        true
    }

    fn send(&mut self, _: u32, text: &str, out: &mut Vec<u8>) {
        if self.whole {
            self.own_item(text);
        } else if !self.client.done {
            self.start(out);
            self.write_item(text, out);
        }
    }

    fn end(&mut self, how: End, out: &mut Vec<u8>) {
        if !(self.whole || self.client.done) {
            self.write_end(&how, out);
        }
    }

    fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        self.write_failure(message, out);
    }

    fn next_answer(&mut self) {
        if self.whole {
            self.keep_items();
        }
        self.metas.clear();
        self.told.clear();
        self.in_final.clear();
        self.first_item = self.items.len();
        self.finished = false;
        self.done = false;
        super::usage::add(&mut self.spent, &std::mem::take(&mut self.usage));
        self.spliced = true;
        self.client.shifted = true;
    }

    fn echo(&self) -> Vec<Value> {
        let current = self.items.get(self.first_item..).unwrap_or_default();
        current.iter().filter(|item| item.complete && !item.ours).map(|item| item.value.clone()).collect()
    }

    fn continues(&self) -> Option<Continues> {
        let client = self.head.as_ref()?.get("id")?.as_str()?;
        let name = |id: &str| format!("response:{id}");
        Some(Continues { client: name(client), provider: name(&self.newest_id) })
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

impl Responses {
    /// Whether the event closes a text that something could be added to.
    fn closes(&mut self, meta: &Meta) -> bool {
        let item = self.items.get(meta.item).filter(|item| item.kind == Kind::Message);
        let of_part = item.and_then(|item| item.parts.get(meta.part)).is_some_and(|part| {
            json::text(&part.value, "type") == Some("output_text") && part.place == last_place(item)
        });
        self.closing = match meta.role {
            // its text came in pieces, which the client has
            Role::TextDone => of_part && meta.first.is_none() && item.is_some_and(|item| !item.complete),
            Role::PartDone => self.closing && of_part,
            Role::ItemDone => self.closing && item.is_some(),
            _ => false,
        };
        self.closing
    }
}

/// Where the last part of an item stands.
fn last_place(item: Option<&Item>) -> item::Place {
    let last = item.and_then(|item| item.parts.last());
    last.map_or(item::Place::Member(""), |part| part.place)
}

#[cfg(test)]
mod tests;
