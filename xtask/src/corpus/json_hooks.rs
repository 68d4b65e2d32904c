//! The JSON-hooks vectors (`conformance/json-hooks/README.md` describes a line).

use super::Verdict;
use super::model::{Answers, Played};
use super::text::{matches, message_matches, messages_match};
use hookgate_chat::{ChatEvent, ChatMessage, ChatService, Outcome, Role, SendError};
use hookgate_core::event::{Chunk, ToolOutcome, ToolRun, WatchEvent};
use hookgate_core::word::Word;
use hookgate_handlers::folder::HOOKS_DIR_VARIABLE;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// One thing that a hook or the loop did.
#[derive(Clone)]
enum Seen {
    Plain(Value),
    Log { text: String, level: String },
    Queued(ChatMessage),
    Request(Vec<ChatMessage>),
}

/// Plays a vector.
pub(super) fn run(test: &Value) -> Verdict {
    match play(test) {
        Ok(()) => Verdict::Passed,
        Err(why) => Verdict::Failed(why),
    }
}

fn play(test: &Value) -> Result<(), String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (configured, environment) = lay_out(test, dir.path())?;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let ran = Arc::new(Mutex::new(Vec::new()));
    let service = build(test, configured, environment, &seen, &ran)?;
    let outcomes = steps(test, &service)?;
    let expect = test.get("expect").ok_or("no `expect`")?;
    let seen = seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
    effects(list(expect, "effects"), &seen)?;
    load_errors(list(expect, "load_errors"), &service)?;
    if expect.get("loaded").is_some() {
        loaded(list(expect, "loaded"), &service)?;
    }
    if expect.get("history").is_some() {
        messages_match(list(expect, "history"), &service.history())
            .map_err(|why| format!("history: {why}"))?;
    }
    if expect.get("queue_left").is_some() {
        messages_match(list(expect, "queue_left"), &service.queue())
            .map_err(|why| format!("queue: {why}"))?;
    }
    if let Some(want) = expect.get("tools_run") {
        let got = json!(*ran.lock().unwrap_or_else(PoisonError::into_inner));
        if *want != got {
            return Err(format!("tools run: wanted {want}, got {got}"));
        }
    }
    if expect.get("send").is_some() {
        sends(list(expect, "send"), &outcomes)?;
    }
    if expect.get("distinct_tool_call_ids") == Some(&Value::Bool(true)) {
        distinct_ids(&seen)?;
    }
    Ok(())
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Writes the hook files and says what configuration and environment name.
fn lay_out(test: &Value, dir: &Path) -> Result<(Option<OsString>, Option<OsString>), String> {
    let write_all = |folder: &Path, files: &Value| -> Result<(), String> {
        std::fs::create_dir_all(folder).map_err(|error| error.to_string())?;
        for (name, content) in files.as_object().into_iter().flatten() {
            let path = folder.join(name);
            let parent = path.parent().unwrap_or(folder);
            std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
            let text = match content.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => content.get("json").unwrap_or(&Value::Null).to_string(),
            };
            std::fs::write(&path, text).map_err(|error| error.to_string())?;
        }
        Ok(())
    };
    let here = dir.join("hooks");
    if let Some(dirs) = test.get("dirs").and_then(Value::as_object) {
        for (name, files) in dirs {
            write_all(&dir.join(name), files)?;
        }
        let named = |key: &str| Some(dir.join(test.get("config")?.get(key)?.as_str()?).into_os_string());
        return Ok((named("hooks_dir"), named("env")));
    }
    match test.get("files") {
        Some(files) => write_all(&here, files)?,
        None => write_all(&here, &json!({"hooks.json": {"json": test.get("hooks").unwrap_or(&json!([]))}}))?,
    }
    Ok((Some(here.into_os_string()), None))
}

