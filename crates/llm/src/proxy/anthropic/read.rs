//! What an event brings.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::block::{asides, for_texts};
use super::{Block, Kind, Messages};
use crate::error::excerpt;
use crate::finish::Finish;
use crate::proxy::leaves::{loose, member_leaves};
use crate::proxy::text::Text;
use crate::proxy::{Call, Channel, ChannelKind, Note, Odd, Piece};
use crate::sse::Event;
use crate::wire::Failure;
use crate::wire::json::{self, is_something, list, text};

type Out<'o> = &'o mut dyn FnMut(Piece<'_>);

/// A delta of a known kind and nothing else. Any other event fails to be read as this.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    index: u64,
    #[serde(borrow)]
    delta: PlainDelta<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainDelta<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(default, borrow)]
    text: Option<Text<'a>>,
    #[serde(default, borrow)]
    thinking: Option<Text<'a>>,
    #[serde(default, borrow)]
    partial_json: Option<Text<'a>>,
}

/// What an event is, as it is kept in a [`Note`] together with its block's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing has to be known of it.
    Pass,
    Start,
    BlockStart(usize),
    Delta(usize),
    BlockStop(usize),
    Ending,
    Stop,
    /// Half an event, of a stream that was cut.
    Half,
}

impl Role {
    fn note(self) -> Note {
        let (role, at) = match self {
            Role::Pass => (0, 0),
            Role::Start => (1, 0),
            Role::BlockStart(at) => (2, at),
            Role::Delta(at) => (3, at),
            Role::BlockStop(at) => (4, at),
            Role::Ending => (5, 0),
            Role::Stop => (6, 0),
            Role::Half => (7, 0),
        };
        Note(role | (at as u64) << 8)
    }

    pub(super) fn of(note: Note) -> Role {
        let at = usize::try_from(note.0 >> 8).unwrap_or(usize::MAX);
        match note.0 & 0xFF {
            1 => Role::Start,
            2 => Role::BlockStart(at),
            3 => Role::Delta(at),
            4 => Role::BlockStop(at),
            5 => Role::Ending,
            6 => Role::Stop,
            7 => Role::Half,
            _ => Role::Pass,
        }
    }
}

/// A delta's index, its kind and its text; `None` when it is another event.
fn plain(data: &str) -> Option<(u64, &'static str, Cow<'_, str>)> {
    let Plain { kind, index, delta } = serde_json::from_str::<Plain<'_>>(data).ok()?;
    let (kind_of_delta, piece) = match (&*delta.kind.0, delta.text, delta.thinking, delta.partial_json) {
        ("text_delta", Some(text), None, None) => ("text_delta", text),
        ("thinking_delta", None, Some(text), None) => ("thinking_delta", text),
        ("input_json_delta", None, None, Some(text)) => ("input_json_delta", text),
        _ => return None,
    };
    (kind.0 == "content_block_delta").then_some((index, kind_of_delta, piece.0))
}

