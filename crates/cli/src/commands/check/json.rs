//! The findings as a JSON list, errors first.

use crate::failure::Failure;
use hookgate_core::define::Problem;
use serde::Serialize;

/// One finding.
#[derive(Serialize)]
struct Finding<'a> {
    severity: &'static str,
    #[serde(flatten)]
    problem: &'a Problem,
}

pub(super) fn document(problems: &[Problem], warnings: &[Problem]) -> Result<String, Failure> {
    let error = problems.iter().map(|problem| Finding { severity: "error", problem });
    let warning = warnings.iter().map(|problem| Finding { severity: "warning", problem });
    let findings: Vec<Finding<'_>> = error.chain(warning).collect();
    serde_json::to_string_pretty(&findings)
        .map_err(|error| Failure::new(format!("the problems cannot be written: {error}")))
}
