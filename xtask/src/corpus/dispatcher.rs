//! The dispatcher vectors (`conformance/dispatcher/README.md` describes a line).

use super::{TIME_FACTOR, Verdict};
use futures_util::FutureExt;
use hookgate_core::action::ActionKinds;
use hookgate_core::define::{self, Problem};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::Surroundings;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_core::hook::{Hook, Source, Work};
use hookgate_core::record::{Memory, Record};
use hookgate_core::set::HookSet;
use hookgate_core::verdict::{Trace, Verdict as Ruled};
use hookgate_core::word::Word;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::Loaded;
use hookgate_handlers::script;
use hookgate_handlers::workshop::Workshop;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What the last firing gave.
#[derive(Default)]
struct Seen {
    decision: &'static str,
    reason: String,
    updated: Map<String, Value>,
    append: Vec<String>,
    send: Vec<String>,
    trace: Trace,
    took: Duration,
    records: Vec<Record>,
}

/// Plays a vector.
pub(super) fn run(test: &Value) -> Verdict {
    match play(test) {
        Ok(verdict) => verdict,
        Err(why) => Verdict::Failed(why),
    }
}

fn play(test: &Value) -> Result<Verdict, String> {
    let expect = test.get("expect").ok_or("no `expect`")?;
    let hooks = list(test, "hooks");
    let (loaded, problems) = load(hooks);
    if let Some(want) = expect.get("load_error") {
        return load_error(want, &problems).map(|()| Verdict::Passed);
    }
    if let Some(problem) = problems.first() {
        return if problem.message.contains("cannot run in this version") {
            Ok(Verdict::NotRun(problem.message.clone()))
        } else {
            Err(format!("not loaded: {problem}"))
        };
    }
    let set = HookSet::new(loaded).map_err(|problem| problem.to_string())?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    let times = test.get("fire_times").and_then(Value::as_u64).unwrap_or(1);
    let event = test.get("event").ok_or("no `event`")?;
    let seen = runtime.block_on(fire(&Dispatcher::new(set), event, times))?;
    compare(expect, &seen)?;
    Ok(Verdict::Passed)
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Reads the hooks as a file would hold them. Source and stub handlers exist only in vectors: they are put in place
/// afterwards.
fn load(hooks: &[Value]) -> (Vec<Hook>, Vec<Problem>) {
    let mut loaded = Loaded::default();
    for (index, hook) in hooks.iter().enumerate() {
        let mut text = hook.clone();
        let source = match hook.get("source").and_then(Value::as_str) {
            Some("builtin") => Source::Builtin,
            _ => Source::User,
        };
        if let Some(members) = text.as_object_mut() {
            members.remove("source");
            if source == Source::User {
                members.remove("mutable_fields");
            }
            if is_stub(hook) {
                members.insert("handler".into(), json!({"type": "script", "source": "stub"}));
            }
        }
        let read = define::read("hooks.json", &text.to_string(), source, &ActionKinds::standard());
        loaded.problems.extend(read.problems);
        for mut made in read.hooks {
            made.index = index;
            if let Work::Handler { run, .. } = &mut made.work
                && is_stub(hook)
            {
                *run = Some(Arc::new(Stub(hook.get("handler").cloned().unwrap_or_default())));
            }
            loaded.hooks.push(made);
        }
    }
    let equipped = workshop().equip(loaded);
    (equipped.hooks, equipped.problems)
}

fn workshop() -> Workshop {
    let Ok(pool) = super::script::pool() else { return Workshop::empty() };
    Workshop::empty().with(HandlerType::Script, script::maker(pool))
}

fn is_stub(hook: &Value) -> bool {
    hook.get("handler").and_then(|handler| handler.get("type")).is_some_and(|kind| kind == "stub")
}

/// Waits, then fails or answers.
#[derive(Debug)]
struct Stub(Value);

impl Handler for Stub {
    fn ask<'a>(&'a self, _call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let text = |key: &str| self.0.get(key).and_then(Value::as_str).map(str::to_owned);
        async move {
            if let Some(ms) = self.0.get("sleep_ms").and_then(Value::as_u64) {
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            if let Some(error) = text("error") {
                return Err(Fault::failed("it failed", error));
            }
            Ok(Answer {
                decision: text("decision"),
                reason: text("reason"),
                updated_input: self.0.get("updated_input").and_then(Value::as_object).cloned(),
                additions: text("output").map(|output| (None, output)).into_iter().collect(),
                ..Answer::default()
            })
        }
        .boxed()
    }
}

async fn fire(dispatcher: &Dispatcher, event: &Value, times: u64) -> Result<Seen, String> {
    let memory = Arc::new(Memory::new(1000));
    let around = Surroundings {
        timer: Arc::new(TokioTimer::new()),
        recorder: memory.clone(),
        budget: Duration::from_secs(30),
    };
    let mut seen = Seen::default();
    for _ in 0..times {
        let started = Instant::now();
        seen = fire_once(dispatcher, &around, event, started).await?;
    }
    seen.records = memory.records();
    Ok(seen)
}

async fn fire_once(
    dispatcher: &Dispatcher,
    around: &Surroundings,
    event: &Value,
    started: Instant,
) -> Result<Seen, String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).map(str::to_owned);
    let value = |key: &str| event.get(key).cloned().unwrap_or_default();
    let head = Head {
        event_id: text("eventId").unwrap_or_default(),
        session_id: text("sessionId").unwrap_or_default(),
        tenant_id: text("tenantId"),
        agent_id: text("agentId"),
        depth: event.get("depth").and_then(Value::as_u64).and_then(|d| u32::try_from(d).ok()).unwrap_or(0),
        ..Head::default()
    };
    let tool_name = text("toolName").unwrap_or_default();
    let gate = match text("event").unwrap_or_default().as_str() {
        "user_prompt_submit" => {
            GateEvent::UserPromptSubmit { raw_input: text("rawInput").unwrap_or_default() }
        }
        "pre_tool_use" => GateEvent::PreToolUse { tool_name, tool_input: value("toolInput") },
        "subagent_start" => GateEvent::SubagentStart { subagent: value("subagent") },
        "pre_response" => {
            let event = ShapeEvent::PreResponse { response: text("response").unwrap_or_default() };
            let additions = dispatcher.shape(around, &head, event).await;
            let took = started.elapsed();
            let (append, send) = (additions.append, additions.send);
            return Ok(Seen {
                decision: "allow",
                append,
                send,
                trace: additions.trace,
                took,
                ..Seen::default()
            });
        }
        other => {
            let event = match other {
                "post_tool_use" => LifeEvent::PostToolUse {
                    tool_name,
                    tool_input: value("toolInput"),
                    tool_output: value("toolOutput"),
                },
                "stop" => LifeEvent::Stop,
                "subagent_stop" => LifeEvent::SubagentStop { subagent: value("subagent") },
                other => return Err(format!("unknown event `{other}`")),
            };
            let work = dispatcher.watch(&head, event);
            let took = started.elapsed();
            let mut trace = Trace::default();
            for watch in work {
                let one = watch.run(around).await;
                trace.ran.extend(one.ran);
                trace.warnings.extend(one.warnings);
            }
            return Ok(Seen { decision: "allow", trace, took, ..Seen::default() });
        }
    };
    let ruling = dispatcher.ask(around, &head, gate).await;
    let took = started.elapsed();
    let (decision, reason) = match ruling.verdict {
        Ruled::Allow => ("allow", String::new()),
        Ruled::Block(block) => ("block", block.reason),
    };
    let updated = ruling.updated.into_iter().collect();
    Ok(Seen { decision, reason, updated, trace: ruling.trace, took, ..Seen::default() })
}

