//! How providers write requests and answers.
//!
//! Each provider is one file of the same shape: a [`Wire`] constant that holds everything the client needs,
//! `encode` ([`Request`] to body), a `Decoder` (events of a stream to [`Delta`]s) and `whole` (an answer in one piece
//! to the same deltas). All of it is pure: no IO, no clock, no panic whatever the input.

pub mod anthropic;
pub(crate) mod call_pieces;
mod failure;
pub(crate) mod json;
pub mod openai_chat;

use serde_json::{Map, Value};

pub use failure::Failure;

use crate::error::excerpt;
use crate::sse::Event;
use crate::{Delta, Error, Request};

/// One provider's format.
#[derive(Debug)]
pub struct Wire {
    /// Its short name.
    pub name: &'static str,
    /// Other spellings of the name.
    pub aliases: &'static [&'static str],
    /// Where the provider is when nobody says otherwise.
    pub base_url: &'static str,
    /// The environment variable that usually holds the API key.
    pub key_env: &'static str,
    /// The path of the requests under `/v1`.
    pub path: &'static str,
    /// The header that carries the API key, and what stands before the key in it.
    pub key_header: (&'static str, &'static str),
    /// Headers that every request has.
    pub headers: &'static [(&'static str, &'static str)],
    /// Writes a request; `true` asks for a stream.
    pub encode: fn(&Request, bool) -> Value,
    /// Changes a body for the provider's own server, where it differs from its imitators.
    pub at_home: fn(&mut Map<String, Value>),
    /// A new decoder for one streamed answer.
    pub decoder: fn() -> Box<dyn Decode>,
    /// Reads a whole answer into the deltas that a stream would have given.
    pub whole: fn(&Value, &mut Vec<Delta>) -> Result<(), Error>,
}

/// Reads one streamed answer.
pub trait Decode: Send {
    /// Reads one event and appends its deltas to `out`.
    ///
    /// # Errors
    /// [`Error::Provider`] when the event is an error, [`Error::Malformed`] when it is not the provider's format.
    /// Nothing more is to be read then; what stands in `out` is valid.
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<Delta>) -> Result<(), Error>;

    /// The stream ended: appends what was held back.
    ///
    /// # Errors
    /// [`Error::Cut`] when the answer had not ended.
    fn finish(&mut self, out: &mut Vec<Delta>) -> Result<(), Error>;

    /// Whether the provider has said that nothing follows; reading may stop.
    fn done(&self) -> bool;

    /// Whether the answer has ended, so that a broken connection loses nothing.
    fn complete(&self) -> bool;
}

impl Wire {
    /// Reads the body of a whole answer (or of an error that came with a status of success).
    ///
    /// # Errors
    /// [`Error::Malformed`] when it is no JSON or no answer, [`Error::Provider`] when it is an error object.
    pub fn decode_whole(&self, body: &[u8]) -> Result<Vec<Delta>, Error> {
        let text = String::from_utf8_lossy(body);
        let value = json::parse(&text).ok_or_else(|| Error::malformed("JSON", &text))?;
        if let Some(failure) = Failure::find(&value) {
            return Err(failure.into());
        }
        let mut out = Vec::new();
        (self.whole)(&value, &mut out)?;
        Ok(out)
    }
}

/// Reads the JSON of one event, `None` when it is the half event of a stream that was cut.
fn event_json(event: &Event<'_>) -> Result<Option<Value>, Error> {
    match json::parse(&event.data) {
        Some(value) => Ok(Some(value)),
        None if !event.closed => Ok(None),
        None if event.event == "error" => Err(Failure::from_text(&excerpt(&event.data)).into()),
        None => Err(Error::malformed("JSON", &event.data)),
    }
}
