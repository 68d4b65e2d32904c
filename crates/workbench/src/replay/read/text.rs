//! What the formats have in common: texts in parts, arguments as text.

use serde_json::Value;

/// The member of an object, taken out.
pub(super) fn take(object: &mut Value, name: &str) -> Value {
    object.get_mut(name).map(Value::take).unwrap_or_default()
}

/// A member that is a text, taken out.
pub(super) fn take_text(object: &mut Value, name: &str) -> Option<String> {
    match take(object, name) {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// The text of a content: itself, or its parts that are texts, a line each.
pub(super) fn joined(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| match part {
                Value::String(text) => Some(text.clone()),
                part => part.get("text").or(part.get("refusal")).and_then(Value::as_str).map(str::to_owned),
            };
            parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
        }
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The arguments of a call: the parsed object, or what stands there where it is none.
pub(super) fn arguments(written: Value) -> Value {
    match written {
        Value::String(text) => match serde_json::from_str::<Value>(&text) {
            Ok(parsed @ Value::Object(_)) => parsed,
            _ if text.trim().is_empty() => Value::Object(serde_json::Map::new()),
            _ => Value::String(text),
        },
        Value::Null => Value::Object(serde_json::Map::new()),
        other => other,
    }
}

/// Whether a text of the user's begins with words that the agent itself puts there.
pub(super) fn is_put_there(text: &str, beginnings: &[&str]) -> bool {
    let text = text.trim_start();
    beginnings.iter().any(|beginning| text.starts_with(beginning))
}
