//! The JSON of one chunk: an ordinary piece of text, read without building a tree, and the walk over its parts.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::proxy::text::{Nothing, Text};
use crate::wire::json::is_something;

/// A chunk with one text of one candidate. Any other chunk fails to be read as this.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct Plain<'a> {
    #[serde(borrow)]
    pub(super) candidates: [PlainCandidate<'a>; 1],
    pub(super) usage_metadata: Option<Counts>,
    #[serde(default, rename = "modelVersion")]
    _model_version: IgnoredAny,
    #[serde(default, rename = "responseId")]
    _response_id: IgnoredAny,
    #[serde(default, rename = "createTime")]
    _create_time: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct PlainCandidate<'a> {
    #[serde(borrow)]
    pub(super) content: PlainContent<'a>,
    #[serde(default)]
    pub(super) index: u32,
    #[serde(default, rename = "finishReason")]
    _finish_reason: Option<Nothing>,
    #[serde(default, rename = "safetyRatings")]
    _safety_ratings: IgnoredAny,
    #[serde(default, rename = "avgLogprobs")]
    _avg_logprobs: IgnoredAny,
    #[serde(default, rename = "tokenCount")]
    _token_count: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainContent<'a> {
    #[serde(borrow)]
    pub(super) parts: [PlainPart<'a>; 1],
    #[serde(default, rename = "role")]
    _role: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PlainPart<'a> {
    #[serde(borrow)]
    pub(super) text: Text<'a>,
    #[serde(default)]
    pub(super) thought: bool,
}

/// What it cost so far; every chunk says it.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Counts {
    pub(super) prompt_token_count: Option<u64>,
    pub(super) candidates_token_count: Option<u64>,
    pub(super) thoughts_token_count: Option<u64>,
    pub(super) total_token_count: Option<u64>,
    pub(super) cached_content_token_count: Option<u64>,
    pub(super) tool_use_prompt_token_count: Option<u64>,
}

/// What stands at a place that [`for_parts`] shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A text that is not empty.
    Content,
    Reasoning,
    /// A whole part that is a call.
    Call,
    /// A member that is not understood.
    Other,
}

/// Shows everything in a candidate's parts in which text may stand, always in the same order.
pub(super) fn for_parts(candidate: &mut Value, see: &mut dyn FnMut(Spot, &str, &mut Value)) {
    let Some(content) = candidate.get_mut("content").filter(|content| is_something(content)) else { return };
    let Value::Object(content) = content else {
        return see(Spot::Other, "content", content);
    };
    for (name, value) in content.iter_mut() {
        match (name.as_str(), value) {
            ("parts", Value::Array(parts)) => parts.iter_mut().for_each(|part| for_part(part, see)),
            (name, value) => see(Spot::Other, name, value),
        }
    }
}

fn for_part(part: &mut Value, see: &mut dyn FnMut(Spot, &str, &mut Value)) {
    if call(part).is_some() {
        return see(Spot::Call, "functionCall", part);
    }
    let spot = if part.get("thought") == Some(&Value::Bool(true)) { Spot::Reasoning } else { Spot::Content };
    let Value::Object(members) = part else {
        return see(Spot::Other, "parts", part);
    };
    for (name, value) in members.iter_mut() {
        match (name.as_str(), &mut *value) {
            ("thought" | "thoughtSignature", _) => {}
            ("text", Value::String(text)) if text.is_empty() => {}
            ("text", Value::String(_)) => see(spot, name, value),
            // Bytes of pictures and sound.
            ("inlineData", _) => {}
            _ => see(Spot::Other, name, value),
        }
    }
}

/// The call in a part.
pub(super) fn call(part: &Value) -> Option<&Value> {
    ["functionCall", "function_call"]
        .into_iter()
        .find_map(|name| part.get(name))
        .filter(|call| call.is_object())
}

/// The call's arguments as text; empty when there are none.
pub(super) fn arguments(call: &Value) -> String {
    call.get("args").filter(|args| is_something(args)).map(Value::to_string).unwrap_or_default()
}

/// The chunk itself, which Google's own tools wrap.
pub(super) fn inner(chunk: &mut Value) -> &mut Value {
    if !is_wrapped(chunk) {
        return chunk;
    }
    match chunk {
        Value::Object(members) => members.entry("response").or_insert(Value::Null),
        chunk => chunk,
    }
}

pub(super) fn is_wrapped(chunk: &Value) -> bool {
    chunk.get("candidates").is_none() && chunk.get("response").is_some_and(Value::is_object)
}
