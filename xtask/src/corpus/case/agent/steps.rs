//! The steps of a case with agent hooks.

use super::expect::Seen;
use super::trail;
use super::world::World;
use hookgate_core::facts::{GateEvent, Head, LifeEvent, ShapeEvent};
use hookgate_core::point::{Point, Stage};
use hookgate_core::verdict::{Trace, Verdict};
use hookgate_core::word::Word;
use hookgate_handlers::http;
use serde_json::Value;
use std::time::{Duration, Instant};

/// Does one step and tells what was seen.
pub(super) async fn run(world: &mut World, step: &Value) -> Result<Seen, String> {
    let mut seen = Seen::default();
    let started = Instant::now();
    match step.get("do").and_then(Value::as_str).unwrap_or_default() {
        "load" => world.load()?,
        "event" => events(world, step, &mut seen).await?,
        "wait_ms" => {
            let ms = step.get("ms").and_then(Value::as_u64).unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
        }
        "load_url" => {
            let url = step.get("url").and_then(Value::as_str).unwrap_or_default();
            seen.refused = http::check_url(url, world.allow_private, &*world.names).await.is_err();
        }
        "lock_db" => {
            let ms = step.get("ms").and_then(Value::as_u64).unwrap_or(0);
            world.trail.as_ref().ok_or("there is no store to lock")?.lock(Duration::from_millis(ms))?;
        }
        "processes" => {
            let setup = world.setup.clone();
            seen.processes = trail::processes(&setup, step, world.dir())?;
        }
        "audit" | "http_log" | "llm_log" => {}
        other => return Err(format!("unknown step `{other}`")),
    }
    seen.took = started.elapsed();
    Ok(seen)
}

/// Dispatches an event, as often as the step says; what is seen is the last.
async fn events(world: &World, step: &Value, seen: &mut Seen) -> Result<(), String> {
    let written = step.get("event").ok_or("no `event`")?;
    let known = world.memory.records().len();
    let memory_before = resident_mb();
    for number in 0..step.get("repeat").and_then(Value::as_u64).unwrap_or(1) {
        let text = written.to_string().replace("{i}", &number.to_string());
        let event: Value = if text.contains("{i}") || step.get("repeat").is_some() {
            serde_json::from_str(&text).map_err(|error| error.to_string())?
        } else {
            written.clone()
        };
        seen.trace = Trace::default();
        dispatch(world, &event, seen).await?;
    }
    seen.rss_growth_mb = resident_mb().saturating_sub(memory_before);
    seen.records = world.memory.records().split_off(known.min(world.memory.records().len()));
    Ok(())
}

async fn dispatch(world: &World, event: &Value, seen: &mut Seen) -> Result<(), String> {
    let text = |key: &str| event.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let value = |key: &str| event.get(key).cloned().unwrap_or_default();
    let name = text("hookEvent");
    let point = Point::from_word(&name).ok_or_else(|| format!("unknown event `{name}`"))?;
    let tool_input = match event.get("toolInput_raw").and_then(Value::as_str) {
        Some(raw) => serde_json::from_str(raw).map_err(|error| format!("toolInput_raw: {error}"))?,
        None => value("toolInput"),
    };
    let (head, tool_name) = (head(event), text("toolName"));
    seen.final_input = tool_input.clone();
    let around = &world.around;
    if point.stage() == Stage::Watch {
        let event = match point {
            Point::SessionStart => LifeEvent::SessionStart,
            Point::PostToolUse => {
                LifeEvent::PostToolUse { tool_name, tool_input, tool_output: value("toolOutput") }
            }
            Point::ToolError => LifeEvent::ToolError { tool_name, tool_input, error: text("error") },
            Point::Stop => LifeEvent::Stop,
            Point::SessionEnd => LifeEvent::SessionEnd,
            Point::SubagentStop => LifeEvent::SubagentStop { subagent: value("subagent") },
            other => return Err(format!("a case cannot fire `{other}`")),
        };
        world.watchers.submit(world.dispatcher.watch(&head, event));
        seen.decision = "allow";
        return Ok(());
    }
    let gate = match point {
        Point::UserPromptSubmit => GateEvent::UserPromptSubmit { raw_input: text("prompt") },
        Point::SubagentStart => GateEvent::SubagentStart { subagent: value("subagent") },
        Point::PreToolUse => GateEvent::PreToolUse { tool_name, tool_input },
        _ => {
            let event = ShapeEvent::PreResponse { response: text("response") };
            seen.trace = world.dispatcher.shape(around, &head, event).await.trace;
            seen.decision = "allow";
            return Ok(());
        }
    };
    let ruling = world.dispatcher.ask(around, &head, gate).await;
    seen.decision = "allow";
    if let Verdict::Block(block) = ruling.verdict {
        seen.decision = "block";
        (seen.reason, seen.blocked_by) = (block.reason, block.by.to_string());
    }
    if let Some((_, changed)) = ruling.updated.into_iter().find(|(name, _)| name == "toolInput") {
        seen.final_input = changed;
    }
    seen.trace = ruling.trace;
    Ok(())
}

fn head(event: &Value) -> Head {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let agent = event.get("agent");
    let of_agent = |key: &str| agent.and_then(|agent| agent.get(key));
    // the caller's place in the tree: a root has no parent, a child's parent is the root
    let depth = match (of_agent("parent"), of_agent("root")) {
        (None, _) => 0,
        (parent, root) if parent == root => 1,
        _ => 2,
    };
    Head {
        event_id: text(event.get("eventId")).unwrap_or_default(),
        session_id: text(event.get("sessionId")).unwrap_or_default(),
        tenant_id: text(event.get("tenant")),
        agent_id: text(of_agent("id")),
        depth,
        ..Head::default()
    }
}

/// Memory of this process, in MiB.
fn resident_mb() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_ascii_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    pages.saturating_mul(4) / 1024
}
