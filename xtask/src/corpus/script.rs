//! The script-sandbox vectors (`conformance/script-sandbox/README.md` describes a line).

use super::{TIME_FACTOR, Verdict};
use hookgate_core::facts::{Facts, GateEvent, Head};
use hookgate_core::handler::{
    Answer, Call, Fallback, Fault, HandlerKind, HandlerSpec, Mode, ScriptText, Withholds,
};
use hookgate_handlers::script::{Pool, PoolSettings, WORKER_WORD, WorkerProgram, maker};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The call that must still work after every vector.
const AFTER: &str = r#"function handle(event) {
  if (event.toolName === "exec") {
    var line = event.toolInput.command || "";
    if (/\brm\s+-[a-z]*r[a-z]*f|\bmkfs\b|\bdd\s+if=/.test(line)) {
      return { decision: "block", reason: "destructive command" };
    }
  }
  return { decision: "allow" };
}"#;

/// What a call came to.
struct Seen {
    decision: String,
    answer: Answer,
    error: String,
}

/// The program to start as a worker, where it is not this one.
static WORKER: OnceLock<PathBuf> = OnceLock::new();

/// Names the program that workers are made of. A test must, because its own program is none; the first one counts.
pub fn use_worker(program: PathBuf) {
    let _ = WORKER.set(program);
}

/// The program that plays a step beside others.
pub(super) fn worker_program() -> Result<PathBuf, String> {
    match WORKER.get() {
        Some(path) => Ok(path.clone()),
        None => std::env::current_exe().map_err(|error| error.to_string()),
    }
}

/// The workers of all vectors and cases.
pub(super) fn pool() -> Result<Arc<Pool>, String> {
    static POOL: OnceLock<Arc<Pool>> = OnceLock::new();
    let program = match WORKER.get() {
        Some(path) => WorkerProgram { path: path.clone(), args: vec![WORKER_WORD.into()] },
        None => WorkerProgram::this().map_err(|error| error.to_string())?,
    };
    Ok(POOL.get_or_init(|| Pool::new(PoolSettings::new(program))).clone())
}

/// Plays a vector.
pub(super) fn run(test: &Value) -> Verdict {
    match play(test) {
        Ok(()) => Verdict::Passed,
        Err(why) => Verdict::Failed(why),
    }
}

fn play(test: &Value) -> Result<(), String> {
    let limits = test.get("limits").unwrap_or(&Value::Null);
    let time = limits.get("time_ms").and_then(Value::as_u64).unwrap_or(200);
    let memory = limits.get("memory_bytes").and_then(Value::as_u64).unwrap_or(16 << 20);
    let calls = test.get("calls").and_then(Value::as_u64).unwrap_or(1);
    let expect = test.get("expect").ok_or("no `expect`")?;
    let event = event(test)?;
    let before = resident();
    let began = Instant::now();
    let mut reasons = Vec::new();
    for _ in 0..calls {
        let seen = ask(&source(test)?, &event, time, memory)?;
        compare(expect, &seen)?;
        if let Some(most) = test.get("reason_max_chars").and_then(Value::as_u64) {
            at_most("reason", &seen.answer.reason.clone().unwrap_or_default(), most)?;
        }
        reasons.push(seen.answer.reason);
    }
    if test.get("same_reason").and_then(Value::as_bool) == Some(true)
        && reasons.iter().any(|r| r != reasons.first().unwrap_or(&None))
    {
        return Err(format!("different reasons: {reasons:?}"));
    }
    let most =
        Duration::from_millis(time.saturating_mul(calls).saturating_add(1500)).saturating_mul(TIME_FACTOR);
    if began.elapsed() > most {
        return Err(format!("took {:?}, more than {most:?}", began.elapsed()));
    }
    let grown = resident().saturating_sub(before);
    if grown > memory.saturating_mul(8) {
        return Err(format!("the process grew by {grown} bytes"));
    }
    if let Some(then) = test.get("then") {
        let mut other = event.clone();
        if let Some(event) = other.as_object_mut() {
            event.insert("tenantId".into(), "another".into());
        }
        let seen = ask(&source(then)?, &other, time, memory)?;
        compare(then.get("expect").ok_or("no `then.expect`")?, &seen)
            .map_err(|why| format!("then: {why}"))?;
    }
    let calm = json!({"event": "pre_tool_use", "toolName": "exec", "toolInput": {"command": "ls -la"}});
    let seen = ask(AFTER, &calm, 5000, 16 << 20)?;
    compare(&json!({"decision": "allow"}), &seen).map_err(|why| format!("the next call: {why}"))
}

fn source(test: &Value) -> Result<String, String> {
    let mut source = test.get("source").and_then(Value::as_str).unwrap_or_default().to_owned();
    for part in test.get("source_parts").and_then(Value::as_array).into_iter().flatten() {
        let text = part.get(0).and_then(Value::as_str).ok_or("a part without text")?;
        let times = part.get(1).and_then(Value::as_u64).ok_or("a part without a number")?;
        source.push_str(&text.repeat(usize::try_from(times).map_err(|e| e.to_string())?));
    }
    if let Some(bytes) = test.get("pad_to_bytes").and_then(Value::as_u64) {
        let bytes = usize::try_from(bytes).map_err(|e| e.to_string())?;
        source.push_str(&" ".repeat(bytes.saturating_sub(source.len())));
    }
    Ok(source)
}

