//! Runs vectors and cases of every known format through the real code.
//!
//! | file | format | runner |
//! |---|---|---|
//! | `*.jsonl`, lines with `session` | JSON-hooks vector | `json_hooks` |
//! | `*.jsonl`, lines with `hooks` and `event` | dispatcher vector | `dispatcher` |
//! | `*.jsonl`, lines with `source` | script vector | `script` |
//! | `*.json` with `"case": 1` | case | `case` |
//!
//! A line `FAIL id: what differed` for each failure, `NOT RUN id: why` for what no code can run yet, then the sum.

mod case;
mod dispatcher;
mod json_hooks;
mod model;
mod pack;
mod script;
mod stand_in;
mod text;

pub use case::{case_process, is_case_process, is_program, program};
pub use script::use_worker;

use serde_json::Value;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// How one test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that was expected came true.
    Passed,
    /// What differed.
    Failed(String),
    /// Why it could not run.
    NotRun(String),
}

/// How many ended how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Not run.
    pub not_run: usize,
}

/// Time limits in cases are for an idle machine and an optimised program; this is the factor that is applied.
pub const TIME_FACTOR: u32 = if cfg!(debug_assertions) { 4 } else { 2 };

/// Runs everything under these paths and writes the report.
pub fn run(paths: &[PathBuf], out: &mut dyn Write) -> io::Result<Tally> {
    let mut tally = Tally::default();
    for path in paths {
        for file in files_under(path)? {
            run_file(&file, &mut |id, verdict| {
                match &verdict {
                    Verdict::Passed => tally.passed += 1,
                    Verdict::Failed(why) => {
                        tally.failed += 1;
                        writeln!(out, "FAIL {id}: {why}")?;
                    }
                    Verdict::NotRun(why) => {
                        tally.not_run += 1;
                        writeln!(out, "NOT RUN {id}: {why}")?;
                    }
                }
                Ok(())
            })?;
        }
    }
    writeln!(out, "time limits were multiplied by {TIME_FACTOR}")?;
    writeln!(out, "{} passed, {} failed, {} not run", tally.passed, tally.failed, tally.not_run)?;
    Ok(tally)
}

/// Runs one file's tests.
fn run_file(path: &Path, report: &mut dyn FnMut(&str, Verdict) -> io::Result<()>) -> io::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let name = path.display().to_string();
    let is_lines = path.extension().is_some_and(|extension| extension == "jsonl");
    let items: Vec<(usize, &str)> = if is_lines {
        text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).collect()
    } else {
        vec![(0, &text)]
    };
    for (line, item) in items {
        match serde_json::from_str::<Value>(item) {
            Ok(test) => {
                let fallback = format!("{name}:{}", line + 1);
                let id = test.get("id").and_then(Value::as_str).unwrap_or(&fallback).to_owned();
                report(&id, run_one(&test))?;
            }
            Err(error) => {
                report(&format!("{name}:{}", line + 1), Verdict::Failed(format!("not JSON: {error}")))?
            }
        }
    }
    Ok(())
}

fn run_one(test: &Value) -> Verdict {
    let has = |key: &str| test.get(key).is_some();
    if has("case") {
        case::run(test)
    } else if has("session") && has("expect") {
        json_hooks::run(test)
    } else if has("source") || has("source_parts") {
        script::run(test)
    } else if has("event") && has("hooks") {
        dispatcher::run(test)
    } else {
        Verdict::NotRun("no known format".into())
    }
}

/// Test files below a path, in name order. Only `vectors*.jsonl` and cases count; other JSON is data.
fn files_under(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect::<io::Result<_>>()?;
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            files.extend(files_under(&entry)?);
        } else if entry.extension().is_some_and(|extension| extension == "jsonl") || is_case(&entry)? {
            files.push(entry);
        }
    }
    Ok(files)
}

fn is_case(path: &Path) -> io::Result<bool> {
    if path.extension().is_none_or(|extension| extension != "json") {
        return Ok(false);
    }
    let text = std::fs::read_to_string(path)?;
    Ok(serde_json::from_str::<Value>(&text).is_ok_and(|value| value.get("case").is_some()))
}