fn build(
    test: &Value,
    configured: Option<OsString>,
    environment: Option<OsString>,
    seen: &Arc<Mutex<Vec<Seen>>>,
    ran: &Arc<Mutex<Vec<String>>>,
) -> Result<ChatService, String> {
    let model = Answers::default();
    let answers = list(test, "provider").iter().map(|a| a.as_array().cloned().unwrap_or_default()).collect();
    model.set(answers, false);
    let max_resends = test.get("options").and_then(|o| o.get("max_resends")).and_then(Value::as_u64);
    let watcher = seen.clone();
    let mut builder = ChatService::builder(model)
        .environment(move |name| if name == HOOKS_DIR_VARIABLE { environment.clone() } else { None })
        .max_resends(max_resends.and_then(|max| u32::try_from(max).ok()).unwrap_or(u32::MAX))
        .observer(move |event| {
            if let Some(one) = see(event) {
                watcher.lock().unwrap_or_else(PoisonError::into_inner).push(one);
            }
        });
    if let Some(path) = configured {
        builder = builder.hooks_dir(path);
    }
    for (name, outcome) in test.get("tools").and_then(Value::as_object).into_iter().flatten() {
        builder = builder.tool(Played::new(name, outcome, ran.clone()));
    }
    builder.build().map_err(|error| error.to_string())
}

fn see(event: &ChatEvent<'_>) -> Option<Seen> {
    match *event {
        ChatEvent::Request { messages } => Some(Seen::Request(messages.to_vec())),
        ChatEvent::Log { level, text, .. } => {
            Some(Seen::Log { text: text.to_owned(), level: level.as_str().to_owned() })
        }
        ChatEvent::Queued { message, .. } => Some(Seen::Queued(message.clone())),
        ChatEvent::Interrupt { resend, .. } => Some(Seen::Plain(json!({"interrupt": {"resend": resend}}))),
        ChatEvent::Resend { .. } => Some(Seen::Plain(json!({"resend": true}))),
        _ => None,
    }
}

fn steps(test: &Value, service: &ChatService) -> Result<Vec<Result<Outcome, SendError>>, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|e| e.to_string())?;
    let mut outcomes = Vec::new();
    for step in list(test, "session") {
        if let Some(message) = step.get("chat") {
            service.add_message(role(message)?, content(message));
        } else if let Some(message) = step.get("queue") {
            service.queue_message(role(message)?, content(message));
        } else if let Some(chunk) = step.get("stream") {
            // without a request there is nothing to interrupt
            let _ = service.tell(&WatchEvent::Chunk(as_chunk(chunk)?));
        } else if let Some(tool) = step.get("tool") {
            run_tool(tool, service);
        } else if step.get("send").is_some() {
            outcomes.push(runtime.block_on(service.send()));
        } else {
            return Err(format!("unknown step {step}"));
        }
    }
    Ok(outcomes)
}

pub(super) fn role(message: &Value) -> Result<Role, String> {
    let word = message.get("role").and_then(Value::as_str).unwrap_or_default();
    Role::from_word(word).ok_or_else(|| format!("unknown role {word:?}"))
}

pub(super) fn content(message: &Value) -> &str {
    message.get("content").and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn as_chunk(chunk: &Value) -> Result<Chunk<'_>, String> {
    let text = |key: &str| chunk.get(key).and_then(Value::as_str);
    let whole = text("text").unwrap_or_default();
    match text("type") {
        Some("content") => Ok(Chunk::Content(whole)),
        Some("reasoning") => Ok(Chunk::Reasoning(whole)),
        Some("tool_call_delta") => Ok(Chunk::ToolCallDelta {
            index: chunk
                .get("index")
                .and_then(Value::as_u64)
                .and_then(|i| u32::try_from(i).ok())
                .unwrap_or(0),
            id: text("toolCallId"),
            text: whole,
        }),
        Some("finish") => Ok(Chunk::Finish { reason: text("finishReason").unwrap_or_default() }),
        other => Err(format!("unknown chunk type {other:?}")),
    }
}

/// One tool run without a request: before, then after or error.
pub(super) fn run_tool(tool: &Value, service: &ChatService) {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let empty = json!({});
    let args = tool.get("args").unwrap_or(&empty);
    let run = |outcome| ToolRun { name, args, outcome };
    let stopped = service.tell(&WatchEvent::Tool(run(ToolOutcome::Before))).block.map(|block| block.reason);
    let error = stopped.as_deref().or(tool.get("error").and_then(Value::as_str));
    let outcome = match (error, tool.get("result")) {
        (Some(error), _) => ToolOutcome::Error(error),
        (None, Some(result)) => ToolOutcome::Result(result),
        (None, None) => return,
    };
    // the tool is done: there is nothing left to stop
    let _ = service.tell(&WatchEvent::Tool(run(outcome)));
}

