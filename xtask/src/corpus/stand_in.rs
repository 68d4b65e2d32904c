//! Stand-ins of cases: `{"b64"}`, `{"repeat", "times", "then", "prefix"}` and `{dir}`.

use base64::Engine;
use serde_json::Value;

/// The bytes of a text or a stand-in.
pub(super) fn bytes(value: &Value) -> Result<Vec<u8>, String> {
    match value.get("b64").and_then(Value::as_str) {
        Some(encoded) => {
            base64::engine::general_purpose::STANDARD.decode(encoded).map_err(|error| format!("b64: {error}"))
        }
        None => Ok(expand(value, "")?.as_str().unwrap_or_default().as_bytes().to_vec()),
    }
}

/// Replaces every stand-in of a value. Bytes that are no text become replacement marks.
pub(super) fn expand(value: &Value, dir: &str) -> Result<Value, String> {
    match value {
        Value::String(text) => Ok(Value::String(text.replace("{dir}", dir))),
        Value::Array(items) => {
            items.iter().map(|item| expand(item, dir)).collect::<Result<_, _>>().map(Value::Array)
        }
        Value::Object(members) if members.contains_key("b64") => {
            Ok(Value::String(String::from_utf8_lossy(&bytes(value)?).into_owned()))
        }
        Value::Object(members) if members.contains_key("repeat") => {
            let text = |key: &str| members.get(key).and_then(Value::as_str).unwrap_or_default();
            let times = members.get("times").and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
            let repeated = text("repeat").repeat(times.unwrap_or(1));
            Ok(Value::String(format!("{}{repeated}{}", text("prefix"), text("then"))))
        }
        Value::Object(members) => members
            .iter()
            .map(|(key, item)| Ok((key.clone(), expand(item, dir)?)))
            .collect::<Result<_, String>>()
            .map(Value::Object),
        other => Ok(other.clone()),
    }
}
