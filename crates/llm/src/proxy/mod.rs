//! A provider's traffic as somebody in the middle sees it: read without being changed, and changed without losing what
//! is not understood.
//!
//! Each provider is one folder with a [`Middle`], all of the same shape: `request`, `read`, `write`, `body`, and hand-made
//! streams in `tests`. The path of one exchange: [`route`] says whose request it is,
//! [`Middle::asked`] what stands in it, an [`Exchange`] reads the answer (events of a stream, or a body in one piece)
//! as [`Piece`]s and writes what the client is to get. What passes unchanged passes byte for byte; only an event that
//! really changes is written anew, and then all its unknown members survive, byte for byte ([`rewritten`]).
//!
//! Pure: no IO, no clock, no hook.

mod duplicate;
mod errors;
mod frame;
mod leaves;
mod request;
mod rewrite;
mod route;
mod scan;
mod spelling;
mod template;
mod text;
mod usage;

mod anthropic;
mod gemini;
mod openai_chat;
mod openai_responses;

#[cfg(test)]
mod kit;

pub use anthropic::ANTHROPIC;
pub use duplicate::has_duplicate_keys;
pub use gemini::GEMINI;
pub use openai_chat::OPENAI_CHAT;
pub use openai_responses::OPENAI_RESPONSES;
pub use rewrite::rewritten;
pub use route::{Route, route};
pub use spelling::misspelt_key;

use crate::sse::Event;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Debug;

/// One provider's wire, for somebody in the middle.
pub trait Middle: Send + Sync + Debug {
    /// Its short name, such as `openai-chat`.
    fn name(&self) -> &'static str;

    /// What stands in a request. `path` matters where the model and the wish for a stream stand in it.
    ///
    /// # Errors
    /// [`Odd`] when the body is not this wire's: what cannot be read cannot be judged.
    fn asked(&self, path: &str, body: &Value) -> Result<Asked, Odd>;

    /// Changes a request in place.
    ///
    /// # Errors
    /// [`Odd`] when a place that is named is not there.
    fn change(&self, body: &mut Value, changes: &[RequestChange]) -> Result<(), Odd>;

    /// Begins an answer for a client. `whole`: not a stream.
    fn exchange(&self, whole: bool) -> Box<dyn Exchange>;

    /// The body of an error answer of hookgate's own, as this wire writes errors, so that its SDKs raise what they
    /// raise for the provider's.
    fn error(&self, kind: ErrorKind, message: &str) -> Value;
}

/// What stands in a request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Asked {
    /// The model's name; empty when it has none.
    pub model: String,
    /// The answer is wanted as a stream.
    pub stream: bool,
    /// The conversation so far, oldest first. System prompts are part of it.
    pub messages: Vec<Said>,
    /// The conversation's id, where the wire has one (`previous_response_id`, `conversation`, …), with its kind before
    /// it, such as `response:resp_1`.
    pub session: Option<String>,
    /// How many answers are wanted; 0 where it does not say, which means one.
    pub n_answers: u64,
}

/// One thing that was said.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// Where it stands in the request.
    pub place: Place,
    /// What it is.
    pub what: What,
}

/// Where something stands in a request: the message's index, and the part's where a message holds several things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Index in the wire's list of messages; `usize::MAX` is the system prompt that stands outside of it.
    pub message: usize,
    /// Index of the part in the message, where it is only a part of it.
    pub part: Option<usize>,
}

/// What was said.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// By whoever wrote the agent.
    System(String),
    /// By the user: the texts of its parts, joined without anything between them.
    User(String),
    /// By the model.
    Assistant {
        /// Its text.
        text: String,
        /// The calls it asked for.
        calls: Vec<Call>,
    },
    /// The result of a tool.
    Result {
        /// Which call it answers.
        call_id: String,
        /// The tool's name, where the wire says it; else it is the call's.
        name: Option<String>,
        /// What it gave: text, or the JSON of what is no text.
        output: String,
        /// The tool failed.
        is_error: bool,
    },
}

/// A tool call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Its id; empty where the wire has none.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments' JSON text.
    pub arguments: String,
}

/// A change of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestChange {
    /// The user's text at this place becomes this one: it replaces the first text part, other text parts go.
    UserText {
        /// Where.
        place: Place,
        /// The new text.
        text: String,
    },
    /// A message behind the last.
    Append {
        /// `user`, `assistant`, `tool` or `reasoning`, in hook files' words. A `tool` message is paired with a
        /// call made up for it, so that providers accept it.
        role: String,
        /// Its text.
        text: String,
    },
    /// What the model answered ([`Exchange::echo`]), behind the last message.
    Echo(Vec<Value>),
    /// The request goes on from this answer of the provider ([`Continues::provider`]). Nothing where a wire has no
    /// such names.
    From(String),
    /// The result of a call, behind the last message.
    Result {
        /// The call.
        call: Call,
        /// What the model is to read.
        output: String,
        /// It is a failure.
        is_error: bool,
    },
}