fn effects(want: &[Value], got: &[Seen]) -> Result<(), String> {
    for (at, want) in want.iter().enumerate() {
        let got = got.get(at).ok_or_else(|| format!("effect {at}: wanted {want}, got nothing"))?;
        effect_matches(want, got).map_err(|why| format!("effect {at}: {why}"))?;
    }
    match got.get(want.len()) {
        Some(more) => Err(format!("effect {} was not expected: {}", want.len(), shown(more))),
        None => Ok(()),
    }
}

fn effect_matches(want: &Value, got: &Seen) -> Result<(), String> {
    match got {
        Seen::Plain(got) if want == got => Ok(()),
        Seen::Log { text, level } if want.get("log").is_some() => {
            matches(want.get("log").unwrap_or(&Value::Null), text)?;
            match want.get("level") {
                Some(wanted) if wanted != level => Err(format!("wanted level {wanted}, got {level}")),
                _ => Ok(()),
            }
        }
        Seen::Queued(message) if want.get("queued").is_some() => {
            message_matches(want.get("queued").unwrap_or(&Value::Null), message)
        }
        Seen::Request(messages) if want.get("request").is_some() => {
            messages_match(list(want, "request"), messages)
        }
        other => Err(format!("wanted {want}, got {}", shown(other))),
    }
}

fn shown(seen: &Seen) -> String {
    match seen {
        Seen::Plain(value) => value.to_string(),
        Seen::Log { text, level } => format!("{level} {text:?}"),
        Seen::Queued(message) => format!("queued {}: {}", message.role, message.content),
        Seen::Request(messages) => format!("request of {} messages", messages.len()),
    }
}

fn load_errors(want: &[Value], service: &ChatService) -> Result<(), String> {
    let got: Vec<String> = service.status().problems.iter().map(ToString::to_string).collect();
    if want.len() != got.len() {
        return Err(format!("wanted {} load errors, got {got:?}", want.len()));
    }
    for (want, got) in want.iter().zip(&got) {
        mentions(want, got)?;
    }
    Ok(())
}

fn mentions(want: &Value, got: &str) -> Result<(), String> {
    match list(want, "mentions").iter().filter_map(Value::as_str).find(|word| !got.contains(word)) {
        Some(word) => Err(format!("the error {got:?} does not mention {word:?}")),
        None => Ok(()),
    }
}

fn loaded(want: &[Value], service: &ChatService) -> Result<(), String> {
    let hooks = service.json_hooks();
    let got: Vec<Value> = hooks.iter().map(|h| json!({"label": h.label, "target": h.target})).collect();
    if want == got { Ok(()) } else { Err(format!("loaded: wanted {want:?}, got {got:?}")) }
}

fn sends(want: &[Value], got: &[Result<Outcome, SendError>]) -> Result<(), String> {
    if want.len() != got.len() {
        return Err(format!("wanted {} sends, got {}", want.len(), got.len()));
    }
    for (want, got) in want.iter().zip(got) {
        match (want, got) {
            (Value::String(word), Ok(Outcome::Answered(_))) if word == "ok" => {}
            (Value::String(word), Ok(Outcome::Interrupted { .. })) if word == "interrupted" => {}
            (Value::Object(error), Err(got)) if error.contains_key("error") => {
                mentions(error.get("error").unwrap_or(&Value::Null), &got.to_string())?;
            }
            _ => return Err(format!("send: wanted {want}, got {got:?}")),
        }
    }
    Ok(())
}

fn distinct_ids(seen: &[Seen]) -> Result<(), String> {
    let mut ids = std::collections::HashSet::new();
    for one in seen {
        if let Seen::Queued(ChatMessage { tool_call_id: Some(id), .. }) = one
            && !ids.insert(id)
        {
            return Err(format!("the id {id} was used twice"));
        }
    }
    Ok(())
}
