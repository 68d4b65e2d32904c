//! Compares what a step did with what a case expects. Every key must hold; `any_of` holds when one entry holds.

use super::super::TIME_FACTOR;
use hookgate_chat::ChatMessage;
use hookgate_llm::wire::openai_chat;
use hookgate_llm::{Request, Role};
use serde_json::{Value, json};
use std::time::Duration;

/// What can be seen after a step.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) took: Duration,
    pub(super) fired: Vec<String>,
    pub(super) log: Vec<(String, String)>,
    pub(super) queued: Vec<ChatMessage>,
    pub(super) interrupted_at_chunk: Option<usize>,
    pub(super) requests: Vec<Request>,
    pub(super) result: String,
    pub(super) error: Option<String>,
    pub(super) final_text: Option<String>,
    pub(super) loaded: Vec<String>,
    pub(super) rejected: Vec<Problem>,
    pub(super) warnings: Vec<String>,
    pub(super) degraded: bool,
    pub(super) files_unchanged: bool,
}

/// A refused definition, as cases name it.
pub(super) struct Problem {
    pub(super) file: String,
    pub(super) index: Option<usize>,
    pub(super) line: Option<usize>,
    pub(super) text: String,
}

pub(super) fn check(expect: &Value, seen: &Seen) -> Result<(), String> {
    for (key, want) in expect.as_object().into_iter().flatten() {
        one(key, want, seen).map_err(|why| format!("`{key}`: {why}"))?;
    }
    Ok(())
}

fn one(key: &str, want: &Value, seen: &Seen) -> Result<(), String> {
    let logged = || seen.log.iter().map(|(level, text)| json!([level, text])).collect::<Vec<_>>();
    match key {
        "any_of" => any_of(want, |entry| check(entry, seen)),
        "max_ms" => within(want, seen.took),
        "fired" => equal(want, json!(seen.fired)),
        "log" => equal(want, json!(logged())),
        "log_count" => equal(want, json!(seen.log.len())),
        "log_contains" => {
            contains(want, &seen.log.iter().map(|(_, text)| text.as_str()).collect::<Vec<_>>().join("\n"))
        }
        "log_bytes_max" => at_most(want, seen.log.iter().map(|(_, text)| text.len()).max().unwrap_or(0)),
        "queued" => queued(want, &seen.queued),
        "interrupted" => {
            equal(want, json!(seen.interrupted_at_chunk.is_some() || seen.result == "interrupted"))
        }
        "interrupted_at_chunk" => equal(want, json!(seen.interrupted_at_chunk)),
        "requests_sent" => equal(want, json!(seen.requests.len())),
        "request_last_message" => last_message(want, &seen.requests),
        "request_valid" => valid(&seen.requests),
        "request_contains" => contains(want, &bodies(&seen.requests)),
        "tool_id_prefix" => prefixed(want, &seen.requests),
        "result" => equal(want, json!(seen.result)),
        "error_contains" => contains(want, seen.error.as_deref().unwrap_or_default()),
        "final_text" => equal(want, json!(seen.final_text)),
        "loaded" => equal(want, json!(seen.loaded)),
        "rejected" => rejected(want, &seen.rejected),
        "warnings_contain" => contains(want, &seen.warnings.join("\n")),
        "status" => equal(want, json!(if seen.degraded { "degraded" } else { "ok" })),
        "files_unchanged" => equal(want, json!(seen.files_unchanged)),
        _ => Err("the runner does not know this key".into()),
    }
}

/// One entry holds.
pub(super) fn any_of(want: &Value, check: impl Fn(&Value) -> Result<(), String>) -> Result<(), String> {
    let mut why = Vec::new();
    for entry in want.as_array().into_iter().flatten() {
        match check(entry) {
            Ok(()) => return Ok(()),
            Err(reason) => why.push(reason),
        }
    }
    Err(format!("no entry holds: {}", why.join(" | ")))
}

