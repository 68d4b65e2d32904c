//! What an event brings.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::item::{Item, Kind, List, Part, Place, arguments_member, text_member};
use super::{Meta, Responses, Role, Span};
use crate::error::excerpt;
use crate::proxy::leaves::{loose, member_leaves};
use crate::proxy::text::Text;
use crate::proxy::{Channel, ChannelKind, Odd, Piece};
use crate::sse::Event;
use crate::wire::Failure;
use crate::wire::json::{self, text};

pub(super) type Out<'o> = &'o mut dyn FnMut(Piece<'_>);

/// A delta of a known kind. Any other event fails to be read as this.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Plain<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    sequence_number: Option<u64>,
    #[serde(borrow)]
    item_id: Option<Text<'a>>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    #[serde(borrow)]
    delta: Text<'a>,
    #[serde(default, rename = "logprobs")]
    _logprobs: Option<[IgnoredAny; 0]>,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
}

/// What the name of an event says about the text that it is about.
#[derive(Clone, Copy)]
enum About {
    List(List, &'static str),
    Arguments,
}

/// Beginnings of the events' names, up to `.delta` or `.done`.
const TEXTS: &[(&str, About)] = &[
    ("response.output_text", About::List(List::Content, "output_text")),
    ("response.function_call_arguments", About::Arguments),
    ("response.reasoning_summary_text", About::List(List::Summary, "summary_text")),
    ("response.reasoning_text", About::List(List::Content, "reasoning_text")),
    ("response.refusal", About::List(List::Content, "refusal")),
    ("response.custom_tool_call_input", About::Arguments),
];

fn about(name: &str) -> Option<About> {
    TEXTS.iter().find(|(known, _)| *known == name).map(|(_, about)| *about)
}

impl Responses {
    pub(super) fn read_event(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Meta, Odd> {
        if let Some(meta) = self.read_plain(event, out)? {
            return Ok(meta);
        }
        let data = &*event.data;
        let Some(value) = json::parse(data) else {
            return match &*event.event {
                _ if data.trim() == "[DONE]" => Ok(Meta::default()),
                _ if !event.closed => {
                    out(Piece::Aside(Cow::Borrowed(data)));
                    Ok(Meta { role: Role::Half, ..Meta::default() })
                }
                "error" => {
                    out(Piece::Error(Cow::Borrowed(data)));
                    Ok(Meta::default())
                }
                _ => Err(Odd(format!("an event is no JSON: `{}`", excerpt(data)))),
            };
        };
        let sequence = json::count(&value, &["sequence_number"]);
        let kind = text(&value, "type").unwrap_or(&event.event).to_owned();
        if kind == "error" || event.event == "error" || Failure::find(&value).is_some() {
            out(Piece::Error(Failure::from_body(data.as_bytes()).message.into()));
            // what stands beside an error is read all the same
            value.get("error").into_iter().for_each(|error| self.aside("error", error, out));
            if !kind.starts_with("response.") {
                self.others(&value, &["error"], out);
                return Ok(Meta { sequence, ..Meta::default() });
            }
        }
        let mut meta = Meta { sequence, ..Meta::default() };
        self.read_kind(&kind, value, &mut meta, out)?;
        Ok(meta)
    }

    /// Reads a delta; `None` when it is another event.
    fn read_plain(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Option<Meta>, Odd> {
        if event.event == "error" {
            return Ok(None);
        }
        let Ok(plain) = serde_json::from_str::<Plain<'_>>(&event.data) else { return Ok(None) };
        let Some(about) = plain.kind.0.strip_suffix(".delta").and_then(about) else { return Ok(None) };
        let id = plain.item_id.as_ref().map(|id| &*id.0);
        let Some(item) = self.item_at(plain.output_index, id) else { return Ok(None) };
        let place = match about {
            About::List(list @ List::Content, _) => Place::Of(list, plain.content_index.unwrap_or(0)),
            About::List(list @ List::Summary, _) => Place::Of(list, plain.summary_index.unwrap_or(0)),
            About::Arguments => match self.items.get(item).map(|item| item.kind) {
                Some(Kind::Call(_)) => Place::Member(""),
                _ => return Ok(None),
            },
        };
        let Some(part) = self.part_at(item, place) else { return Ok(None) };
        let mut meta =
            Meta { role: Role::Delta, sequence: plain.sequence_number, item, part, ..Meta::default() };
        self.add(item, part, &plain.delta.0, &mut meta, out)?;
        Ok(Some(meta))
    }

    fn read_kind(&mut self, kind: &str, value: Value, meta: &mut Meta, out: Out<'_>) -> Result<(), Odd> {
        match kind {
            "response.created" | "response.in_progress" | "response.queued" => {
                meta.role = Role::Opening;
                self.others(&value, &["response"], out);
                let response = value.get("response").unwrap_or(&Value::Null);
                self.keep_head(response);
                self.response_asides(response, out);
                self.settle_response(response, false, meta, out)
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                meta.role = Role::Final;
                self.others(&value, &["response"], out);
                let response = value.get("response").unwrap_or(&Value::Null);
                self.keep_head(response);
                self.read_final(response, meta, out)
            }
            "response.output_item.added" | "response.output_item.done" => {
                self.others(&value, &["item"], out);
                let done = kind.ends_with("done");
                meta.role = if done { Role::ItemDone } else { Role::ItemAdded };
                let item = value.get("item").unwrap_or(&Value::Null);
                let index = json::count(&value, &["output_index"]);
                let known = if done { self.item_at(index, text(item, "id")) } else { None };
                meta.item = match known.filter(|at| self.same_kind(*at, item)) {
                    Some(at) => at,
                    None => self.begin(index, item, out),
                };
                self.settle_item(meta.item, item, meta, out)?;
                if done {
                    self.complete(meta.item, out);
                }
                Ok(())
            }
            _ => self.read_part(kind, &value, meta, out),
        }
    }

    /// Reads an event about a part of an item, or one that is not known.
    fn read_part(&mut self, kind: &str, value: &Value, meta: &mut Meta, out: Out<'_>) -> Result<(), Odd> {
        let (name, end) = kind.rsplit_once('.').unwrap_or((kind, ""));
        let index = json::count(value, &["output_index"]);
        let Some(item) = self.item_at(index, text(value, "item_id")) else {
            return self.read_without_item(name, end, value, meta, out);
        };
        meta.item = item;
        meta.role = Role::OfItem;
        let part_list = match name {
            "response.content_part" => Some(List::Content),
            "response.reasoning_summary_part" => Some(List::Summary),
            _ => None,
        };
        if let Some(list) = part_list {
            let part = value.get("part").unwrap_or(&Value::Null);
            self.others(value, &["part"], out);
            meta.role = if end == "added" { Role::PartAdded } else { Role::PartDone };
            meta.part = self.part(item, Place::Of(list, part_index(list, value)), part.clone());
            return self.settle_part(item, meta.part, part, meta, out);
        }
        match (about(name), end) {
            (Some(About::List(list, kind)), "delta" | "done") => {
                let begun = serde_json::json!({ "type": kind });
                meta.part = self.part(item, Place::Of(list, part_index(list, value)), begun);
            }
            (Some(About::Arguments), "delta" | "done")
                if matches!(self.items.get(item).map(|item| item.kind), Some(Kind::Call(_))) =>
            {
                meta.part = self.part(item, Place::Member(""), Value::Null);
            }
            _ => {
                self.unknown(name, end, Some(item), value, out);
                return Ok(());
            }
        }
        let member = if end == "delta" { "delta" } else { done_member(value) };
        let said = text(value, member).unwrap_or_default();
        self.logprobs(value, said, out);
        self.others(value, &[member, "logprobs"], out);
        if end == "delta" {
            meta.role = Role::Delta;
            self.add(item, meta.part, said, meta, out)
        } else {
            meta.role = Role::TextDone;
            self.settle_text(item, meta.part, said, meta, out)
        }
    }

    /// An event of a kind that is not known. A delta goes on with what the last one said.
    fn unknown(&mut self, name: &str, end: &str, item: Option<usize>, value: &Value, out: Out<'_>) {
        if end != "delta" {
            return self.others(value, &[], out);
        }
        for (member, value) in value.as_object().into_iter().flatten() {
            loose((name, item), member, value, out);
        }
    }

    /// An event of an item that nobody announced: its text counts as content.
    fn read_without_item(
        &mut self,
        name: &str,
        end: &str,
        value: &Value,
        meta: &mut Meta,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let (Some(About::List(list, kind)), "delta" | "done") = (about(name), end) else {
            self.unknown(name, end, None, value, out);
            return Ok(());
        };
        let id = text(value, "item_id").unwrap_or_default();
        let kind_of_item = if matches!(kind, "output_text" | "refusal") { "message" } else { "reasoning" };
        let item = serde_json::json!({ "id": id, "type": kind_of_item });
        meta.item = self.begin(json::count(value, &["output_index"]), &item, out);
        let begun = serde_json::json!({ "type": kind });
        meta.part = self.part(meta.item, Place::Of(list, part_index(list, value)), begun);
        let member = if end == "delta" { "delta" } else { done_member(value) };
        let said = text(value, member).unwrap_or_default().to_owned();
        self.others(value, &[member], out);
        meta.role = if end == "delta" { Role::Delta } else { Role::TextDone };
        self.add(meta.item, meta.part, &said, meta, out)
    }

    /// Begins an item; gives its place.
    pub(super) fn begin(&mut self, index: Option<u64>, item: &Value, out: Out<'_>) -> usize {
        let current = self.items.get(self.first_item..).unwrap_or_default();
        self.client.shifted |= index.is_some() && current.iter().any(|known| known.index == index);
        let kind = match text(item, "type") {
            Some("message") => Kind::Message,
            Some("reasoning") => Kind::Reasoning,
            _ if arguments_member(item).is_some() => {
                let number = self.n_calls;
                self.n_calls = number.saturating_add(1);
                Kind::Call(number)
            }
            _ => Kind::Other,
        };
        if let Kind::Call(number) = kind {
            let channel = channel(ChannelKind::Call(number));
            let id = super::settle::call_id(item);
            out(Piece::CallBegin { channel, id: id.into(), name: super::item::tool(item).into() });
        }
        let id = text(item, "id").unwrap_or_default().to_owned();
        self.items.push(Item { index, id, kind, value: item.clone(), ..Item::default() });
        self.items.len().saturating_sub(1)
    }

    /// The item of the current answer that an event is about: by its index, by its id, or the last one.
    pub(super) fn item_at(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        let current = self.items.get(self.first_item..)?;
        let theirs = |item: &Item| !item.ours;
        let at = match (index, id) {
            (Some(_), _) => current.iter().rposition(|item| theirs(item) && item.index == index),
            (None, Some(id)) => current.iter().rposition(|item| theirs(item) && item.id == id),
            (None, None) => current.iter().rposition(theirs),
        };
        at.map(|at| at.saturating_add(self.first_item))
    }

    pub(super) fn part_at(&self, item: usize, place: Place) -> Option<usize> {
        let same = |part: &Part| match (part.place, place) {
            (Place::Member(_), Place::Member(_)) => true,
            (a, b) => a == b,
        };
        self.items.get(item)?.parts.iter().position(same)
    }

    /// The place of a part, which begins if it is new.
    pub(super) fn part(&mut self, item: usize, place: Place, begun: Value) -> usize {
        if let Some(at) = self.part_at(item, place) {
            return at;
        }
        let Some(item) = self.items.get_mut(item) else { return 0 };
        let place = match place {
            Place::Member(_) => Place::Member(arguments_member(&item.value).unwrap_or("arguments")),
            place => place,
        };
        item.parts.push(Part::new(place, begun));
        item.parts.len().saturating_sub(1)
    }

    /// Adds a piece to a part's text.
    pub(super) fn add(
        &mut self,
        at: usize,
        part_at: usize,
        piece: &str,
        meta: &mut Meta,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let Some(item) = self.items.get_mut(at) else { return Ok(()) };
        let (kind, complete) = (item.kind, item.complete);
        if complete && matches!(kind, Kind::Call(_)) && !piece.is_empty() {
            return Err(Odd(format!("the call `{}` goes on after its end", excerpt(&item.id))));
        }
        let Some(part) = item.parts.get_mut(part_at).filter(|_| !piece.is_empty()) else { return Ok(()) };
        let start = part.text.len();
        part.text.push_str(piece);
        let span = Span { item: at, part: part_at, start, end: part.text.len() };
        if meta.first.is_none() {
            meta.first = Some(span);
        } else {
            meta.more.push(span);
        }
        let kind = match (kind, part.place) {
            (Kind::Call(number), _) => ChannelKind::Call(number),
            (Kind::Reasoning, _) | (_, Place::Of(List::Summary, _)) => ChannelKind::Reasoning,
            _ if text(&part.value, "type") == Some("reasoning_text") => ChannelKind::Reasoning,
            _ => ChannelKind::Content,
        };
        out(Piece::Text { channel: channel(kind), text: Cow::Borrowed(piece) });
        Ok(())
    }

    /// Gives out the text of members that are not known, once.
    pub(super) fn others(&mut self, value: &Value, known: &[&str], out: Out<'_>) {
        for (name, value) in value.as_object().into_iter().flatten() {
            if !known.contains(&name.as_str()) {
                self.aside(name, value, out);
            }
        }
    }

    pub(super) fn aside(&mut self, name: &str, value: &Value, out: Out<'_>) {
        if let Some(text) = member_leaves(name, value)
            && self.told.insert(text.clone())
        {
            out(Piece::Aside(text.into()));
        }
    }

    /// The tokens say the text again; if they do not, they are an aside.
    pub(super) fn logprobs(&mut self, value: &Value, said: &str, out: Out<'_>) {
        let tokens = json::list(value, "logprobs").iter().map(|token| token.get("token")?.as_str());
        if tokens.collect::<Option<String>>().as_deref() != Some(said) {
            value.get("logprobs").into_iter().for_each(|logprobs| self.aside("logprobs", logprobs, out));
        }
    }

    fn keep_head(&mut self, response: &Value) {
        if let Some(id) = text(response, "id") {
            self.newest_id = id.to_owned();
        }
        if let (None, Value::Object(members)) = (&self.head, response) {
            self.head = Some(members.clone());
        }
    }
}

fn part_index(list: List, value: &Value) -> u64 {
    let name = if list == List::Content { "content_index" } else { "summary_index" };
    json::count(value, &[name]).unwrap_or(0)
}

/// The member that has the whole text in a `done`.
pub(super) fn done_member(value: &Value) -> &'static str {
    ["text", "refusal", "arguments", "input"]
        .into_iter()
        .find(|name| value.get(name).is_some())
        .unwrap_or("text")
}

pub(super) fn channel(kind: ChannelKind) -> Channel {
    Channel { choice: 0, kind }
}

/// The text that a part has.
pub(super) fn part_text(part: &Value) -> &str {
    text(part, text_member(part)).unwrap_or_default()
}
