//! The body of a request that is not the event itself: JSON as the hook writes it, for receivers with a form of their
//! own (a chat's incoming webhook, for instance).
//!
//! `{{toolInput.item}}` in a text stands for that member of the event; further members are reached by dots, elements
//! of lists by number. Filled in one pass: text from the event is never expanded. Texts go in as they are, everything
//! else as JSON; a path that leads nowhere stays as it is written. The result is JSON again whatever the event holds.

use hookgate_core::facts::Facts;
use serde_json::{Map, Value};

/// A longer path is plain text, so that a text full of braces is not searched again and again.
const LONGEST_PATH: usize = 200;

/// Fills a written body for one event.
pub(super) fn fill(written: &Value, facts: &Facts) -> Value {
    match written {
        Value::String(text) => Value::String(fill_text(text, facts.members())),
        Value::Array(items) => Value::Array(items.iter().map(|item| fill(item, facts)).collect()),
        Value::Object(members) => {
            let filled = members.iter().map(|(name, value)| (name.clone(), fill(value, facts)));
            Value::Object(filled.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => written.clone(),
    }
}

fn fill_text(text: &str, event: &Map<String, Value>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("{{") {
        let (before, from) = rest.split_at(open);
        out.push_str(before);
        match placeholder(from, event) {
            Some((value, after)) => {
                match value {
                    Value::String(text) => out.push_str(text),
                    other => out.push_str(&other.to_string()),
                }
                rest = after;
            }
            None => {
                // one brace only: `{{{event}}}` holds a placeholder that begins one later
                out.push('{');
                rest = from.strip_prefix('{').unwrap_or_default();
            }
        }
    }
    out.push_str(rest);
    out
}

/// Reads `{{path}}` at the start of a text, if the event has something there.
fn placeholder<'t, 'e>(text: &'t str, event: &'e Map<String, Value>) -> Option<(&'e Value, &'t str)> {
    let inside = text.strip_prefix("{{")?;
    let end = inside.bytes().take(LONGEST_PATH).position(|byte| byte == b'}')?;
    let (path, after) = inside.split_at_checked(end)?;
    let after = after.strip_prefix("}}")?;
    let mut names = path.split('.');
    let first = event.get(names.next()?)?;
    let found = names.try_fold(first, |value, name| match value {
        Value::Object(members) => members.get(name),
        Value::Array(items) => items.get(name.parse::<usize>().ok()?),
        _ => None,
    })?;
    Some((found, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::facts::{Head, LifeEvent};
    use serde_json::json;

    #[track_caller]
    fn check(written: Value, want: Value) {
        let event = LifeEvent::PostToolUse {
            tool_name: "order".into(),
            tool_input: json!({"item": "a \"{{event}}\"", "n": [1, {"x": null}], "": 5}),
            tool_output: "done".into(),
        };
        let facts = Facts::of_life(&Head::default(), event);
        assert_eq!(fill(&written, &facts), want, "{written}");
    }

    #[test]
    fn members_are_filled_in_once() {
        check(json!({"text": "{{toolName}}: {{toolInput.item}}"}), json!({"text": "order: a \"{{event}}\""}));
        check(
            json!(["{{toolInput.n}}", 1, "{{toolInput.n.0}}{{toolOutput}}"]),
            json!(["[1,{\"x\":null}]", 1, "1done"]),
        );
        check(json!("{{toolInput.n.1.x}} {{toolInput.}}"), json!("null 5"));
    }

    #[test]
    fn everything_else_stays() {
        for text in
            ["{{nope}}", "{{toolInput.nope.x}}", "{{toolInput.n.7}}", "{{ toolName }}", "{{toolName", "{{}}"]
        {
            check(json!(text), json!(text));
        }
        check(json!("{{{toolName}}}"), json!("{order}"));
        check(json!({"{{toolName}}": true}), json!({"{{toolName}}": true}));
    }
}
