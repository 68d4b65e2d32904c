//! `hookgate check [DIR]`: everything that would keep `chat` from using the folder, and what is probably not meant.
//!
//! Exit code 0: fine (warnings are allowed), 1: problems, 2: the folder cannot be read.

use crate::args::FolderArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{problems, sources, terminal};
use hookgate_core::define::Problem;
use hookgate_handlers::folder::OnInvalid;
use serde::Serialize;
use std::io::{self, Write};

/// One line of the JSON form.
#[derive(Serialize)]
struct Finding<'a> {
    severity: &'static str,
    #[serde(flatten)]
    problem: &'a Problem,
}

pub(super) fn run(args: &FolderArgs) -> Result<Exit, Failure> {
    let loaded = sources::of(args)?.load();
    let n_hooks = loaded.hooks.len();
    let warnings = loaded.warnings.clone();
    // making the set finds what only all hooks together can have, such as patterns that are too many
    let (_, problems) = loaded.into_set(OnInvalid::Refuse);
    let mut stdout = io::stdout().lock();
    if args.json {
        writeln!(stdout, "{}", json(&problems, &warnings)?)?;
    } else {
        let mut text = problems::text(&problems);
        text.push_str(&problems::warnings(&warnings));
        text.push_str(&summary(n_hooks, problems.len(), warnings.len()));
        stdout.write_all(terminal::printable(&text, terminal::is_terminal(&stdout)).as_bytes())?;
    }
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Problems })
}

fn json(problems: &[Problem], warnings: &[Problem]) -> Result<String, Failure> {
    let error = problems.iter().map(|problem| Finding { severity: "error", problem });
    let warning = warnings.iter().map(|problem| Finding { severity: "warning", problem });
    let findings: Vec<Finding<'_>> = error.chain(warning).collect();
    serde_json::to_string_pretty(&findings)
        .map_err(|error| Failure::new(format!("the problems cannot be written: {error}")))
}

/// `3 hooks can be read, 1 problem, no warnings`
fn summary(n_hooks: usize, n_problems: usize, n_warnings: usize) -> String {
    let count = |n: usize, what: &str| match n {
        0 => format!("no {what}s"),
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    };
    let hooks = count(n_hooks, "good hook");
    format!("{hooks}, {}, {}\n", count(n_problems, "problem"), count(n_warnings, "warning"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_counts() {
        assert_eq!(summary(1, 0, 2), "1 good hook, no problems, 2 warnings\n");
    }
}
