//! Cases with agent hooks: the real chain with real handlers, programs and servers on loopback.

mod expect;
mod gzip;
mod judge;
mod names;
mod servers;
mod steps;
mod tls;
mod world;

use super::super::{Verdict, stand_in};
use serde_json::Value;
use world::World;

/// Steps that can be done here.
const STEPS: &[&str] = &["load", "event", "wait_ms", "audit", "http_log", "llm_log", "load_url"];
/// Areas whose cases are about these steps. Others have hooks only beside what they are about.
const AREAS: &[&str] = &["dispatcher", "script", "command", "http", "prompt"];

/// How a workshop says that it has no such handler.
const NOT_YET: &str = "cannot run in this version yet";

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
    let mut world = World::new(case.get("setup").unwrap_or(&empty)).await?;
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

/// Replaces the stand-ins of a step. Its own `repeat` is a number of times and no stand-in.
fn expand(step: &Value, dir: &str) -> Result<Value, String> {
    let members = step.as_object().into_iter().flatten();
    let expanded = members.map(|(key, value)| Ok((key.clone(), stand_in::expand(value, dir)?)));
    expanded.collect::<Result<_, String>>().map(Value::Object)
}