fn load_error(want: &Value, problems: &[Problem]) -> Result<(), String> {
    let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
    let named = |key: &str| want.get(key).and_then(Value::as_str).unwrap_or_default();
    let found = problems.iter().any(|problem| {
        let field = problem.field.as_deref().unwrap_or_default();
        let hook = problem.hook.as_ref().and_then(|hook| hook.label.as_deref()).unwrap_or_default();
        hook == named("hook")
            && (field == named("field") || field.starts_with(&format!("{}.", named("field"))))
    });
    if found { Ok(()) } else { Err(format!("wanted the load error {want}, got {texts:?}")) }
}

fn compare(expect: &Value, seen: &Seen) -> Result<(), String> {
    for (key, want) in expect.as_object().into_iter().flatten() {
        one(key, want, seen).map_err(|why| format!("`{key}`: {why}"))?;
    }
    Ok(())
}

fn one(key: &str, want: &Value, seen: &Seen) -> Result<(), String> {
    let ran: Vec<&str> = seen.trace.ran.iter().map(|ran| &*ran.hook).collect();
    match key {
        "decision" => equal(want, json!(seen.decision)),
        "reason_contains" => {
            holds(seen.reason.contains(want.as_str().unwrap_or_default()), want, &seen.reason)
        }
        "reason_excludes" => holds(!seen.reason.contains(want.as_str().unwrap_or("?")), want, &seen.reason),
        "ran" => equal(want, json!(ran)),
        "not_run" => {
            let wrong = want.as_array().into_iter().flatten().find(|id| ran.iter().any(|ran| *id == ran));
            holds(wrong.is_none(), want, &ran.join(", "))
        }
        "updated_input" => match want {
            Value::Null => holds(seen.updated.is_empty(), want, &format!("{:?}", seen.updated)),
            _ => equal(want, Value::Object(seen.updated.clone())),
        },
        "append" => equal(want, json!(seen.append)),
        "extra_messages" => equal(want, json!(seen.send)),
        "audit" => audit(want, &seen.records),
        "warnings" => {
            let got: Vec<Value> = seen
                .trace
                .warnings
                .iter()
                .map(|w| json!({"hook": *w.hook, "code": w.code.as_str()}))
                .collect();
            equal(want, json!(got))
        }
        "max_ms" => {
            let limit = Duration::from_millis(want.as_u64().unwrap_or(0)) * TIME_FACTOR;
            holds(seen.took <= limit, want, &format!("{:?}", seen.took))
        }
        _ => Err("the runner does not know this key".into()),
    }
}

