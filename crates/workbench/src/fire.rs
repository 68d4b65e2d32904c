//! One event, or several as one session, through a hook set: what every hook made of it. Nothing is compared and nothing is
//! kept.
//!
//! An event is written as in a test ([`crate::step`]); a file holds one, a list of them, or one a line.

use crate::desk::{By, Desk, Unanswered};
use crate::happened::{Happened, Played};
use crate::stage::Stage;
use crate::step::{Step, Whose};
use crate::test::found::effect_json;
use hookgate_core::define::{NodeValue, Place, Problem, read_document};
use hookgate_core::effect::EffectKind;
use hookgate_core::explain::Looked;
use hookgate_core::word::Word;
use serde::Serialize;
use serde_json::{Map, Value};
use std::collections::HashMap;
use std::time::Duration;

/// The session of events that name none.
const SESSION: &str = "fire";

/// Reads events: an object, a list, or JSON Lines.
///
/// # Errors
/// All that is wrong, with its place.
pub fn read(file: &str, text: &str) -> Result<Vec<Step>, Vec<Problem>> {
    let lines: Vec<(usize, &str)> =
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect();
    let one_a_line = lines.len() > 1
        && lines.iter().all(|(_, line)| line.trim_start().starts_with('{'))
        && lines.first().is_some_and(|(_, line)| serde_json::from_str::<Value>(line).is_ok());
    if !one_a_line {
        return read_whole(file, text);
    }
    let (mut steps, mut problems) = (Vec::new(), Vec::new());
    for (above, line) in lines {
        match read_whole(file, line) {
            Ok(step) => steps.extend(step),
            Err(of_line) => problems.extend(of_line.into_iter().map(|problem| lower(problem, above))),
        }
    }
    if problems.is_empty() { Ok(steps) } else { Err(problems) }
}

fn read_whole(file: &str, text: &str) -> Result<Vec<Step>, Vec<Problem>> {
    read_document(file, text, |root, report| match &root.value {
        NodeValue::List(items) => {
            if items.is_empty() {
                report.add(root.at, "", "expected at least one event, found an empty list".into(), None);
            }
            let read = |(index, node)| Step::read_node(report, node, &format!("[{index}]"));
            let steps: Vec<Option<Step>> = items.iter().enumerate().map(read).collect();
            steps.into_iter().collect()
        }
        _ => Step::read_node(report, root, "").map(|step| vec![step]),
    })
}

/// The problem of a line that so many others stand above.
fn lower(problem: Problem, above: usize) -> Problem {
    let place = problem.place.map(|place| Place { line: place.line.saturating_add(above), ..place });
    Problem { place, ..problem }
}

/// Plays the events as one session. Handlers that reach out of the process run only if `live`.
pub async fn fire(stage: &Stage, steps: &[Step], live: bool) -> Vec<Fired> {
    let desk = Desk::new(live, Unanswered::Agrees, HashMap::new());
    let mut scene = stage.begin(desk, SESSION, Whose::default());
    let mut fired = Vec::new();
    for step in steps {
        let Played { events, text, reasoning, answer: _ } = scene.play(step).await;
        let last = events.len().saturating_sub(1);
        fired.extend(events.iter().enumerate().map(|(place, happened)| Fired {
            // what a reader has of an answer is known at its end
            text: text.clone().filter(|_| place == last),
            reasoning: reasoning.clone().filter(|_| place == last),
            ..Fired::of(happened)
        }));
    }
    fired
}

/// One event with the trace of its hooks, for people and as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fired {
    /// The point.
    pub event: &'static str,
    /// The event's id.
    pub event_id: String,
    /// The session.
    pub session_id: String,
    /// The tool, at points that have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// Every hook of the point, in run order, JSON hooks first.
    pub hooks: Vec<HookTrace>,
    /// What JSON hooks asked for, in order, as tests write it.
    pub effects: Vec<Value>,
    /// `block` if something was stopped, else `allow`.
    pub decision: &'static str,
    /// Who stopped it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// Why, in the hook's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What lies behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    /// The changed members of the input.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub updated_input: Map<String, Value>,
    /// Texts to be joined to the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub append: Vec<String>,
    /// Texts to be sent behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub send: Vec<String>,
    /// What was odd, in words.
    pub warnings: Vec<String>,
    /// The streamed text as a reader gets it; at the last event of an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The same of the thoughts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
}

/// What one hook made of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HookTrace {
    /// The hook.
    pub hook: String,
    /// What became of it.
    #[serde(flatten)]
    pub became: Became,
}

