//! `hookgate doctor`: runs each wired agent's line with a sample payload and shows what the agent would see; then looks
//! for settings that switch hooks off.
//!
//! Exit code 0: every line answers as its agent expects and nothing is switched off, 1: not so.

use super::install::print;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::install::place::{self, Found};
use crate::install::plan;
use hookgate_agents::sample;
use std::io::Write;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(super) fn run() -> Result<Exit, Failure> {
    let mut report = Report::default();
    let mut seen = Vec::new();
    for found in place::all() {
        let wired = match plan::lines(&found) {
            Ok(lines) => lines,
            Err(failure) => {
                report.bad(&format!("{}: {failure}", found.agent.name()));
                continue;
            }
        };
        if wired.is_empty() {
            continue;
        }
        report.line(&format!("{}: {}", found.agent.name(), found.path.display()));
        look(&found, &wired, &mut report);
        if !seen.contains(&found.agent.name()) {
            seen.push(found.agent.name());
            switches(&found, &mut report);
        }
    }
    if seen.is_empty() {
        report.bad("no agent is wired");
    }
    print(&report.text)?;
    Ok(if report.bad { Exit::Problems } else { Exit::Done })
}

/// What was found.
#[derive(Default)]
struct Report {
    text: String,
    bad: bool,
}

impl Report {
    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn bad(&mut self, text: &str) {
        self.bad = true;
        self.line(&format!("problem: {text}"));
    }
}

/// Runs the line of the first gate with a harmless call.
fn look(found: &Found, wired: &[(String, String)], report: &mut Report) {
    let Some((event, payload)) = sample(found.agent) else { return };
    let line =
        wired.iter().find(|(name, _)| name == event).or(wired.first().filter(|(name, _)| name == "plugin"));
    let Some((name, line)) = line else {
        return report.bad(&format!(
            "  {event} is not wired: nothing is blocked before a tool runs; install it again"
        ));
    };
    let line = if name == "plugin" { format!("{line} {event}") } else { line.clone() };
    report.line(&format!("  $ {line}"));
    let started = Instant::now();
    match started_with(&line, &payload.to_string()) {
        Ok(output) => show(&output, started.elapsed(), found, event, report),
        Err(error) => report.bad(&format!("  the line cannot be started: {error}")),
    }
}

fn started_with(line: &str, payload: &str) -> std::io::Result<Output> {
    let mut child = Command::new("sh")
        .args(["-c", line])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // a line that reads nothing is judged by what it says
        let _ = stdin.write_all(payload.as_bytes());
    }
    child.wait_with_output()
}

fn show(output: &Output, took: Duration, found: &Found, event: &str, report: &mut Report) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    let code = output.status.code().map_or("a signal".to_owned(), |code| format!("exit code {code}"));
    report.line(&format!("  {event}, a shell call `echo hookgate`: {code} after {} ms", took.as_millis()));
    for (name, text) in [("stdout", &stdout), ("stderr", &stderr)] {
        if !text.is_empty() {
            report.line(&format!("  {name}: {text}"));
        }
    }
    // whatever the rules say to the call, it must not be a fault
    let fault = "blocked because hookgate";
    if stdout.contains(fault) || stderr.contains(fault) {
        report.bad(&format!("  {} would stop every call", found.agent.title()));
    } else if !matches!(output.status.code(), Some(0 | 2)) {
        report.bad(&format!("  {} would take this for a failed hook", found.agent.title()));
    }
}

fn switches(found: &Found, report: &mut Report) {
    for switch in found.setup.switches {
        let (keys, path) = (switch.keys.join("."), switch.path);
        match plan::is_off(switch) {
            Ok(false) => {}
            Ok(true) => report.bad(&format!("  `{keys}` in {path} switches all hooks off")),
            Err(failure) => report.bad(&format!("  {failure}")),
        }
    }
}
