//! How tests went, for people: a line a test; of one that failed what was expected, what was found, and what every hook
//! made of the events.

use crate::commands::fire;
use hookgate_workbench::fire::Fired;
use hookgate_workbench::test::coverage::{Coverage, HookCoverage};
use hookgate_workbench::test::expect::Difference;
use hookgate_workbench::test::run::{Fault, Report, TestReport};
use hookgate_workbench::test::update;
use serde_json::Value;

/// How far the details of a test stand in.
const INDENT: &str = "           ";

/// Everything. `updated`: the files that were written anew.
pub(super) fn report(report: &Report, updated: &[String]) -> String {
    let mut text = String::new();
    for file in &report.files {
        text.push_str(&format!("{}\n", file.name));
        for test in &file.tests {
            let is_written = updated.contains(&file.name) && update::is_known(test);
            let (word, details) = match (test.passed(), is_written) {
                (true, _) => ("ok     ", String::new()),
                (false, true) => ("written", String::new()),
                (false, false) => ("failed ", faults(test)),
            };
            text.push_str(&format!("  {word}  {}\n", test.name));
            text.push_str(&indented(&details));
        }
    }
    for name in updated {
        text.push_str(&format!("{name} was written anew: look at what changed before you keep it\n"));
    }
    text.push_str(&summary(report, updated));
    text
}

/// What is wrong with a test, and why; empty for one that passed.
pub(super) fn faults(test: &TestReport) -> String {
    if test.passed() {
        return String::new();
    }
    let mut text: String = test.faults.iter().map(fault).collect();
    let no_answer = |fault: &Fault| matches!(fault, Fault::NoAnswer { .. });
    if !test.events.is_empty() && !test.faults.iter().all(no_answer) {
        text.push_str("what the hooks made of it:\n");
        let fired: Vec<Fired> = test.events.iter().map(Fired::of).collect();
        fire::told(&fired).lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

fn fault(fault: &Fault) -> String {
    match fault {
        Fault::Differs { step, difference } => differs(*step, difference),
        Fault::ExpectsNothing { step } => format!(
            "{}expect is empty: a test that asks for nothing shows nothing; --update fills it\n",
            of_step(*step)
        ),
        Fault::NoAnswer { hook, kind } => format!(
            "hook {hook} would run its {kind} handler, and the test does not say what that answers; say it:\n  \
             \"answers\": {{ {}: {{ \"decision\": \"allow\" }} }}\n\
             or let it run, with \"live\": true in the test or --live\n",
            Value::from(hook.as_str())
        ),
        Fault::BrokeOff => "the run broke off, which is a mistake in hookgate\n".into(),
    }
}

fn of_step(step: Option<usize>) -> String {
    step.map(|step| format!("step {}: ", step.saturating_add(1))).unwrap_or_default()
}

fn differs(step: Option<usize>, difference: &Difference) -> String {
    let Difference { field, expected, found } = difference;
    let mut text = format!("{}{field}\n", of_step(step));
    if !(expected.is_array() || found.is_array()) {
        text.push_str(&format!("  expected  {}\n  found     {}\n", one(expected), one(found)));
        return text;
    }
    let items = |value: &Value| -> Vec<String> {
        match value {
            Value::Array(items) => items.iter().map(ToString::to_string).collect(),
            other => vec![other.to_string()],
        }
    };
    let (expected, found) = (items(expected), items(found));
    for (mark, lines) in [("expected", expected), ("found   ", found)] {
        if lines.is_empty() {
            text.push_str(&format!("  {mark}  none\n"));
        }
        for (place, line) in lines.iter().enumerate() {
            let mark = if place == 0 { mark } else { "        " };
            text.push_str(&format!("  {mark}  {line}\n"));
        }
    }
    text
}

/// A value in one line; nothing where there is none.
fn one(value: &Value) -> String {
    match value {
        Value::Null => "none".into(),
        other => other.to_string(),
    }
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("{INDENT}{line}\n")).collect()
}

/// `12 tests in 3 files, 1 failed`
fn summary(report: &Report, updated: &[String]) -> String {
    let count = |n: usize, what: &str| if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") };
    let of_updated = report.files.iter().filter(|file| updated.contains(&file.name));
    let is_written = |test: &&TestReport| !test.passed() && update::is_known(test);
    let written = of_updated.flat_map(|file| &file.tests).filter(is_written).count();
    let went = match (report.n_failed().saturating_sub(written), written) {
        (0, 0) => "all passed".to_owned(),
        (0, n) => format!("{n} written anew"),
        (n, 0) => format!("{n} failed"),
        (failed, written) => format!("{failed} failed, {written} written anew"),
    };
    format!("{} in {}, {went}\n", count(report.n_tests(), "test"), count(report.files.len(), "file"))
}

/// What no test touched.
pub(super) fn coverage(coverage: &Coverage) -> String {
    let hooks = coverage.hooks();
    let touched = hooks.len().saturating_sub(coverage.n_untouched());
    let is_whole = |hook: &HookCoverage| {
        hook.fired && hook.filters.iter().all(|filter| filter.said_yes && filter.said_no)
    };
    if hooks.iter().all(is_whole) {
        return "every hook was fired, and every filter was seen to say yes and no\n".into();
    }
    let mut text = format!("{touched} of {} hooks were fired by a test\n", hooks.len());
    for hook in hooks {
        if !hook.fired {
            text.push_str(&format!("  hook {} ({}): no test fired it\n", hook.hook, hook.file));
        }
        for filter in &hook.filters {
            let missing = match (filter.said_yes, filter.said_no) {
                (true, true) => continue,
                (true, false) => "no test saw it say no",
                (false, true) => "no test saw it say yes",
                (false, false) => "no test saw it asked",
            };
            text.push_str(&format!(
                "  hook {}, {} `{}`: {missing}\n",
                hook.hook, filter.field, filter.wanted
            ));
        }
    }
    text
}
