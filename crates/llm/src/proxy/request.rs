//! What the wires' requests have in common.

use serde_json::{Map, Value};

use super::Odd;
use crate::wire::json::text;

/// Whether a stream is wanted. Servers disagree about a flag that is no boolean, so it is refused.
pub(super) fn stream_flag(body: &Value) -> Result<bool, Odd> {
    match body.get("stream") {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(stream)) => Ok(*stream),
        Some(_) => Err(Odd("`stream` is neither true nor false".into())),
    }
}

/// The texts of content that is a text, null, or a list of parts, joined without anything between them. `None` when
/// it is something else.
pub(super) fn texts_of(content: &Value) -> Option<String> {
    match content {
        Value::Null => Some(String::new()),
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().filter_map(part_text).collect()),
        Value::Object(_) => part_text(content).map(str::to_owned),
        Value::Bool(_) | Value::Number(_) => None,
    }
}

/// The text of a part, whatever its type is called.
pub(super) fn part_text(part: &Value) -> Option<&str> {
    part.as_str().or_else(|| text(part, "text")).or_else(|| text(part, "refusal"))
}

/// The list in a member.
pub(super) fn member_mut<'b>(body: &'b mut Value, name: &str) -> Result<&'b mut Vec<Value>, Odd> {
    let list = body.get_mut(name).and_then(Value::as_array_mut);
    list.ok_or_else(|| Odd(format!("the request has no list `{name}`")))
}

/// The message at this place.
pub(super) fn place(messages: &mut [Value], at: usize) -> Result<&mut Map<String, Value>, Odd> {
    let message = messages.get_mut(at).and_then(Value::as_object_mut);
    message.ok_or_else(|| Odd(format!("the request has no message {at}")))
}

/// Puts `new` in place of the texts of some content: of the first text part, and the other text parts go. Content
/// without a text part gets one, made by `part`.
pub(super) fn replace_text(content: &mut Value, new: &str, part: &dyn Fn(&str) -> Value) {
    let Value::Array(parts) = content else {
        *content = new.into();
        return;
    };
    let mut written = false;
    parts.retain_mut(|part| {
        if part_text(part).is_none() {
            return true;
        }
        if std::mem::replace(&mut written, true) {
            return false;
        }
        match part {
            Value::Object(members) => {
                let name = if members.contains_key("text") { "text" } else { "refusal" };
                members.insert(name.into(), new.into());
            }
            part => *part = new.into(),
        }
        true
    });
    if !written {
        parts.push(part(new));
    }
}

/// What a tool gave: the texts of its parts, and of parts of other kinds all text that is in them.
pub(super) fn output_of(content: &Value) -> String {
    let part = |part: &Value| match (part_text(part), text(part, "type")) {
        (Some(text), _) => text.to_owned(),
        (None, Some("image" | "input_image" | "image_url")) => String::new(),
        (None, _) => super::leaves::leaves(part).unwrap_or_default(),
    };
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(part).collect(),
        other => other.to_string(),
    }
}