fn event(test: &Value) -> Result<Value, String> {
    let mut event = test.get("event").cloned().ok_or("no `event`")?;
    let Some(fill) = test.get("event_fill") else { return Ok(event) };
    let mut place = &mut event;
    for step in fill.get("path").and_then(Value::as_array).into_iter().flatten() {
        place = place.get_mut(step.as_str().unwrap_or_default()).ok_or("no place to fill")?;
    }
    let count = fill.get("count").and_then(Value::as_u64).unwrap_or(0);
    let text = fill.get("char").and_then(Value::as_str).unwrap_or_default();
    *place = text.repeat(usize::try_from(count).map_err(|e| e.to_string())?).into();
    Ok(event)
}

/// One call, as the dispatcher makes it.
fn ask(source: &str, event: &Value, time: u64, memory: u64) -> Result<Seen, String> {
    let within = Duration::from_millis(time);
    let kind = HandlerKind::Script {
        text: ScriptText::Inline(source.to_owned()),
        memory_mb: Some(memory.div_ceil(1 << 20)),
    };
    let (on_timeout, on_error) = (Fallback::Block, Fallback::Block);
    let spec = HandlerSpec {
        kind,
        timeout: within,
        on_timeout,
        on_error,
        mode: Mode::Append,
        withholds: Withholds::default(),
    };
    let handler = match maker(pool()?)(&spec, Path::new(".")) {
        Ok(handler) => handler,
        Err(error) => return Ok(Seen { decision: "error".into(), answer: Answer::default(), error }),
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let facts = facts(event);
    let (json, hook) = (event.to_string(), "vector".into());
    let call = Call { facts: &facts, json: &json, within, hook: &hook };
    let asked = runtime.block_on(async { tokio::time::timeout(within, handler.ask(call)).await });
    Ok(match asked.unwrap_or(Err(Fault::Timeout)) {
        Ok(answer) => {
            Seen { decision: answer.decision.clone().unwrap_or_default(), answer, error: String::new() }
        }
        Err(Fault::Timeout) => {
            Seen { decision: "timeout".into(), answer: Answer::default(), error: String::new() }
        }
        Err(Fault::Failed { detail, .. }) => {
            Seen { decision: "error".into(), answer: Answer::default(), error: detail }
        }
    })
}

fn facts(event: &Value) -> Facts {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
    let head = Head {
        event_id: text("eventId").unwrap_or_default(),
        session_id: text("sessionId").unwrap_or_default(),
        tenant_id: text("tenantId"),
        agent_id: text("agentId"),
        ..Head::default()
    };
    let tool_name = text("toolName").unwrap_or_default();
    Facts::of_gate(&head, GateEvent::PreToolUse { tool_name, tool_input: Value::Null })
}

fn compare(expect: &Value, seen: &Seen) -> Result<(), String> {
    let Seen { decision, answer, error } = seen;
    let wanted = expect.get("decision").ok_or("no `expect.decision`")?;
    let fits = match wanted {
        Value::Array(any) => any.iter().any(|word| word == decision),
        word => word == decision,
    };
    if !fits {
        return Err(format!("wanted {wanted}, got {decision} {error} {answer:?}"));
    }
    let text = |key: &str| expect.get(key).and_then(Value::as_str);
    let reason = answer.reason.clone().unwrap_or_default();
    if text("reason").is_some_and(|wanted| wanted != reason) {
        return Err(format!("another reason: {reason:?}"));
    }
    if text("reason_contains").is_some_and(|part| !reason.contains(part)) {
        return Err(format!("another reason: {reason:?}"));
    }
    if text("error_contains").is_some_and(|part| !error.contains(part)) {
        return Err(format!("another error: {error:?}"));
    }
    at_most("error", error, expect.get("error_max_chars").and_then(Value::as_u64).unwrap_or(256))?;
    if let Some(wanted) = expect.get("updated_input") {
        let got = answer.updated_input.clone().map_or(Value::Null, Value::Object);
        if *wanted != got {
            return Err(format!("wanted the change {wanted}, got {got}"));
        }
    }
    for part in expect.get("console_contains").and_then(Value::as_array).into_iter().flatten() {
        if !answer.console.contains(part.as_str().unwrap_or_default()) {
            return Err(format!("the console lacks {part}: {:?}", answer.console));
        }
    }
    let most = expect.get("console_max_bytes").and_then(Value::as_u64).unwrap_or(4096);
    if u64::try_from(answer.console.len()).unwrap_or(u64::MAX) > most {
        return Err(format!("{} bytes of console", answer.console.len()));
    }
    Ok(())
}

fn at_most(what: &str, text: &str, most: u64) -> Result<(), String> {
    let count = text.chars().count();
    if u64::try_from(count).unwrap_or(u64::MAX) > most {
        return Err(format!("the {what} has {count} characters"));
    }
    Ok(())
}

/// Bytes of memory that this process has in use; 0 where the system does not tell.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages.saturating_mul(4096)
}
