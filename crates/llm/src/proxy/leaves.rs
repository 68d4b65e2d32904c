//! The text in what is not understood.

use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::Piece;

/// Members that hold no text of a model: ids, kinds, bytes that only the provider reads.
const SILENT: &[&str] = &[
    "id",
    "object",
    "type",
    "role",
    "model",
    "created",
    "created_at",
    "index",
    "status",
    "finish_reason",
    "native_finish_reason",
    "system_fingerprint",
    "service_tier",
    "obfuscation",
    "provider",
    "item_id",
    "call_id",
    "tool_use_id",
    "response_id",
    "signature",
    "thoughtSignature",
    "encrypted_content",
    "modelVersion",
    "responseId",
    "mimeType",
    "severity",
];

/// All texts in a value, each in a line of its own; `None` when there is none.
pub(super) fn leaves(value: &Value) -> Option<String> {
    let mut out = String::new();
    collect(value, &mut out);
    (!out.is_empty()).then_some(out)
}

/// What [`leaves`] would give for the member `name`.
pub(super) fn member_leaves(name: &str, value: &Value) -> Option<String> {
    if SILENT.contains(&name) { None } else { leaves(value) }
}

/// The texts of the member `name`, each as a piece of the text that stands at its place in event after event. `whose` tells
/// apart what has such a member.
pub(super) fn loose(whose: impl Hash, name: &str, value: &Value, out: &mut dyn FnMut(Piece<'_>)) {
    if !SILENT.contains(&name) {
        let mut place = DefaultHasher::new();
        (whose, name).hash(&mut place);
        pieces(value, &place, out);
    }
}

fn pieces(value: &Value, place: &DefaultHasher, out: &mut dyn FnMut(Piece<'_>)) {
    let inside = |name: &dyn Fn(&mut DefaultHasher)| {
        let mut place = place.clone();
        name(&mut place);
        place
    };
    match value {
        Value::String(text) if !text.is_empty() => {
            out(Piece::Loose { of: place.finish(), text: text.as_str().into() });
        }
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| {
            pieces(item, &inside(&|place| n.hash(place)), out);
        }),
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, _)| !SILENT.contains(&name.as_str())) {
                pieces(value, &inside(&|place| name.hash(place)), out);
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn collect(value: &Value, out: &mut String) {
    match value {
        Value::String(text) if !text.is_empty() => {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(text);
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, out)),
        Value::Object(members) => {
            let told = members.iter().filter(|(name, _)| !SILENT.contains(&name.as_str()));
            told.for_each(|(_, value)| collect(value, out));
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_are_found_at_any_depth_and_words_of_the_wire_left_out() {
        let value = json!({"type": "t", "id": "i", "a": ["x", {"b": "y", "role": "r"}], "n": 1, "e": ""});
        assert_eq!(leaves(&value).as_deref(), Some("x\ny"));
        assert_eq!(leaves(&json!({"type": "t", "n": null})), None);
        assert_eq!(member_leaves("id", &json!("x")), None);
        assert_eq!(member_leaves("title", &json!("x")).as_deref(), Some("x"));
    }
}
