//! The JSON of one chunk: the few members of an ordinary delta, read without building a tree, and the walk over
//! everything in which text may stand.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::proxy::text::{Nothing, Text};
use crate::wire::json::is_something;

/// A chunk with one piece of one text. Any other chunk, also one with a member that is not listed here, fails to be
/// read as this.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Plain<'a> {
    #[serde(default, rename = "id")]
    _id: IgnoredAny,
    #[serde(default, rename = "object")]
    _object: IgnoredAny,
    #[serde(default, rename = "created")]
    _created: IgnoredAny,
    #[serde(default, rename = "model")]
    _model: IgnoredAny,
    #[serde(default, rename = "system_fingerprint")]
    _fingerprint: IgnoredAny,
    #[serde(default, rename = "service_tier")]
    _tier: IgnoredAny,
    #[serde(default, rename = "provider")]
    _provider: IgnoredAny,
    #[serde(default, rename = "obfuscation")]
    _obfuscation: IgnoredAny,
    #[serde(default, rename = "usage")]
    _usage: Option<Nothing>,
    #[serde(borrow)]
    pub(super) choices: [PlainChoice<'a>; 1],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainChoice<'a> {
    #[serde(default)]
    pub(super) index: u32,
    #[serde(borrow)]
    pub(super) delta: PlainDelta<'a>,
    #[serde(default, borrow)]
    pub(super) finish_reason: Option<Text<'a>>,
    #[serde(default, rename = "logprobs")]
    _logprobs: Option<Nothing>,
    #[serde(default, rename = "stop_reason")]
    _stop_reason: Option<Nothing>,
    #[serde(default, rename = "native_finish_reason")]
    _native_finish_reason: Option<Nothing>,
    #[serde(default, rename = "matched_stop")]
    _matched_stop: Option<Nothing>,
    #[serde(default, rename = "token_ids")]
    _token_ids: Option<Nothing>,
    #[serde(default, rename = "content_filter_results")]
    _content_filter_results: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainDelta<'a> {
    #[serde(default)]
    pub(super) role: Option<IgnoredAny>,
    #[serde(default, borrow)]
    pub(super) content: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) reasoning_content: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) reasoning: Option<Text<'a>>,
    #[serde(default, borrow)]
    pub(super) refusal: Option<Text<'a>>,
    #[serde(default, rename = "function_call")]
    _function_call: Option<Nothing>,
    #[serde(default, borrow)]
    pub(super) tool_calls: Option<PlainCalls<'a>>,
}

/// One piece of one call.
#[derive(Deserialize)]
pub(super) struct PlainCalls<'a>(#[serde(borrow)] pub(super) [PlainCall<'a>; 1]);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainCall<'a> {
    pub(super) index: u64,
    #[serde(default, rename = "id")]
    _id: Option<Nothing>,
    #[serde(default, rename = "type")]
    _kind: IgnoredAny,
    #[serde(borrow)]
    pub(super) function: PlainFunction<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainFunction<'a> {
    #[serde(default, rename = "name")]
    _name: Option<Nothing>,
    #[serde(borrow)]
    pub(super) arguments: Text<'a>,
}

impl PlainDelta<'_> {
    /// Its only text that is not empty.
    pub(super) fn only_text(&self) -> Option<(PlainText, &str)> {
        let mut found = None;
        let call = self.tool_calls.as_ref().map(|calls| {
            let PlainCalls([call]) = calls;
            (PlainText::Call(call.index), &call.function.arguments)
        });
        let texts = [
            (PlainText::Reasoning("reasoning_content"), self.reasoning_content.as_ref()),
            (PlainText::Reasoning("reasoning"), self.reasoning.as_ref()),
            (PlainText::Content, self.content.as_ref()),
            (PlainText::Content, self.refusal.as_ref()),
        ];
        for (kind, text) in texts.into_iter().chain(call.map(|(kind, text)| (kind, Some(text)))) {
            let Some(text) = text.filter(|text| !text.0.is_empty()) else { continue };
            if found.replace((kind, &*text.0)).is_some() {
                return None;
            }
        }
        found
    }
}

/// Which text of a plain delta it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PlainText {
    Content,
    /// And the member it stands in.
    Reasoning(&'static str),
    /// And the index as it was written.
    Call(u64),
}

/// What stands at a place that [`walk`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A text that is not empty.
    Content,
    /// A text that is not empty, and the member of the message it stands in.
    Reasoning(&'static str),
    /// The reasoning before it once more, in another member.
    Again,
    /// One entry of `tool_calls`.
    Call,
    /// The old `function_call`.
    Function,
    /// A whole entry of `reasoning_details`; its texts were shown before.
    Detail,
    /// A member that is not understood.
    Other,
}

