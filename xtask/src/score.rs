//! `cargo xtask score commands|secrets FILE`: how well the built-in detectors do on a labelled corpus.
//!
//! Misses and false alarms go out by class, gray cases apart. The last line is
//! `recall R% false alarms F%`, without gray. Secrets are fed chunk by chunk.

use hookgate_handlers::builtin::destructive::{Destructive, Finding, Shell};
use hookgate_handlers::builtin::secrets::{Kind, Secrets};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Counts without gray.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Score {
    /// Cases with something to find.
    pub positives: u32,
    /// Of these, found.
    pub found: u32,
    /// Cases with nothing to find.
    pub negatives: u32,
    /// Of these, reported.
    pub alarms: u32,
}

impl Score {
    /// Share of the positives that were found, in percent.
    pub fn recall(&self) -> f64 {
        percent(self.found, self.positives)
    }

    /// Share of the negatives that were reported, in percent.
    pub fn false_alarms(&self) -> f64 {
        percent(self.alarms, self.negatives)
    }
}

fn percent(part: u32, whole: u32) -> f64 {
    100.0 * f64::from(part) / f64::from(whole.max(1))
}

/// What became of one case.
struct Outcome {
    class: String,
    gray: bool,
    positive: bool,
    reported: bool,
    text: String,
    note: String,
}

/// The command: which corpus, and its file.
pub fn main(args: &[PathBuf], out: &mut impl Write) -> ExitCode {
    let [what, file] = args else { return ExitCode::from(2) };
    match run(&what.to_string_lossy(), file, out) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "error: {}: {error}", file.display());
            ExitCode::from(2)
        }
    }
}

/// Scores a file. `what` is `commands` or `secrets`.
///
/// # Errors
///
/// When the file cannot be read or is no such corpus, or `what` is neither.
pub fn run(what: &str, file: &Path, out: &mut impl Write) -> io::Result<Score> {
    let text = std::fs::read_to_string(file)?;
    let wrong = |error: String| io::Error::new(io::ErrorKind::InvalidData, error);
    let secrets = Secrets::new(&[Kind::Secret, Kind::Pii]).map_err(|error| wrong(error.to_string()))?;
    let mut outcomes = Vec::new();
    for (n, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let case: Value =
            serde_json::from_str(line).map_err(|error| wrong(format!("line {}: {error}", n + 1)))?;
        let outcome = match what {
            "commands" => command(&case),
            "secrets" => secret(&case, &secrets),
            other => return Err(wrong(format!("unknown corpus `{other}`; expected commands or secrets"))),
        };
        outcomes.push(outcome.ok_or_else(|| wrong(format!("line {}: not a case of `{what}`", n + 1)))?);
    }
    report(&outcomes, out)
}

fn command(case: &Value) -> Option<Outcome> {
    let text = case.get("cmd")?.as_str()?;
    let windows = case.get("shell").and_then(Value::as_str) == Some("windows");
    let finding = Destructive::judge(text, if windows { Shell::Windows } else { Shell::Bash });
    let note = match &finding {
        Finding::Harmless => String::new(),
        Finding::Destructive(danger) => danger.what.clone(),
    };
    outcome(case, "destructive", finding.is_destructive(), text.to_owned(), note)
}

/// A positive is found when a reported span overlaps the true one; a negative is wrong when anything is reported.
fn secret(case: &Value, secrets: &Secrets) -> Option<Outcome> {
    let chunks: Vec<&str> = case.get("chunks")?.as_array()?.iter().filter_map(Value::as_str).collect();
    let mut scanner = secrets.scanner();
    let mut found: Vec<_> = chunks.iter().flat_map(|chunk| scanner.push(chunk)).collect();
    found.append(&mut scanner.finish());
    let joined = chunks.concat();
    let signs = |bytes: usize| joined.get(..bytes).map_or(0, |text| text.chars().count());
    let spans: Vec<_> = found.iter().map(|found| (signs(found.span.start), signs(found.span.end))).collect();
    let true_spans = case.get("spans")?.as_array()?;
    let overlaps = |span: &Value| {
        let at = |n: usize| span.get(n).and_then(Value::as_u64).and_then(|at| usize::try_from(at).ok());
        let (Some(start), Some(end)) = (at(0), at(1)) else { return false };
        spans.iter().any(|(from, to)| *from < end && start < *to)
    };
    let positive = case.get("positive")?.as_bool()?;
    let reported = if positive { true_spans.iter().all(overlaps) } else { !found.is_empty() };
    let classes: Vec<&str> = found.iter().map(|found| found.class).collect();
    outcome(case, "positive", reported, joined, classes.join(", "))
}

fn outcome(case: &Value, label: &str, reported: bool, text: String, note: String) -> Option<Outcome> {
    Some(Outcome {
        class: case.get("class")?.as_str()?.to_owned(),
        gray: case.get("gray").and_then(Value::as_bool).unwrap_or(false),
        positive: case.get(label)?.as_bool()?,
        reported,
        text,
        note,
    })
}

fn report(outcomes: &[Outcome], out: &mut impl Write) -> io::Result<Score> {
    let mut score = Score::default();
    let mut classes: BTreeMap<(bool, &str), (u32, u32)> = BTreeMap::new();
    for outcome in outcomes {
        let right = outcome.positive == outcome.reported;
        let class = classes.entry((outcome.gray, &outcome.class)).or_default();
        class.0 += u32::from(right);
        class.1 += 1;
        if !right {
            let what = if outcome.positive { "miss" } else { "false alarm" };
            let gray = if outcome.gray { "gray " } else { "" };
            let text: String = outcome.text.chars().take(160).collect();
            writeln!(out, "{gray}{what}  {}  {text:?}  {}", outcome.class, outcome.note)?;
        }
        match (outcome.gray, outcome.positive) {
            (true, _) => {}
            (false, true) => {
                score.positives += 1;
                score.found += u32::from(outcome.reported);
            }
            (false, false) => {
                score.negatives += 1;
                score.alarms += u32::from(outcome.reported);
            }
        }
    }
    for ((gray, class), (right, all)) in &classes {
        writeln!(out, "{}{class}: {right} of {all} as labelled", if *gray { "gray " } else { "" })?;
    }
    writeln!(
        out,
        "{} of {} found, {} of {} false alarms",
        score.found, score.positives, score.alarms, score.negatives
    )?;
    writeln!(out, "recall {:.1}% false alarms {:.1}%", score.recall(), score.false_alarms())?;
    Ok(score)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(what: &str) {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../corpus/corpora/{what}.jsonl"));
        let mut report = Vec::new();
        let score = run(what, &file, &mut report).unwrap();
        let report = String::from_utf8(report).unwrap();
        assert!(score.recall() >= 95.0 && score.false_alarms() <= 3.0, "{report}");
        let last = report.lines().last().unwrap();
        assert!(
            last.starts_with("recall ") && last.ends_with('%') && last.contains("% false alarms "),
            "{last}"
        );
    }

    #[test]
    fn commands_stay_above_the_floor() {
        check("commands");
    }

    #[test]
    fn secrets_stay_above_the_floor() {
        check("secrets");
    }
}