fn equal(want: &Value, got: Value) -> Result<(), String> {
    if *want == got { Ok(()) } else { Err(format!("wanted {want}, got {got}")) }
}

fn holds(fine: bool, want: &Value, got: &str) -> Result<(), String> {
    if fine { Ok(()) } else { Err(format!("wanted {want}, got {got:?}")) }
}

fn audit(want: &Value, got: &[Record]) -> Result<(), String> {
    let want = want.as_array().map(Vec::as_slice).unwrap_or_default();
    if want.len() != got.len() {
        return Err(format!("wanted {} rows, got {got:?}", want.len()));
    }
    want.iter().zip(got).try_for_each(|(want, got)| row(want, got))
}

fn row(want: &Value, got: &Record) -> Result<(), String> {
    let error = got.error.as_deref().unwrap_or_default();
    let whole = format!("{got:?}");
    let excludes = |words: &Value, text: &str| {
        let words = words.as_array().cloned().unwrap_or_default();
        !words.iter().filter_map(Value::as_str).any(|word| text.contains(word))
    };
    for (key, value) in want.as_object().into_iter().flatten() {
        let fine = match key.as_str() {
            "hook" => *value == *got.hook,
            "decision" => *value == got.decision.as_str(),
            "input_hash" => *value == got.input_hash.to_string(),
            "error_max_chars" => error.chars().count() as u64 <= value.as_u64().unwrap_or(0),
            "error_excludes" => excludes(value, error),
            "row_excludes" => excludes(value, &whole),
            _ => return Err(format!("the runner does not know the row key `{key}`")),
        };
        holds(fine, &json!({key.as_str(): value}), &whole)?;
    }
    Ok(())
}
