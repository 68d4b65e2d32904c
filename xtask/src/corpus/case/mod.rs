//! Cases (`cases/README.md` describes a file): a set-up, steps, and what must come out of each.

mod adapter;
mod agent;
mod expect;
mod files;
mod gateway;
mod steps;
mod world;

use super::{Verdict, stand_in};
use expect::Seen;
use serde_json::Value;
use std::io::Write;
use std::process::ExitCode;
use world::World;

/// Steps that this runner can do. A case with another one is reported as not run.
const STEPS: &[&str] = &["load", "chat", "stream", "send", "tool", "fs", "wait_reload", "wait_ms"];

/// Whether this process was started to be the program `hookgate` in a case of an adapter.
pub fn is_program() -> bool {
    adapter::is_program()
}

/// Is the program.
pub fn program() -> ExitCode {
    adapter::program()
}

/// Whether this process was started to play a step of a case beside others.
pub fn is_case_process() -> bool {
    std::env::args().nth(1).is_some_and(|word| word == agent::trail::PROCESS_WORD)
}

/// Plays the step that comes on standard input and prints what was seen.
pub fn case_process() -> ExitCode {
    let task = serde_json::from_reader(std::io::stdin().lock()).unwrap_or_default();
    match writeln!(std::io::stdout().lock(), "{}", agent::play_beside(&task)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Plays a case.
pub(super) fn run(case: &Value) -> Verdict {
    if case.get("area").is_some_and(|area| area == "gateway") {
        return gateway::run(case);
    }
    if case.get("area").is_some_and(|area| area == "adapters") {
        return adapter::run(case);
    }
    if agent::is_agent_case(case) {
        return agent::run(case);
    }
    let steps = case.get("steps").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    if let Some(why) = cannot_run(case, steps) {
        return Verdict::NotRun(why);
    }
    match play(case, steps) {
        Ok(()) => Verdict::Passed,
        Err(why) => Verdict::Failed(why),
    }
}

fn cannot_run(case: &Value, steps: &[Value]) -> Option<String> {
    let word = |step: &Value| step.get("do").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(step) = steps.iter().map(word).find(|step| !STEPS.contains(&step.as_str())) {
        return Some(format!("the step `{step}` is not built yet"));
    }
    let setup = case.get("setup")?;
    let unknown = ["upstream", "server", "llm", "http"].into_iter().find(|key| setup.get(*key).is_some());
    unknown.map(|key| format!("the set-up `{key}` is not built yet"))
}

fn play(case: &Value, steps: &[Value]) -> Result<(), String> {
    let empty = Value::Null;
    let mut world = World::new(case.get("setup").unwrap_or(&empty))?;
    let loads_itself = steps.iter().any(|step| step.get("do").is_some_and(|word| word == "load"));
    if !loads_itself {
        world.load()?;
    }
    for (number, step) in steps.iter().enumerate() {
        let step = stand_in::expand(step, &world.dir())?;
        let seen = steps::run(&mut world, &step).map_err(|why| format!("step {}: {why}", number + 1))?;
        check(&step, &seen).map_err(|why| format!("step {}: {why}", number + 1))?;
    }
    Ok(())
}

/// Compares what a step did with its `expect`.
fn check(step: &Value, seen: &Seen) -> Result<(), String> {
    match step.get("expect") {
        Some(expect) => expect::check(expect, seen),
        None => Ok(()),
    }
}
