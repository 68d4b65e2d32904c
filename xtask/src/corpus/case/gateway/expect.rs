//! Compares what a client of the gateway saw with what a case expects.

use super::super::super::TIME_FACTOR;
use super::super::expect::{any_of, contains, equal};
use super::client::Seen;
use hookgate_core::verdict::Decision;
use hookgate_core::word::Word;
use serde_json::{Value, json};
use std::time::Duration;

/// What is seen elsewhere.
pub(super) struct Around {
    /// Requests that the upstream got in this step.
    pub(super) requests: usize,
    /// What the upstream sends.
    pub(super) sent: Vec<u8>,
    /// The last decision in the trail.
    pub(super) decision: Option<Decision>,
}

pub(super) fn check(expect: &Value, seen: &Seen, around: &Around) -> Result<(), String> {
    for (key, want) in expect.as_object().into_iter().flatten() {
        one(key, want, seen, around).map_err(|why| format!("`{key}`: {why}"))?;
    }
    Ok(())
}

fn one(key: &str, want: &Value, seen: &Seen, around: &Around) -> Result<(), String> {
    let body = String::from_utf8_lossy(&seen.body);
    let ms = || Duration::from_millis(want.as_u64().unwrap_or(0));
    match key {
        "any_of" => any_of(want, |entry| check(entry, seen, around)),
        "status" => equal(want, json!(seen.status)),
        "status_range" => {
            let bound = |n: usize| want.get(n).and_then(Value::as_u64);
            holds(bound(0) <= Some(seen.status) && Some(seen.status) <= bound(1), want, &json!(seen.status))
        }
        "text" => equal(want, json!(seen.text)),
        "text_contains" => contains(want, &seen.text),
        "text_not_contains" => without(want, &seen.text),
        "body_contains" => contains(want, &body),
        "body_not_contains" => without(want, &body),
        "ends_with" => {
            holds(body.trim_end().ends_with(want.as_str().unwrap_or_default()), want, &tail(&body))
        }
        "finish_reason" => equal(want, json!(seen.finish)),
        "finish_reason_not" => holds(*want != json!(seen.finish), want, &json!(seen.finish)),
        "tool_calls" => tool_calls(want, seen),
        "blocked" => equal(want, json!(is_blocked(seen))),
        "upstream_requests" => equal(want, json!(around.requests)),
        "event_count" => equal(want, json!(seen.events.len())),
        "body_equals_upstream" => equal(want, json!(seen.body == around.sent)),
        "every_event_is_valid_json" => {
            let is_json = |data: &String| data == "[DONE]" || serde_json::from_str::<Value>(data).is_ok();
            equal(want, json!(seen.events.iter().all(is_json)))
        }
        "contains_once" => {
            let twice =
                list(want).iter().filter_map(Value::as_str).find(|word| body.matches(word).count() != 1);
            holds(twice.is_none(), want, &json!(twice))
        }
        "no_done_mark_or_error_event" => {
            let closed = body.contains("[DONE]")
                || body.contains("message_stop")
                || body.contains("response.completed");
            equal(want, json!(!closed || seen.error))
        }
        "cut" => equal(want, json!(seen.cut)),
        "audit_decision" => equal(want, json!(around.decision.map(|decision| decision.as_str()))),
        "max_ms" => holds(seen.took <= ms() * TIME_FACTOR, want, &json!(format!("{:?}", seen.took))),
        "min_ms" => holds(seen.took >= ms(), want, &json!(format!("{:?}", seen.took))),
        other => Err(format!("the runner does not know `{other}`")),
    }
}

/// An error status, a refusal in place of the answer, or a filtered end.
fn is_blocked(seen: &Seen) -> bool {
    seen.status >= 400 || seen.finish.as_deref() == Some("content_filter")
}

fn tool_calls(want: &Value, seen: &Seen) -> Result<(), String> {
    let names: Vec<Value> = seen.calls.iter().filter_map(|call| call.get("name").cloned()).collect();
    let of_names = list(want).iter().all(Value::is_string);
    equal(want, if of_names { json!(names) } else { json!(seen.calls) })
}

fn without(want: &Value, text: &str) -> Result<(), String> {
    let lower = text.to_lowercase();
    let found = list(want).iter().filter_map(Value::as_str).find(|word| lower.contains(&word.to_lowercase()));
    holds(found.is_none(), want, &json!(found))
}

fn tail(text: &str) -> Value {
    json!(text.chars().rev().take(80).collect::<Vec<_>>().into_iter().rev().collect::<String>())
}

fn list(want: &Value) -> &[Value] {
    match want {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

fn holds(is_so: bool, want: &Value, got: &Value) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(format!("wanted {want}, got {got}")) }
}
