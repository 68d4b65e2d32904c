//! A payload as it was understood.

use crate::event::Event;
use hookgate_core::facts::{GateEvent, LifeEvent, ShapeEvent};
use serde_json::Value;

/// Bytes of a payload that are read at most.
pub const LONGEST_PAYLOAD: usize = 64 << 20;

/// One call of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Read {
    /// Which of the agent's events it is; its place in [`Agent::events`](crate::agent::Agent::events).
    pub event: &'static Event,
    /// The session that the event happened in: a sub-agent's own where the agent tells them apart.
    pub session: String,
    /// The session that the user talks to, for a sub-agent's events.
    pub root: Option<String>,
    /// The agent's id for this very occurrence, if it has one: a repeated call has the same.
    pub call: Option<String>,
    /// The agent's id for the turn.
    pub turn: Option<String>,
    /// Where the agent works.
    pub cwd: Option<String>,
    /// How often a hook made this turn go on before; none where the agent does not say.
    pub went_on: Option<u64>,
    /// Other names of the tool, the agent's own first.
    pub tool_names: Vec<String>,
    /// What the engine is asked and told, in order.
    pub told: Vec<Told>,
    /// The tool's input as the agent sent it.
    pub native_input: Value,
    /// Members of our input that stand for members of the agent's, see [`Read::native`].
    pub(crate) aliases: Vec<Alias>,
    /// The payload.
    pub payload: Value,
}

/// Something for the engine.
#[derive(Debug, Clone, PartialEq)]
pub enum Told {
    /// To be asked about.
    Gate(GateEvent),
    /// To be told of.
    Life(LifeEvent),
    /// An answer that something may be added to.
    Shape(ShapeEvent),
}

/// A member of our input, and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Alias {
    /// Our name.
    pub(crate) ours: &'static str,
    /// The agent's name; none: it was put together from several, and no change of it can be carried back.
    pub(crate) theirs: Option<String>,
    /// Whether the agent's own member was taken out of our input.
    pub(crate) renamed: bool,
}

/// Why a payload was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unread {
    /// It is no JSON object.
    #[error("the agent's payload cannot be read: {0}")]
    NotJson(String),
    /// It lacks something that no event of its kind lacks.
    #[error("the agent's payload for {event} has no usable `{field}`")]
    Lacks {
        /// The event.
        event: &'static str,
        /// The field.
        field: &'static str,
    },
    /// The agent cut the input short.
    #[error("the agent shows only a part of the tool's input")]
    CutShort,
    /// An event that this version does not know.
    #[error("unknown event `{0}`")]
    UnknownEvent(String),
}

/// Reads the bytes of a payload: one JSON object, with or without a byte order mark.
///
/// # Errors
/// [`Unread::NotJson`]; its text repeats nothing of the payload.
pub fn parse(bytes: &[u8]) -> Result<Value, Unread> {
    if bytes.len() > LONGEST_PAYLOAD {
        return Err(Unread::NotJson(format!("it is longer than {} MiB", LONGEST_PAYLOAD >> 20)));
    }
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Unread::NotJson("it is empty".into()));
    }
    let value: Value = serde_json::from_slice(bytes).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let what = match error.classify() {
            serde_json::error::Category::Eof => "it ends too early",
            _ => "it is not JSON",
        };
        Unread::NotJson(format!("{what} (line {line}, column {column})"))
    })?;
    if value.is_object() { Ok(value) } else { Err(Unread::NotJson("it is no object".into())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], want: Result<&str, &str>) {
        let got = parse(bytes).map(|value| value.to_string()).map_err(|error| error.to_string());
        let want =
            want.map(str::to_owned).map_err(|words| format!("the agent's payload cannot be read: {words}"));
        assert_eq!(got, want);
    }

    #[test]
    fn odd_bytes() {
        check(b"\xef\xbb\xbf {\"a\":1}\n", Ok(r#"{"a":1}"#));
        check(b"", Err("it is empty"));
        check(b"\xef\xbb\xbf\n", Err("it is empty"));
        check(b"not json", Err("it is not JSON (line 1, column 2)"));
        check(b"{\"a\":", Err("it ends too early (line 1, column 5)"));
        check(b"[1]", Err("it is no object"));
        check(b"{\"a\":\"\xff\"}", Err("it is not JSON (line 1, column 7)"));
        check(br#"{"a":"\ud800"}"#, Err("it is not JSON (line 1, column 13)"));
        check(b"{} {}", Err("it is not JSON (line 1, column 4)"));
    }
}
