//! Rows as they come, a line each: for pipes, files, and other programs.

use super::follow::Follow;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::terminal;
use hookgate_store::query::Entry;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::Duration;

/// How long it waits between two looks.
const PAUSE: Duration = Duration::from_millis(200);

/// Prints until it is stopped, or until nobody reads any more.
pub(super) fn run(mut follow: Follow, json: bool) -> Result<Exit, Failure> {
    let mut stdout = io::stdout().lock();
    let is_terminal = terminal::is_terminal(&stdout);
    let mut trouble = None;
    let mut told = false;
    loop {
        match follow.look() {
            Ok(rows) => {
                trouble = None;
                for row in rows {
                    let line = if json { json_line(&row)? } else { line(&row) };
                    stdout.write_all(terminal::printable(&line, is_terminal).as_bytes())?;
                }
                stdout.flush()?;
            }
            // told once, and tried again; before there was a trail it is an error of the arguments
            Err(failure) if follow.is_there() => {
                let text = failure.to_string();
                if trouble.as_ref() != Some(&text) {
                    writeln!(io::stderr().lock(), "warning: {text}; trying again")?;
                    trouble = Some(text);
                }
            }
            Err(failure) => return Err(failure),
        }
        if !follow.is_there() && !std::mem::replace(&mut told, true) {
            let dir = follow.path().display();
            writeln!(io::stderr().lock(), "no hook has left a record in {dir} yet; waiting")?;
        }
        std::thread::sleep(PAUSE);
    }
}

fn json_line(row: &Entry) -> Result<String, Failure> {
    let mut line = serde_json::to_string(row)
        .map_err(|error| Failure::new(format!("a row cannot be written: {error}")))?;
    line.push('\n');
    Ok(line)
}

/// `2026-11-30T08:15:09.123Z  block    12.3 ms  no-deleting  pre_tool_use exec  session: reason`
fn line(row: &Entry) -> String {
    let plain = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    let (time, took) =
        (super::super::audit::time(row.created_at), super::super::audit::milliseconds(row.duration_us));
    let mut line =
        format!("{time}  {:<7}  {took:>6} ms  {}  {}", row.decision, plain(&row.hook_label), row.event);
    // writing to a String cannot fail
    if let Some(tool) = &row.tool_name {
        let _ = write!(line, " {}", plain(tool));
    }
    let _ = write!(line, "  {}", plain(&row.session_id));
    if row.times > 1 {
        let _ = write!(line, "  {} times", row.times);
    }
    if let Some(error) = &row.error {
        let _ = write!(line, ": {}", plain(error));
    }
    line.push('\n');
    line
}
