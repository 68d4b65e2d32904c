//! The steps of a case.

use super::super::json_hooks::{as_chunk, content, role, run_tool};
use super::expect::{Problem, Seen};
use super::world::World;
use super::{check, files};
use hookgate_chat::{ChatService, Outcome};
use hookgate_core::event::WatchEvent;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Does one step and tells what was seen.
pub(super) fn run(world: &mut World, step: &Value) -> Result<Seen, String> {
    world.take_trace();
    let started = Instant::now();
    let mut seen = Seen::default();
    match step.get("do").and_then(Value::as_str).unwrap_or_default() {
        "load" => world.load()?,
        "chat" => {
            let message = step.get("message").unwrap_or(&Value::Null);
            world.service()?.add_message(role(message)?, content(message));
        }
        "stream" => stream(world.service()?, step, &mut seen)?,
        "send" => send(world, step, &mut seen)?,
        "tool" => run_tool(step.get("call").unwrap_or(&Value::Null), world.service()?),
        "fs" => file_step(world, step)?,
        "wait_reload" => {
            world.service()?.reload();
        }
        "wait_ms" => {
            std::thread::sleep(Duration::from_millis(step.get("ms").and_then(Value::as_u64).unwrap_or(0)))
        }
        other => return Err(format!("unknown step `{other}`")),
    }
    seen.took = started.elapsed();
    look_around(world, &mut seen);
    Ok(seen)
}

/// Adds what can be seen from outside after any step.
fn look_around(world: &World, seen: &mut Seen) {
    let trace = world.take_trace();
    seen.fired = trace.fired;
    seen.log = trace.log;
    seen.files_unchanged = world.files_unchanged();
    let Ok(service) = world.service() else { return };
    seen.queued = service.queue();
    seen.loaded = service.json_hooks().into_iter().map(|hook| hook.label).collect();
    let status = service.status();
    seen.warnings = status.warnings.iter().map(ToString::to_string).collect();
    seen.degraded = status.is_degraded();
    seen.rejected = status
        .problems
        .iter()
        .map(|problem| Problem {
            file: problem.file.rsplit('/').next().unwrap_or_default().to_owned(),
            index: problem.hook.as_ref().map(|hook| hook.index),
            line: problem.place.map(|place| place.line),
            text: problem.to_string(),
        })
        .collect();
}

fn stream(service: &ChatService, step: &Value, seen: &mut Seen) -> Result<(), String> {
    let chunks = step.get("chunks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    service.end_response();
    for (number, chunk) in chunks.iter().enumerate() {
        if service.tell(&WatchEvent::Chunk(as_chunk(chunk)?)).interrupt.is_some() {
            seen.interrupted_at_chunk = Some(number + 1);
            break;
        }
    }
    service.end_response();
    Ok(())
}

fn send(world: &World, step: &Value, seen: &mut Seen) -> Result<(), String> {
    let service = world.service()?;
    for message in step.get("history").and_then(Value::as_array).into_iter().flatten() {
        service.add_message(role(message)?, content(message));
    }
    let as_chunks = |value: &Value| value.as_array().cloned().unwrap_or_default();
    match step.get("responses_repeat") {
        Some(answer) => world.model.set(vec![as_chunks(answer)], true),
        None => {
            let answers = step.get("responses").map(as_chunks).unwrap_or_default();
            world.model.set(answers.iter().map(as_chunks).collect(), false);
        }
    }
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().map_err(|e| e.to_string())?;
    match runtime.block_on(service.send()) {
        Ok(Outcome::Answered(answer)) => {
            seen.result = "ok".into();
            seen.final_text = Some(answer.text);
        }
        Ok(Outcome::Interrupted { .. }) => seen.result = "interrupted".into(),
        Ok(Outcome::Blocked { .. }) => seen.result = "blocked".into(),
        Err(error) => {
            seen.result = "error".into();
            seen.error = Some(error.to_string());
        }
    }
    seen.requests = world.model.requests();
    Ok(())
}

fn file_step(world: &mut World, step: &Value) -> Result<(), String> {
    let meanwhile = step.get("meanwhile").cloned();
    files::run(world, step, &mut || {
        let Some(inner) = &meanwhile else { return Ok(()) };
        let service = world.service()?;
        service.reload();
        let mut seen = Seen::default();
        world.take_trace();
        stream(service, inner, &mut seen)?;
        look_around(world, &mut seen);
        check(&json!({"expect": inner.get("expect")}), &seen).map_err(|why| format!("meanwhile: {why}"))
    })
}