/// Shows everything in a choice's message (or delta) in which text may stand, always in the same order.
pub(super) fn walk(message: &mut Value, see: &mut dyn FnMut(Spot, &str, &mut Value)) {
    let Value::Object(members) = message else {
        return see(Spot::Other, "delta", message);
    };
    let mut said: Option<String> = None;
    for name in ["reasoning_content", "reasoning"] {
        match members.get_mut(name) {
            Some(value @ Value::String(_)) => reasoning(name, value, &mut said, see),
            Some(value) if is_something(value) => see(Spot::Other, name, value),
            _ => {}
        }
    }
    if let Some(Value::Array(details)) = members.get_mut("reasoning_details") {
        details.iter_mut().for_each(|detail| reasoning_detail(detail, &mut said, see));
    }
    for name in ["content", "refusal"] {
        members.get_mut(name).into_iter().for_each(|value| content(value, see));
    }
    for (name, value) in members.iter_mut() {
        match name.as_str() {
            "role" | "reasoning_content" | "reasoning" | "content" | "refusal" | "tool_calls"
            | "function_call" => {}
            "reasoning_details" if value.is_array() => {}
            name if is_something(value) => see(Spot::Other, name, value),
            _ => {}
        }
    }
    match members.get_mut("tool_calls") {
        Some(Value::Array(calls)) => calls.iter_mut().for_each(|call| see(Spot::Call, "tool_calls", call)),
        Some(value) if is_something(value) => see(Spot::Other, "tool_calls", value),
        _ => {}
    }
    match members.get_mut("function_call") {
        Some(value) if is_something(value) => see(Spot::Function, "function_call", value),
        _ => {}
    }
}

fn reasoning(
    name: &str,
    value: &mut Value,
    said: &mut Option<String>,
    see: &mut dyn FnMut(Spot, &str, &mut Value),
) {
    let Some(text) = value.as_str().filter(|text| !text.is_empty()) else { return };
    let field = match name {
        "reasoning_content" => "reasoning_content",
        "reasoning" => "reasoning",
        _ => "",
    };
    if said.as_deref() == Some(text) {
        see(Spot::Again, name, value);
    } else {
        *said = Some(text.to_owned());
        see(Spot::Reasoning(field), name, value);
    }
}

fn reasoning_detail(
    detail: &mut Value,
    said: &mut Option<String>,
    see: &mut dyn FnMut(Spot, &str, &mut Value),
) {
    for (name, value) in detail.as_object_mut().into_iter().flatten() {
        match name.as_str() {
            "text" | "summary" => reasoning("reasoning_details", value, said, see),
            "data" | "signature" | "type" | "format" | "id" | "index" => {}
            name => see(Spot::Other, name, value),
        }
    }
    see(Spot::Detail, "reasoning_details", detail);
}

/// A text, null, or a list of parts.
pub(super) fn content(value: &mut Value, see: &mut dyn FnMut(Spot, &str, &mut Value)) {
    match value {
        Value::String(text) if text.is_empty() => {}
        Value::String(_) => see(Spot::Content, "content", value),
        Value::Array(parts) => parts.iter_mut().for_each(|part| content_part(part, see)),
        value if is_something(value) => see(Spot::Other, "content", value),
        _ => {}
    }
}

fn content_part(part: &mut Value, see: &mut dyn FnMut(Spot, &str, &mut Value)) {
    let Value::Object(members) = part else {
        return content(part, see);
    };
    for (name, value) in members.iter_mut() {
        match (name.as_str(), &mut *value) {
            ("type" | "index" | "id", _) => {}
            ("text" | "refusal", Value::String(text)) if !text.is_empty() => see(Spot::Content, name, value),
            ("thinking", Value::String(text)) if !text.is_empty() => see(Spot::Reasoning(""), name, value),
            ("thinking", Value::Array(inner)) => {
                for (name, value) in inner.iter_mut().filter_map(Value::as_object_mut).flatten() {
                    match value {
                        Value::String(text) if name == "text" && !text.is_empty() => {
                            see(Spot::Reasoning(""), name, value);
                        }
                        _ => see(Spot::Other, name, value),
                    }
                }
            }
            (_, other) if is_something(other) => see(Spot::Other, name, value),
            _ => {}
        }
    }
}

/// The member in which a call's name and arguments stand; without one they stand in the entry itself.
pub(super) fn call_member(entry: &Value) -> Option<&'static str> {
    ["function", "custom"].into_iter().find(|name| entry.get(name).is_some_and(Value::is_object))
}
