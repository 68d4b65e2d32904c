//! Compares what a step did with what a case expects. Every key must hold; `any_of` holds when one entry holds.

use super::super::super::TIME_FACTOR;
use super::super::expect::{any_of, contains, equal};
use super::judge::Parts;
use super::trail;
use super::world::World;
use hookgate_core::record::Record;
use hookgate_core::verdict::Trace;
use hookgate_core::word::Word;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// What can be seen after a step.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) took: Duration,
    pub(super) decision: &'static str,
    pub(super) reason: String,
    pub(super) blocked_by: String,
    pub(super) final_input: Value,
    pub(super) trace: Trace,
    pub(super) records: Vec<Record>,
    pub(super) refused: bool,
    pub(super) rss_growth_mb: u64,
    /// What each of several processes said.
    pub(super) processes: Vec<Value>,
}

pub(super) fn check(expect: &Value, seen: &Seen, world: &World) -> Result<(), String> {
    for (key, want) in expect.as_object().into_iter().flatten() {
        one(key, want, seen, world).map_err(|why| format!("`{key}`: {why}"))?;
    }
    Ok(())
}

fn one(key: &str, want: &Value, seen: &Seen, world: &World) -> Result<(), String> {
    // a second record of the same hook and event is dropped, so the chain's word comes first
    let of_chain = seen.trace.ran.last().map(|ran| ran.decision.as_str());
    let recorded = || of_chain.or(seen.records.last().map(|record| record.decision.as_str()));
    let ran: Vec<&str> = seen.trace.ran.iter().map(|ran| &*ran.hook).collect();
    let limit = || Duration::from_millis(want.as_u64().unwrap_or(0));
    match key {
        "any_of" => any_of(want, |entry| check(entry, seen, world)),
        "decision" => equal(want, json!(seen.decision)),
        "blocked_by" => equal(want, json!(seen.blocked_by)),
        "reason_contains" => contains(want, &seen.reason),
        "reason_not_contains" => no_word(want, &seen.reason),
        // with all hooks refused nothing runs and nothing is recorded
        "recorded" if world.loaded.is_empty() => equal(want, json!(seen.decision)),
        "recorded" => equal(want, json!(recorded())),
        "recorded_any" => {
            holds(list(want).iter().any(|word| word.as_str() == recorded()), want, &json!(recorded()))
        }
        "audit_error_contains" => contains(want, &errors(&seen.records)),
        "ran" => equal(want, json!(ran)),
        "not_ran" => holds(!list(want).iter().any(|id| ran.iter().any(|ran| id == ran)), want, &json!(ran)),
        "final_input" => equal(want, seen.final_input.clone()),
        "warnings_contain" => contains(want, &warnings(seen, world)),
        "max_ms" => holds(seen.took <= limit() * TIME_FACTOR, want, &json!(format!("{:?}", seen.took))),
        "min_ms" => holds(seen.took >= limit(), want, &json!(format!("{:?}", seen.took))),
        "rss_growth_mb_max" => at_most(want, usize::try_from(seen.rss_growth_mb).unwrap_or(usize::MAX)),
        "processes_left" => equal(want, json!(processes_left(world.dir()))),
        "file_absent" => {
            let there = list(want).iter().filter_map(Value::as_str).find(|name| world.path(name).exists());
            holds(there.is_none(), want, &json!(there))
        }
        "file_lines" => file_lines(want, world),
        "refused" => equal(want, json!(seen.refused)),
        "connections_to_others" | "requests" | "requests_max" | "gap_ms_min" => http_log(key, want, world),
        "calls"
        | "event_text_only_in_data_part"
        | "closing_marks_outside_data"
        | "system_part_does_not_contain" => llm_log(key, want, world),
        "all" => {
            let differs = seen.processes.iter().find(|said| said.get("decision") != want.get("decision"));
            holds(differs.is_none(), want, &json!(differs))
        }
        "errors_not_contain" => no_word(want, &json!(seen.processes).to_string()),
        "row_count"
        | "distinct_event_ids"
        | "same_hash"
        | "different_hash"
        | "rows"
        | "file_bytes_do_not_contain"
            if world.trail.is_some() =>
        {
            trail::check(key, want, world)
        }
        _ => loaded(key, want, world),
    }
}

fn loaded(key: &str, want: &Value, world: &World) -> Result<(), String> {
    match key {
        "loaded" => equal(want, json!(world.loaded)),
        "status" => equal(want, json!(if world.problems.is_empty() { "ok" } else { "degraded" })),
        "rejected" => rejected(want, world),
        "matches_tool" => Err("the runner cannot ask that".into()),
        "row_count" => equal(want, json!(world.memory.records().len())),
        "row_count_max" => at_most(want, world.memory.records().len()),
        _ => Err("the runner does not know this key".into()),
    }
}