pub(super) fn equal(want: &Value, got: Value) -> Result<(), String> {
    if *want == got { Ok(()) } else { Err(format!("wanted {want}, got {got}")) }
}

fn within(want: &Value, took: Duration) -> Result<(), String> {
    let limit = Duration::from_millis(want.as_u64().unwrap_or(0)) * TIME_FACTOR;
    if took <= limit { Ok(()) } else { Err(format!("took {took:?}, at most {limit:?} are allowed")) }
}

fn at_most(want: &Value, got: usize) -> Result<(), String> {
    let limit = want.as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
    if got <= limit { Ok(()) } else { Err(format!("wanted at most {limit}, got {got}")) }
}

/// All words occur, without regard to letter case.
pub(super) fn contains(want: &Value, got: &str) -> Result<(), String> {
    let words: Vec<&str> = match want {
        Value::String(word) => vec![word],
        other => other.as_array().into_iter().flatten().filter_map(Value::as_str).collect(),
    };
    let lower = got.to_lowercase();
    match words.iter().find(|word| !lower.contains(&word.to_lowercase())) {
        Some(word) => {
            Err(format!("{word:?} does not occur in {:?}", got.chars().take(300).collect::<String>()))
        }
        None => Ok(()),
    }
}

fn queued(want: &Value, got: &[ChatMessage]) -> Result<(), String> {
    let want = want.as_array().map(Vec::as_slice).unwrap_or_default();
    super::super::text::messages_match(want, got)
}

fn last_message(want: &Value, requests: &[Request]) -> Result<(), String> {
    let last = requests.last().and_then(|request| request.messages.last()).ok_or("no request was sent")?;
    let got = json!({"role": last.role.as_str(), "content": last.content});
    equal(want, got)
}

/// Every tool message follows an assistant message that holds a call with its id.
fn valid(requests: &[Request]) -> Result<(), String> {
    for request in requests {
        let mut open: Vec<&str> = Vec::new();
        for message in &request.messages {
            match (message.role, message.tool_call_id.as_deref()) {
                (Role::Assistant, _) => {
                    open = message.tool_calls.iter().map(|call| call.id.as_str()).collect()
                }
                (Role::Tool, Some(id)) if open.contains(&id) => open.retain(|other| *other != id),
                (Role::Tool, id) => return Err(format!("the tool message {id:?} has no call before it")),
                _ => open.clear(),
            }
        }
    }
    Ok(())
}

fn bodies(requests: &[Request]) -> String {
    requests
        .iter()
        .map(|request| openai_chat::encode(request, true).to_string())
        .collect::<Vec<_>>()
        .join("\n")
}

fn prefixed(want: &Value, requests: &[Request]) -> Result<(), String> {
    let prefix = want.as_str().unwrap_or_default();
    let ids: Vec<&str> =
        requests.iter().flat_map(|r| &r.messages).filter_map(|m| m.tool_call_id.as_deref()).collect();
    match ids.iter().find(|id| !id.starts_with(prefix)) {
        Some(id) => Err(format!("the id {id:?} does not begin with {prefix:?}")),
        None if ids.is_empty() => Err("there is no tool message".into()),
        None => Ok(()),
    }
}

fn rejected(want: &Value, got: &[Problem]) -> Result<(), String> {
    let want = want.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = got.iter().map(|problem| problem.text.as_str()).collect();
    if want.len() != got.len() {
        return Err(format!("wanted {} refusals, got {texts:?}", want.len()));
    }
    let number = |value: &Value, key: &str| {
        value.get(key).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok())
    };
    for one in want {
        let found = got.iter().any(|problem| {
            one.get("file").is_none_or(|file| *file == problem.file)
                && (one.get("index").is_none() || number(one, "index") == problem.index)
                && (one.get("line").is_none() || number(one, "line") == problem.line)
                && one.get("reason_contains").is_none_or(|words| contains(words, &problem.text).is_ok())
        });
        if !found {
            return Err(format!("nothing like {one} among {texts:?}"));
        }
    }
    Ok(())
}