/// How a later request names an answer that it goes on from, as [`Asked::session`] does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Continues {
    /// By the id that the client got.
    pub client: String,
    /// By the provider's id of the last answer that was woven into it.
    pub provider: String,
}

/// What an answer says of itself. None where it does not say, or has not said yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names<'a> {
    /// The answer's id.
    pub id: Option<&'a str>,
    /// The model that gave it, which may be another name than the one that was asked for.
    pub model: Option<&'a str>,
}

impl<'a> Names<'a> {
    /// From these members of an answer, or of its head.
    fn of(members: Option<&'a serde_json::Map<String, Value>>, id: &str, model: &str) -> Names<'a> {
        let text = |name| members?.get(name)?.as_str().filter(|text| !text.is_empty());
        Names { id: text(id), model: text(model) }
    }
}

/// Which text of an answer a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Channel {
    /// Which of several answers to one request, from 0.
    pub choice: u32,
    /// Which text of it.
    pub kind: ChannelKind,
}

/// The texts of an answer. All text parts of one answer are one text, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ChannelKind {
    /// What the user reads; refusals too.
    Content,
    /// The model's thoughts.
    Reasoning,
    /// The arguments of the n-th call of the choice, from 0, counted through all answers of one [`Exchange`].
    Call(u32),
}

/// What an event, or a whole answer, brings.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece<'a> {
    /// Text of a channel. The pieces of one event are counted: the first text is number 0.
    Text {
        /// Whose.
        channel: Channel,
        /// The text; never empty.
        text: Cow<'a, str>,
    },
    /// A tool call begins. Its arguments follow as texts of its channel (on some wires in the same event).
    CallBegin {
        /// Its channel.
        channel: Channel,
        /// Its id; empty where the wire has none (or it comes later: then `CallEnd` has it).
        id: Cow<'a, str>,
        /// The tool.
        name: Cow<'a, str>,
    },
    /// A tool call is complete: nothing can be added to it any more.
    CallEnd {
        /// Its channel.
        channel: Channel,
        /// The call, whole.
        call: Call,
    },
    /// Text that belongs to no channel and is complete in itself: strings in events and members that are not
    /// understood. It must not carry past a guard what the channels would not.
    Aside(Cow<'a, str>),
    /// The same, but later events may go on with it: pieces with one number are one text.
    Loose {
        /// Where it stands, as a number.
        of: u64,
        /// The text; never empty.
        text: Cow<'a, str>,
    },
    /// The event closes a text of a choice. If the answer ends with it, what hookgate adds to the text goes before it.
    Closing {
        /// Whose.
        choice: u32,
    },
    /// A choice ended.
    Finish {
        /// Which.
        choice: u32,
        /// Why, in the neutral words `stop`, `length`, `tool_calls`, `content_filter`, or the provider's own.
        reason: Cow<'a, str>,
    },
    /// The provider says that nothing follows (`[DONE]`, `message_stop`, `response.completed`, …).
    Done,
    /// An error in place of (the rest of) an answer.
    Error(Cow<'a, str>),
    /// What it cost so far, as the wire tells it.
    Usage {
        /// Tokens read.
        input: Option<u64>,
        /// Tokens written.
        output: Option<u64>,
    },
}

/// What the exchange has to remember of an event to write it later; means nothing to anybody else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Note(pub u64);

/// A change of an event or of a body on its way to the client.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The n-th [`Piece::Text`] of it becomes this; empty: nothing of the text goes out.
    Text {
        /// Which, from 0.
        nth: u32,
        /// The new text.
        text: String,
    },
}

/// The new text of the n-th text.
fn nth_text(changes: &[Change], nth: u32) -> Option<&str> {
    changes.iter().find_map(|Change::Text { nth: n, text }| (*n == nth).then_some(text.as_str()))
}

/// How an answer ends that hookgate ends.
#[derive(Clone, Debug, PartialEq)]
pub enum End {
    /// As a provider's own filter ends it: `content_filter`, `refusal`, `SAFETY`.
    Filtered,
    /// As if the model had said all.
    Stopped,
}

