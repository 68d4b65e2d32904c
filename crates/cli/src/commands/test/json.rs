//! How tests went, for programs: one JSON object.

use crate::failure::Failure;
use hookgate_workbench::fire::Fired;
use hookgate_workbench::test::run::{Fault, FileReport, Report, TestReport};
use serde_json::{Value, json};

/// The object. With `coverage` it also tells what the tests touched.
pub(super) fn document(report: &Report, coverage: bool) -> Result<String, Failure> {
    let cannot = |error: serde_json::Error| Failure::new(format!("the results cannot be written: {error}"));
    let mut document = json!({
        "tests": report.n_tests(),
        "failed": report.n_failed(),
        "files": report.files.iter().map(file).collect::<Vec<_>>(),
    });
    if coverage && let Some(members) = document.as_object_mut() {
        members.insert("coverage".into(), serde_json::to_value(&report.coverage).map_err(cannot)?);
    }
    serde_json::to_string_pretty(&document).map_err(cannot)
}

fn file(file: &FileReport) -> Value {
    let tests: Vec<Value> = file.tests.iter().map(test).collect();
    json!({"file": file.name, "tests": tests})
}

fn test(test: &TestReport) -> Value {
    let mut value = json!({
        "name": test.name,
        "passed": test.passed(),
        "tookUs": u64::try_from(test.took.as_micros()).unwrap_or(u64::MAX),
        "found": test.found.members(),
        "faults": test.faults.iter().map(fault).collect::<Vec<_>>(),
    });
    if !test.passed()
        && let Some(members) = value.as_object_mut()
    {
        members.insert("events".into(), json!(test.events.iter().map(Fired::of).collect::<Vec<_>>()));
    }
    value
}

fn fault(fault: &Fault) -> Value {
    match fault {
        Fault::Differs { step, difference } => json!({
            "fault": "differs", "step": step, "field": difference.field,
            "expected": difference.expected, "found": difference.found,
        }),
        Fault::ExpectsNothing { step } => json!({"fault": "expects_nothing", "step": step}),
        Fault::NoAnswer { hook, kind } => json!({"fault": "no_answer", "hook": hook, "handler": kind}),
        Fault::BrokeOff => json!({"fault": "broke_off"}),
    }
}
