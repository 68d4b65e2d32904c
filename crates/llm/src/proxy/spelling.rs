//! Keys of a request that some servers read as others.
//!
//! JSON tells upper and lower case apart, and so do most servers. Those in Go do not: `Messages` fills the same field as
//! `messages` there. Where a request says something to a model, a key that is a known one but for its case is therefore
//! no unknown field: whoever judges the request would pass over what the provider reads.

use serde_json::Value;

/// The keys under which a request says something, on all wires, as they are written.
const KNOWN: &[&str] = &[
    "messages",
    "message",
    "input",
    "contents",
    "content",
    "parts",
    "text",
    "role",
    "system",
    "systemInstruction",
    "system_instruction",
    "instructions",
    "prompt",
    "request",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "functionCall",
    "functionResponse",
    "function_response",
    "output",
    "model",
    "stream",
    "n",
    "conversation",
    "previous_response_id",
];
/// Those of them that may hold one object of the wire's. What others hold as an object is a tool's.
const OBJECTS: &[&str] =
    &["message", "request", "content", "contents", "system", "systemInstruction", "system_instruction"];
/// How deep a request says something: the body, its messages, their parts.
const DEEPEST: usize = 5;

/// The first key of a request that is a known one but for its case, with the known one. What tools, schemas and
/// arguments call their members is theirs.
///
/// ```
/// use hookgate_llm::proxy::misspelt_key;
/// let body = serde_json::json!({"messages": [{"role": "user", "Content": "hi"}]});
/// assert_eq!(misspelt_key(&body), Some(("Content", "content")));
/// ```
pub fn misspelt_key(body: &Value) -> Option<(&str, &'static str)> {
    search(body, 0)
}

fn search(value: &Value, depth: usize) -> Option<(&str, &'static str)> {
    match value {
        Value::Object(members) => members.iter().find_map(|(key, value)| {
            if KNOWN.contains(&key.as_str()) {
                let is_wires = value.is_array() || OBJECTS.contains(&key.as_str());
                return if is_wires && depth < DEEPEST {
                    search(value, depth.saturating_add(1))
                } else {
                    None
                };
            }
            let known = KNOWN.iter().find(|known| known.eq_ignore_ascii_case(key))?;
            Some((key.as_str(), *known))
        }),
        Value::Array(items) => items.iter().find_map(|item| search(item, depth)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_a_model_would_read_is_compared() {
        let check = |body: Value, want: Option<&str>| {
            assert_eq!(misspelt_key(&body).map(|(key, _)| key), want, "{body}");
        };
        check(json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}), None);
        check(json!({"Messages": []}), Some("Messages"));
        check(json!({"messages": [], "MESSAGES": []}), Some("MESSAGES"));
        check(json!({"contents": [{"parts": [{"Text": "x"}]}]}), Some("Text"));
        check(json!({"messages": [{"Tool_Calls": []}]}), Some("Tool_Calls"));
        // names that tools give are theirs
        check(json!({"tools": [{"parameters": {"Text": {}, "text": {}}}]}), None);
        check(json!({"messages": [{"tool_calls": [{"function": {"arguments": {"Content": 1}}}]}]}), None);
        check(
            json!({"messages": [{"content": [{"type": "tool_use", "input": {"Text": "x", "l": [{"Role": 1}]}}]}]}),
            None,
        );
        check(json!({"contents": [{"parts": [{"functionResponse": {"response": {"Output": 1}}}]}]}), None);
        check(json!({"systemInstruction": {"Parts": []}}), Some("Parts"));
        check(json!({"metadata": {"Model": "x"}}), None);
        check(json!(["x", 1, null]), None);
    }
}
