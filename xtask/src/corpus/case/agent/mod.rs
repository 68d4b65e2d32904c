//! Cases with agent hooks: the real chain with real handlers, programs and servers on loopback.

mod expect;
mod judge;
mod names;
mod servers;
mod steps;
mod tls;
pub(super) mod trail;
pub(super) mod world;

pub(super) use world::lay_out;

use super::super::{Verdict, stand_in};
use serde_json::{Value, json};
use std::path::Path;
use world::World;

/// Steps that can be done here.
const STEPS: &[&str] =
    &["load", "event", "wait_ms", "audit", "http_log", "llm_log", "load_url", "lock_db", "processes"];
/// Areas whose cases are about these steps. Others have hooks only beside what they are about.
const AREAS: &[&str] = &["dispatcher", "script", "command", "http", "prompt", "audit"];

/// How a workshop says that it has no such handler.
const NOT_YET: &str = "cannot run here";

/// Whether a case belongs here.
pub(super) fn is_agent_case(case: &Value) -> bool {
    case.get("setup").and_then(|setup| setup.get("hooks")).is_some()
}

/// Plays a case.
pub(super) fn run(case: &Value) -> Verdict {
    let steps = case.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(why) = cannot_run(case, steps) {
        return Verdict::NotRun(why);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let played = match runtime {
        Ok(runtime) => {
            let played = runtime.block_on(play(case, steps));
            runtime.shutdown_background();
            played
        }
        Err(error) => Err(error.to_string()),
    };
    match played {
        Ok(()) => Verdict::Passed,
        Err(why) if why.contains(NOT_YET) => Verdict::NotRun(why),
        Err(why) => Verdict::Failed(why),
    }
}

fn cannot_run(case: &Value, steps: &[Value]) -> Option<String> {
    let area = case.get("area").and_then(Value::as_str).unwrap_or_default();
    if !AREAS.contains(&area) {
        return Some(format!("cases of the area `{area}` cannot run yet"));
    }
    let word = |step: &Value| step.get("do").and_then(Value::as_str).unwrap_or_default().to_owned();
    let unknown = steps.iter().map(word).find(|step| !STEPS.contains(&step.as_str()));
    let clock = steps.iter().any(|step| step.get("clock").is_some()).then(|| "clock".to_owned());
    unknown.or(clock).map(|step| format!("the step `{step}` is not built yet"))
}

async fn play(case: &Value, steps: &[Value]) -> Result<(), String> {
    let empty = Value::Null;
    let kept = (case.get("area").is_some_and(|area| area == "audit")).then_some(Path::new(""));
    let mut world = World::new(case.get("setup").unwrap_or(&empty), kept).await?;
    if !steps.iter().any(|step| step.get("do").is_some_and(|word| word == "load")) {
        world.load()?;
    }
    if let Some(problem) = world.problems.iter().find(|problem| problem.message.contains(NOT_YET)) {
        return Err(problem.message.clone());
    }
    let dir = world.dir().display().to_string();
    for (number, step) in steps.iter().enumerate() {
        let at = |why| format!("step {}: {why}", number.saturating_add(1));
        let step = expand(step, &dir).map_err(at)?;
        world.write_value_into_source(&step).map_err(at)?;
        let seen = steps::run(&mut world, &step).await.map_err(at)?;
        if let Some(expect) = step.get("expect") {
            expect::check(expect, &seen, &world).map_err(at)?;
        }
    }
    Ok(())
}

/// Plays one step beside other processes, with the store of the first: the task comes as JSON. Gives what to print.
pub(super) fn play_beside(task: &Value) -> Value {
    let member = |name: &str| task.get(name).cloned().unwrap_or_default();
    let played = async {
        let dir = member("dir");
        let mut world = World::new(&member("setup"), dir.as_str().map(Path::new)).await?;
        world.load()?;
        let seen = steps::run(&mut world, &member("step")).await?;
        Ok::<Value, String>(json!({"decision": seen.decision, "reason": seen.reason}))
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let said = runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(played));
    said.unwrap_or_else(|error| json!({"error": error}))
}

/// Replaces the stand-ins of a step. Its own `repeat` is a number of times and no stand-in.
fn expand(step: &Value, dir: &str) -> Result<Value, String> {
    let members = step.as_object().into_iter().flatten();
    let expanded = members.map(|(key, value)| match key.as_str() {
        // a step of its own, for the processes that play it
        "each" => Ok((key.clone(), value.clone())),
        _ => Ok((key.clone(), stand_in::expand(value, dir)?)),
    });
    expanded.collect::<Result<_, String>>().map(Value::Object)
}