fn rejected(want: &Value, world: &World) -> Result<(), String> {
    let texts: Vec<String> = world.problems.iter().map(ToString::to_string).collect();
    for one in list(want) {
        let found = world.problems.iter().zip(&texts).any(|(problem, text)| {
            let label = problem.hook.as_ref().and_then(|hook| hook.label.as_deref());
            one.get("id").is_none_or(|id| id.as_str() == label)
                && one.get("reason_contains").is_none_or(|words| contains(words, text).is_ok())
        });
        holds(found, one, &json!(texts))?;
    }
    Ok(())
}

/// Warnings of the chain and of the load, and what a handler noted beside its verdict.
fn warnings(seen: &Seen, world: &World) -> String {
    let chain = seen.trace.warnings.iter().map(|w| format!("{} {}: {}", w.hook, w.code.as_str(), w.text));
    let notes = seen.trace.ran.iter().map(|ran| format!("{}: {}", ran.hook, ran.console));
    chain.chain(notes).chain(world.load_warnings.iter().cloned()).collect::<Vec<_>>().join("\n")
}

fn errors(records: &[Record]) -> String {
    let texts = records.iter().flat_map(|record| [record.error.as_deref(), record.error_detail.as_deref()]);
    texts.flatten().collect::<Vec<_>>().join("\n")
}

fn http_log(key: &str, want: &Value, world: &World) -> Result<(), String> {
    let requests = world.servers.requests();
    match key {
        // a redirect is the only way to others, and the one server of such a case would be asked twice
        "connections_to_others" => at_most(&json!(1), requests.len()),
        "requests" => equal(want, json!(requests.len())),
        "requests_max" => at_most(want, requests.len()),
        _ => {
            let gaps = requests.windows(2).filter_map(|pair| match pair {
                [first, second] => Some(second.duration_since(*first)),
                _ => None,
            });
            let gaps: Vec<Duration> = gaps.collect();
            let fine = list(want).iter().zip(&gaps).all(|(want, gap)| {
                // clocks and timers tick in whole milliseconds
                gap.as_millis().saturating_add(2) >= u128::from(want.as_u64().unwrap_or(0))
            });
            holds(fine && gaps.len() >= list(want).len(), want, &json!(format!("{gaps:?}")))
        }
    }
}

fn llm_log(key: &str, want: &Value, world: &World) -> Result<(), String> {
    let requests = world.judge.requests();
    if key == "calls" {
        return equal(want, json!(requests.len()));
    }
    let parts = Parts::of(requests.last().ok_or("the judge was not asked")?)?;
    match key {
        "closing_marks_outside_data" => equal(want, json!(parts.outside.matches(&parts.closing).count())),
        "system_part_does_not_contain" => no_word(want, &parts.system),
        _ => {
            let data: Value =
                serde_json::from_str(&parts.data).map_err(|error| format!("the data: {error}"))?;
            let mut texts = Vec::new();
            strings(data.get("toolInput").unwrap_or(&Value::Null), &mut texts);
            let outside = texts.iter().find(|text| parts.outside.contains(text.as_str()));
            let fine = !texts.is_empty() && outside.is_none();
            equal(want, json!(fine))
        }
    }
}

fn strings(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) => into.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| strings(item, into)),
        Value::Object(members) => members.values().for_each(|item| strings(item, into)),
        _ => {}
    }
}

/// Living processes that work in the case's folder, one second after the step.
fn processes_left(dir: &Path) -> usize {
    let count = || {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let inside = entries.filter(|entry| {
            std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir))
        });
        inside.count()
    };
    let until = Instant::now().checked_add(Duration::from_secs(1));
    while count() > 0 && until.is_some_and(|until| Instant::now() < until) {
        std::thread::sleep(Duration::from_millis(20));
    }
    count()
}

fn file_lines(want: &Value, world: &World) -> Result<(), String> {
    for (name, lines) in want.as_object().into_iter().flatten() {
        let text = std::fs::read_to_string(world.path(name)).unwrap_or_default();
        equal(lines, json!(text.lines().count())).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn no_word(want: &Value, got: &str) -> Result<(), String> {
    let lower = got.to_lowercase();
    let found = list(want).iter().filter_map(Value::as_str).find(|word| lower.contains(&word.to_lowercase()));
    holds(found.is_none(), want, &json!(got))
}

fn at_most(want: &Value, got: usize) -> Result<(), String> {
    let limit = want.as_u64().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(0);
    holds(got <= limit, want, &json!(got))
}

fn holds(fine: bool, want: &Value, got: &Value) -> Result<(), String> {
    if fine { Ok(()) } else { Err(format!("wanted {want}, got {got}")) }
}