impl Messages {
    pub(super) fn read_event(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Note, Odd> {
        if let Some(role) = self.read_plain(event, out)? {
            return Ok(role.note());
        }
        Ok(self.read_any(event, out)?.note())
    }

    /// Reads a delta that only adds to a text; `None` when it is another event.
    fn read_plain(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Option<Role>, Odd> {
        if event.event == "error" {
            return Ok(None);
        }
        let (index, kind, piece) = match self.template.text(&event.data) {
            Some((piece, (index, kind))) => (index, kind, Cow::Borrowed(piece)),
            None => match plain(&event.data) {
                Some((index, kind, piece)) => {
                    self.template.learn(&event.data, &piece, (index, kind));
                    (index, kind, piece)
                }
                None => return Ok(None),
            },
        };
        let Some(at) = self.block_at(index) else { return Ok(None) };
        self.add(at, kind, &piece, out)?;
        Ok(Some(Role::Delta(at)))
    }

    fn read_any(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Role, Odd> {
        let data = &*event.data;
        if data.trim() == "[DONE]" {
            return Ok(self.read_stop(out));
        }
        let Some(value) = json::parse(data) else {
            return match &*event.event {
                _ if !event.closed => {
                    out(Piece::Aside(Cow::Borrowed(data)));
                    Ok(Role::Half)
                }
                "error" => {
                    out(Piece::Error(Cow::Borrowed(data)));
                    Ok(Role::Pass)
                }
                _ => Err(Odd(format!("an event is no JSON: `{}`", excerpt(data)))),
            };
        };
        let kind = text(&value, "type").unwrap_or(&event.event);
        if kind == "error" || event.event == "error" || Failure::find(&value).is_some() {
            out(Piece::Error(Failure::from_body(data.as_bytes()).message.into()));
            // what stands beside an error is read all the same
            let error = value.get("error").and_then(|error| member_leaves("error", error));
            error.into_iter().for_each(|text| out(Piece::Aside(text.into())));
        }
        match kind {
            "error" => {
                others(&value, &["error"], out);
                Ok(Role::Pass)
            }
            "message_start" => self.read_start(value, out),
            "content_block_start" => self.read_block_start(&value, out),
            "content_block_delta" => self.read_delta(&value, out),
            "content_block_stop" => {
                others(&value, &["index"], out);
                match self.block_of(&value) {
                    Some(at) => {
                        self.stop_block(at, out);
                        Ok(Role::BlockStop(at))
                    }
                    None => Ok(Role::Pass),
                }
            }
            "message_delta" => Ok(self.read_ending(&value, out)),
            "message_stop" => {
                others(&value, &[], out);
                Ok(self.read_stop(out))
            }
            _ => {
                others(&value, &[], out);
                Ok(Role::Pass)
            }
        }
    }

    fn read_stop(&mut self, out: Out<'_>) -> Role {
        if !std::mem::replace(&mut self.done, true) {
            out(Piece::Done);
        }
        Role::Stop
    }

    /// A stream's message begins empty; some servers have blocks in it.
    fn read_start(&mut self, mut value: Value, out: Out<'_>) -> Result<Role, Odd> {
        others(&value, &["message"], out);
        let mut message = value.get_mut("message").map(Value::take).unwrap_or_default();
        for (index, block) in list(&message, "content").iter().enumerate() {
            let at = self.begin(index as u64, block, out)?;
            self.stop_block(at, out);
        }
        others(&message, &["content", "usage", "stop_reason", "stop_sequence"], out);
        self.read_usage(&message, out);
        if let (None, Value::Object(members)) = (&self.head, &mut message) {
            self.head = Some(std::mem::take(members));
        }
        Ok(Role::Start)
    }

    pub(super) fn read_usage(&mut self, value: &Value, out: Out<'_>) {
        let Some(usage) = value.get("usage").filter(|usage| usage.is_object()) else { return };
        crate::proxy::usage::merge(&mut self.usage, usage);
        let n = |name| json::count(usage, &[name]);
        let cached = n("cache_read_input_tokens")
            .unwrap_or(0)
            .saturating_add(n("cache_creation_input_tokens").unwrap_or(0));
        let input = n("input_tokens").map(|fresh| fresh.saturating_add(cached));
        out(Piece::Usage { input, output: n("output_tokens") });
    }

    fn read_block_start(&mut self, value: &Value, out: Out<'_>) -> Result<Role, Odd> {
        others(value, &["index", "content_block"], out);
        let index = json::count(value, &["index"]).unwrap_or(self.blocks.len() as u64);
        let at = self.begin(index, value.get("content_block").unwrap_or(&Value::Null), out)?;
        Ok(Role::BlockStart(at))
    }

    /// Begins a block, with the text that it begins with.
    pub(super) fn begin(&mut self, index: u64, block: &Value, out: Out<'_>) -> Result<usize, Odd> {
        self.collision |= self.block_at(index).is_some();
        let kind = match text(block, "type").unwrap_or_default() {
            "text" => Kind::Text,
            "thinking" => Kind::Thinking,
            "tool_use" => {
                let number = self.first_call.saturating_add(self.n_calls);
                self.n_calls = self.n_calls.saturating_add(1);
                Kind::Call(number)
            }
            _ => Kind::Other,
        };
        if let Kind::Call(number) = kind {
            let of = |name| text(block, name).unwrap_or_default();
            let channel = channel(ChannelKind::Call(number));
            out(Piece::CallBegin { channel, id: of("id").into(), name: of("name").into() });
        }
        let mut begun = block.clone();
        let mut said = String::new();
        for_texts(&mut begun, &mut |_, value| {
            said = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        });
        if !said.is_empty() {
            out(Piece::Text { channel: channel_of(kind), text: Cow::Borrowed(&said) });
        }
        asides(block, &mut |text| out(Piece::Aside(text.into())));
        let signature = text(block, "signature").unwrap_or_default().to_owned();
        self.blocks.push(Block { index, kind, begun, text: said, signature, ..Block::default() });
        Ok(self.blocks.len().saturating_sub(1))
    }

    fn read_delta(&mut self, value: &Value, out: Out<'_>) -> Result<Role, Odd> {
        others(value, &["index", "delta"], out);
        let delta = value.get("delta").unwrap_or(&Value::Null);
        let kind = text(delta, "type").unwrap_or_default();
        let at = match self.block_of(value) {
            Some(at) => at,
            None => self.begin(json::count(value, &["index"]).unwrap_or(0), &Value::Null, out)?,
        };
        let member = match kind {
            "text_delta" => "text",
            "thinking_delta" => "thinking",
            "input_json_delta" => "partial_json",
            _ => "",
        };
        let piece = text(delta, member).unwrap_or_default();
        self.add(at, kind, piece, out)?;
        let block = self.blocks.get_mut(at);
        match (kind, block) {
            ("signature_delta", Some(block)) => {
                block.signature.push_str(text(delta, "signature").unwrap_or_default());
                return Ok(Role::Delta(at));
            }
            ("citations_delta", Some(block)) => {
                block.citations.extend(delta.get("citation").cloned());
            }
            _ => {}
        }
        let shown = delta.get(member).is_some_and(Value::is_string);
        for (name, value) in delta.as_object().into_iter().flatten() {
            if !(shown && name == member) {
                loose((at, kind), name, value, out);
            }
        }
        Ok(Role::Delta(at))
    }

    /// Adds a piece to a block's text.
    fn add(&mut self, at: usize, kind: &str, piece: &str, out: Out<'_>) -> Result<(), Odd> {
        let Some(block) = self.blocks.get_mut(at).filter(|_| !piece.is_empty()) else { return Ok(()) };
        let to = match (kind, block.kind) {
            ("text_delta", _) => ChannelKind::Content,
            ("thinking_delta", _) => ChannelKind::Reasoning,
            ("input_json_delta", Kind::Call(number)) => ChannelKind::Call(number),
            _ => {
                block.text.push_str(piece);
                out(Piece::Loose { of: at as u64, text: Cow::Borrowed(piece) });
                return Ok(());
            }
        };
        if let ChannelKind::Call(_) = to {
            if block.stopped {
                return Err(Odd(format!("block {} goes on after its end", block.index)));
            }
            // The input that stood in the block's beginning counts only if no piece follows.
            if let Some(begun) = block.begun.get_mut("input").filter(|input| is_something(input)) {
                *begun = Value::Object(serde_json::Map::new());
                block.text.clear();
            }
        }
        block.text.push_str(piece);
        out(Piece::Text { channel: channel(to), text: Cow::Borrowed(piece) });
        Ok(())
    }

    /// Nothing follows for a block.
    pub(super) fn stop_block(&mut self, at: usize, out: Out<'_>) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| !block.stopped) else { return };
        block.stopped = true;
        if let Kind::Call(number) = block.kind {
            let of = |name| text(&block.begun, name).unwrap_or_default().to_owned();
            let call = Call { id: of("id"), name: of("name"), arguments: block.arguments().to_owned() };
            out(Piece::CallEnd { channel: channel(ChannelKind::Call(number)), call });
        }
    }

    fn read_ending(&mut self, value: &Value, out: Out<'_>) -> Role {
        self.read_usage(value, out);
        others(value, &["delta", "usage"], out);
        let delta = value.get("delta").unwrap_or(&Value::Null);
        others(delta, &["stop_reason", "stop_sequence"], out);
        if let Some(word) = text(delta, "stop_reason") {
            self.read_stop_reason(word, out);
        }
        Role::Ending
    }

    pub(super) fn read_stop_reason(&mut self, word: &str, out: Out<'_>) {
        if self.stop_reason != word {
            word.clone_into(&mut self.stop_reason);
            let reason = Finish::from_word(word).as_str().to_owned().into();
            out(Piece::Finish { choice: 0, reason });
        }
    }

    fn block_at(&self, index: u64) -> Option<usize> {
        self.blocks.iter().rposition(|block| block.index == index)
    }

    /// The event's block; the one that began last when it does not say.
    fn block_of(&self, event: &Value) -> Option<usize> {
        match json::count(event, &["index"]) {
            Some(index) => self.block_at(index),
            None => self.blocks.len().checked_sub(1),
        }
    }
}

fn channel(kind: ChannelKind) -> Channel {
    Channel { choice: 0, kind }
}

fn channel_of(kind: Kind) -> Channel {
    channel(match kind {
        Kind::Thinking => ChannelKind::Reasoning,
        Kind::Call(number) => ChannelKind::Call(number),
        Kind::Text | Kind::Other => ChannelKind::Content,
    })
}

/// Gives out the text of all members but these.
pub(super) fn others(value: &Value, known: &[&str], out: Out<'_>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        if !known.contains(&name.as_str())
            && let Some(text) = member_leaves(name, value)
        {
            out(Piece::Aside(text.into()));
        }
    }
}