/// What became of a hook.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "became", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Became {
    /// A filter ruled it out.
    RuledOut {
        /// The field.
        by: &'static str,
        /// What is written there.
        wanted: String,
        /// What the event has.
        found: String,
    },
    /// It fired: a JSON hook.
    Fired,
    /// Its handler was asked.
    Asked {
        /// The handler's type, or `builtin`.
        handler: &'static str,
        /// How it ended: allow, block, error, timeout.
        decision: &'static str,
        /// What it said, or why it failed.
        said: Option<String>,
        /// What it wrote to its console.
        console: String,
        /// How long it took, in microseconds.
        took_us: u64,
    },
    /// Its handler would be asked, and runs only with `--live`.
    WouldRun {
        /// The handler's type.
        handler: &'static str,
    },
    /// It was concerned and not asked: another had stopped the event by then.
    NotAsked,
}

impl Fired {
    /// The trace of what happened.
    pub fn of(happened: &Happened) -> Fired {
        let Happened { point, head, tool_name, stopped, .. } = happened;
        let stopped = stopped.as_ref();
        Fired {
            event: point.as_str(),
            event_id: head.event_id.clone(),
            session_id: head.session_id.clone(),
            tool_name: tool_name.clone(),
            hooks: happened.looked.iter().map(|looked| trace_of(happened, looked)).collect(),
            effects: happened.effects.iter().filter_map(effect_json).collect(),
            decision: if stopped.is_some() { "block" } else { "allow" },
            hook: stopped.map(|stopped| stopped.by.clone()),
            reason: stopped.map(|stopped| stopped.reason.clone()),
            cause: stopped.map(|stopped| stopped.cause.as_str()),
            updated_input: happened.updated.iter().cloned().collect(),
            append: happened.append.clone(),
            send: happened.send.clone(),
            warnings: happened
                .warnings()
                .iter()
                .map(|warning| format!("hook {}: {}: {}", warning.hook, warning.code, warning.text))
                .collect(),
            text: None,
            reasoning: None,
        }
    }

    /// The hooks whose handlers would run in earnest and might say something else.
    pub fn would_run(&self) -> impl Iterator<Item = &HookTrace> {
        self.hooks.iter().filter(|trace| matches!(trace.became, Became::WouldRun { .. }))
    }
}

fn trace_of(happened: &Happened, looked: &Looked) -> HookTrace {
    let became = match &looked.out {
        Some(out) => {
            Became::RuledOut { by: out.by.as_str(), wanted: out.wanted.clone(), found: out.found.clone() }
        }
        None => concerned(happened, &looked.hook),
    };
    HookTrace { hook: looked.hook.clone(), became }
}

fn concerned(happened: &Happened, hook: &str) -> Became {
    let fired = |kind: &EffectKind| *kind == EffectKind::Fired;
    if happened.effects.iter().any(|effect| &*effect.hook == hook && fired(&effect.kind)) {
        return Became::Fired;
    }
    let asked = happened.asked.iter().find(|asked| asked.hook == hook);
    let ran = happened.trace.ran.iter().find(|ran| &*ran.hook == hook);
    match (asked, ran) {
        (Some(asked), _) if asked.by == By::Nobody => Became::WouldRun { handler: asked.kind },
        (Some(asked), Some(ran)) => Became::Asked {
            handler: asked.kind,
            decision: ran.decision.as_str(),
            said: match &asked.said {
                Ok(answer) => answer.reason.clone().or_else(|| ran.why.map(|why| why.to_string())),
                Err(fault) => Some(fault.to_string()),
            },
            console: ran.console.clone(),
            took_us: micros(asked.took),
        },
        _ => Became::NotAsked,
    }
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: Result<usize, &str>) {
        match (read("e.json", text), want) {
            (Ok(steps), Ok(n)) => assert_eq!(steps.len(), n, "{text}"),
            (Err(problems), Err(want)) => {
                let said: Vec<String> = problems.iter().map(ToString::to_string).collect();
                assert!(said.join("\n").contains(want), "{said:?}");
            }
            (got, want) => panic!("{text}: {got:?}, {want:?}"),
        }
    }

    #[test]
    fn one_several_or_one_a_line() {
        check(r#"{"event": "stop"}"#, Ok(1));
        check("{\n  \"event\": \"stop\"\n}\n", Ok(1));
        check(r#"[{"event": "stop"}, {"prompt": "hi"}]"#, Ok(2));
        check("{\"event\": \"stop\"}\n\n{\"prompt\": \"hi\"}\n", Ok(2));
        check(
            "{\"event\": \"stop\"}\n{\"promt\": \"hi\"}\n",
            Err("e.json:2:2: field `promt`: unknown field"),
        );
        check("[]", Err("at least one event"));
        check("", Err("the file is empty"));
        check("{\"event\": \"stop\"} {", Err("not valid JSON"));
    }
}