/// One answer for one client, woven from one or several answers of the provider.
///
/// Reading and writing go separate ways: an event may be read, held, and written (or not) later. For a stream the
/// order of calls is `read` for each event of the provider; `write` for those that go out, in the order of reading;
/// `say`, `end`, `fail` and `next_answer` between writes. For a body: `read_body`, then `write_body`.
pub trait Exchange: Send {
    /// Reads one event of the provider's stream.
    ///
    /// Events that repeat what earlier ones brought (`response.output_text.done`, the output in
    /// `response.completed`) give no piece for it, unless they differ: what they have more is text of the channel;
    /// anything else is [`Odd`].
    ///
    /// # Errors
    /// [`Odd`] when it is no event of this wire. An event that is JSON but unknown is none: it gives [`Piece::Aside`].
    fn read(&mut self, event: &Event<'_>, out: &mut dyn FnMut(Piece<'_>)) -> Result<Note, Odd>;

    /// The provider's stream ended: calls that no event closed are given out as complete. True when the answer is
    /// whole by the wire's rules (all choices finished, the closing event came), false when it was cut.
    fn ended(&mut self, out: &mut dyn FnMut(Piece<'_>)) -> bool;

    /// From now on nothing of this call goes out; calls behind it move up. Must be said before any of its events is
    /// written.
    fn drop_call(&mut self, channel: Channel);

    /// Writes an event of the provider that goes out. Without changes, and while nothing was spliced, `out` gets
    /// `event.raw` as it is. Half an event, which a cut stream ends with, never goes out.
    fn write(&mut self, event: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>);

    /// Writes what an event says beside that the answer ends, which it does not: what was said stays, and the provider is
    /// asked again, or the end is another one. Nothing where it says nothing else. Blocked calls do not count as said.
    fn write_open(&mut self, event: &Event<'_>, note: Note, changes: &[Change], out: &mut Vec<u8>);

    /// Writes text of hookgate's own into the content of a choice, where the client stands now. For a body nothing is
    /// written yet: the text is remembered and stands behind what was read, or before it.
    fn say(&mut self, choice: u32, text: &str, out: &mut Vec<u8>);

    /// Whether an answer may have several messages.
    fn has_messages(&self) -> bool {
        false
    }

    /// Writes a message of hookgate's own behind what was said; where an answer has only one, into that.
    fn send(&mut self, choice: u32, text: &str, out: &mut Vec<u8>) {
        self.say(choice, text, out);
    }

    /// Writes the regular end of all choices that have not ended for the client, usage as far as it is known, and the
    /// closing mark.
    fn end(&mut self, how: End, out: &mut Vec<u8>);

    /// Writes an error in mid-stream, as the wire writes them; nothing follows.
    fn fail(&mut self, message: &str, out: &mut Vec<u8>);

    /// The provider was asked again: what `read` gets now belongs to a new answer, and continues the same one for the
    /// client (its opening events are left out, indices go on, ids stay the first answer's, usage adds up). Closing
    /// events of the answer before that were not written are forgotten.
    fn next_answer(&mut self);

    /// What the model said in the current answer of the provider, as messages of a request
    /// ([`RequestChange::Echo`]): all of it, also what was not written, with signatures and ids.
    fn echo(&self) -> Vec<Value>;

    /// What the answer and the model that gave it are called, as the client reads it: an answer that is woven from
    /// several has the names of the first.
    fn names(&self) -> Names<'_>;

    /// How a later request may name this answer; none where the wire has no names for answers.
    fn continues(&self) -> Option<Continues> {
        None
    }

    /// Reads a whole body.
    ///
    /// # Errors
    /// [`Odd`] when it is no answer of this wire.
    fn read_body(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd>;

    /// The body for the client: the last one read, with changes (counted over its [`Piece::Text`]s), without dropped
    /// calls, with what `say` said, with the texts and the cost of the answers before it, and with the end given, if
    /// one is given. An answer before it that was written too, by a call of this before `next_answer`, counts as it
    /// was written, else as it was read; its calls do not count.
    fn write_body(&mut self, body: Value, changes: &[Change], end: Option<End>) -> Value;
}

/// Reads JSON as providers and clients write it: half surrogate pairs, which serde_json refuses, become U+FFFD, and numbers
/// that no double holds the largest that one does. `None` when it is no JSON or no UTF-8.
pub fn read_json(bytes: &[u8]) -> Option<Value> {
    crate::wire::json::parse(std::str::from_utf8(bytes).ok()?)
}

/// It is not what this wire sends.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Odd(pub String);

/// The kinds of errors that hookgate itself answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A hook said no (400; the wire's word for content that is not let through, where it has one).
    Refused,
    /// The request cannot be read, or is not served here (400).
    BadRequest,
    /// Unknown key (401).
    Unauthorized,
    /// Not allowed (403).
    Forbidden,
    /// No such route (404).
    NotFound,
    /// Too large (413).
    TooLarge,
    /// Too many at once (429).
    Busy,
    /// Hookgate's own fault (500).
    Internal,
    /// The provider could not be reached, or what it sent is none of this wire (502).
    Upstream,
    /// Hookgate is not ready, or shutting down (503).
    Unavailable,
    /// The provider took too long (504).
    Late,
}

impl ErrorKind {
    /// The status that goes with it.
    pub fn status(self) -> u16 {
        match self {
            ErrorKind::Refused | ErrorKind::BadRequest => 400,
            ErrorKind::Unauthorized => 401,
            ErrorKind::Forbidden => 403,
            ErrorKind::NotFound => 404,
            ErrorKind::TooLarge => 413,
            ErrorKind::Busy => 429,
            ErrorKind::Internal => 500,
            ErrorKind::Upstream => 502,
            ErrorKind::Unavailable => 503,
            ErrorKind::Late => 504,
        }
    }
}
