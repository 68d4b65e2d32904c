//! How the vectors describe expected texts and messages.

use hookgate_chat::ChatMessage;
use serde_json::Value;

/// Compares a text with its description: equal text, `{"re"}`, `{"any"}` or `{"dump"}`.
pub(super) fn matches(want: &Value, got: &str) -> Result<(), String> {
    let differs = || Err(format!("wanted {want}, got {got:?}"));
    if let Value::String(text) = want {
        return if text == got { Ok(()) } else { differs() };
    }
    if let Some(pattern) = want.get("re").and_then(Value::as_str) {
        let regex = regex::Regex::new(pattern).map_err(|error| error.to_string())?;
        return if regex.is_match(got) { Ok(()) } else { differs() };
    }
    if want.get("any").is_some() {
        return Ok(());
    }
    match want.get("dump") {
        Some(dump) => is_dump(dump, got),
        None => Err(format!("unknown description {want}")),
    }
}

/// `[json-hook] target: {…}` or `[json-hook LABEL] target: {…}` with at least these pairs.
fn is_dump(want: &Value, got: &str) -> Result<(), String> {
    let fail = |why: &str| Err(format!("{why} in the dump {got:?}, wanted {want}"));
    let Some(rest) = got.strip_prefix("[json-hook") else { return fail("no prefix") };
    let Some((label, rest)) = rest.split_once("] ") else { return fail("no label end") };
    let Some((target, json)) = rest.split_once(": ") else { return fail("no target") };
    if want.get("label").and_then(Value::as_str).is_some_and(|wanted| label.trim_start() != wanted) {
        return fail("another label");
    }
    if want.get("target").and_then(Value::as_str) != Some(target) {
        return fail("another target");
    }
    let Ok(Value::Object(data)) = serde_json::from_str::<Value>(json) else { return fail("no JSON object") };
    let pairs = want.get("has").and_then(Value::as_object);
    match pairs.into_iter().flatten().find(|(key, value)| data.get(*key) != Some(value)) {
        Some((key, _)) => fail(&format!("another `{key}`")),
        None => Ok(()),
    }
}

/// Compares a message on the keys that the expectation gives.
pub(super) fn message_matches(want: &Value, got: &ChatMessage) -> Result<(), String> {
    for (key, value) in want.as_object().into_iter().flatten() {
        let same = match key.as_str() {
            "role" => equal(value, got.role.to_string()),
            "origin" => equal(&lower(value), got.origin.to_string()),
            "content" => matches(value, &got.content),
            "tool_call_id" => matches(value, got.tool_call_id.as_deref().unwrap_or("(none)")),
            "tool_calls" => calls_match(value, got),
            other => Err(format!("unknown key `{other}` in an expected message")),
        };
        same.map_err(|why| format!("message `{key}`: {why}"))?;
    }
    Ok(())
}

/// Compares lists of messages.
pub(super) fn messages_match(want: &[Value], got: &[ChatMessage]) -> Result<(), String> {
    if want.len() != got.len() {
        let shown: Vec<String> = got.iter().map(|m| format!("{}: {}", m.role, m.content)).collect();
        return Err(format!("wanted {} messages, got {}: {shown:?}", want.len(), got.len()));
    }
    want.iter().zip(got).try_for_each(|(want, got)| message_matches(want, got))
}

fn calls_match(want: &Value, got: &ChatMessage) -> Result<(), String> {
    let want = want.as_array().map(Vec::as_slice).unwrap_or_default();
    let got: Vec<Value> = got
        .tool_calls
        .iter()
        .map(|call| serde_json::json!({"name": call.name, "arguments": call.arguments}))
        .collect();
    if want == got { Ok(()) } else { Err(format!("wanted {want:?}, got {got:?}")) }
}

fn lower(value: &Value) -> Value {
    value.as_str().map_or(Value::Null, |text| text.to_lowercase().into())
}

fn equal(want: &Value, got: String) -> Result<(), String> {
    if *want == got { Ok(()) } else { Err(format!("wanted {want}, got {got:?}")) }
}
