//! The report as people read it on a terminal.

use crate::table;
use hookgate_core::word::Word;
use hookgate_workbench::replay::What;
use hookgate_workbench::replay::report::{Finding, Report, Row, Side};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Damaged lines and unread files that are named.
const MOST_NAMED: usize = 10;
/// Characters of a text in a row.
const LONGEST: usize = 60;

/// What could not be read, a line each.
pub(super) fn warnings(report: &Report) -> String {
    let mut text = String::new();
    // writing to a String cannot fail
    for unread in report.unread.iter().take(MOST_NAMED) {
        let _ = writeln!(text, "warning: {}: {}", unread.file, unread.why);
    }
    more(&mut text, report.n_unread, "files that were not read");
    for damage in report.damage.iter().take(MOST_NAMED) {
        let _ = writeln!(text, "warning: {}:{}: {}", damage.file, damage.line, damage.why);
    }
    more(&mut text, report.damaged, "damaged lines");
    text
}

fn more(text: &mut String, all: u64, what: &str) {
    let more = all.saturating_sub(u64::try_from(MOST_NAMED).unwrap_or(u64::MAX));
    if more > 0 {
        let _ = writeln!(text, "warning: {more} more {what}; --json names more of them");
    }
}

/// The whole report.
pub(super) fn text(report: &Report) -> String {
    let mut text = match &report.against {
        None => single(report),
        Some(against) => compared(report, against),
    };
    text.push_str(&silent(report));
    if report.rows.iter().any(|row| row.what == What::Ask) {
        text.push_str("http, command and prompt handlers were not asked; --live asks them\n");
    }
    text.push_str(&summary(report));
    text
}

fn single(report: &Report) -> String {
    if report.rows.is_empty() {
        return "no hook would have done anything\n".into();
    }
    let head = ["WOULD", "HOOK", "TIMES", "SESSIONS", "FIRST AT", "WHAT"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(report.rows.iter().map(|row| {
        [
            row.what.as_str().to_owned(),
            plain(&row.hook),
            row.times.to_string(),
            row.sessions.to_string(),
            place(row),
            row.first.as_ref().map(what).unwrap_or_default(),
        ]
    }));
    table::lines(&lines)
}

fn compared(report: &Report, against: &str) -> String {
    let differs = |row: &&Row| row.only_hooks.unwrap_or(0) > 0 || row.only_against.unwrap_or(0) > 0;
    let rows: Vec<&Row> = report.rows.iter().filter(differs).collect();
    let mut text = format!("hooks: {}\nagainst: {against}\n", report.hooks);
    if rows.is_empty() {
        text.push_str("both sets do the same\n");
        return text;
    }
    let head = ["WOULD", "HOOK", "HOOKS", "AGAINST", "ONLY HOOKS", "ONLY AGAINST", "FIRST AT", "WHAT"];
    let mut lines = vec![head.map(str::to_owned)];
    let number = |number: Option<u64>| number.unwrap_or(0).to_string();
    lines.extend(rows.into_iter().map(|row| {
        [
            row.what.as_str().to_owned(),
            plain(&row.hook),
            row.times.to_string(),
            number(row.times_against),
            number(row.only_hooks),
            number(row.only_against),
            place(row),
            row.first.as_ref().map(what).unwrap_or_default(),
        ]
    }));
    text.push_str(&table::lines(&lines));
    text
}

fn place(row: &Row) -> String {
    row.first.as_ref().map(|first| format!("{}:{}", first.file, first.line)).unwrap_or_default()
}

/// `exec: rm -rf build`, or the text that it was about.
fn what(finding: &Finding) -> String {
    let shown = if finding.excerpt.is_empty() { &finding.text } else { &finding.excerpt };
    let mut text = match &finding.tool {
        Some(tool) => format!("{tool}: {shown}"),
        None => shown.clone(),
    };
    if let Some((cut, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(cut);
        text.push('…');
    }
    plain(&text)
}

fn plain(text: &str) -> String {
    text.replace(['\n', '\t', '\r'], " ")
}

fn silent(report: &Report) -> String {
    let of = |side: Side| -> BTreeSet<&str> {
        let hooks = report.silent.iter().filter(|silent| silent.side == side);
        hooks.map(|silent| silent.hook.as_str()).collect()
    };
    let list = |title: &str, hooks: BTreeSet<&str>| {
        if hooks.is_empty() {
            return String::new();
        }
        format!("{title}: {}\n", plain(&hooks.into_iter().collect::<Vec<_>>().join(", ")))
    };
    match report.against {
        None => list("hooks that did nothing", of(Side::First)),
        Some(_) => {
            list("did nothing in hooks", of(Side::First)) + &list("did nothing in against", of(Side::Second))
        }
    }
}

/// `3 sessions in 2 files, 120 events; 1 damaged line, 2 files not read`
fn summary(report: &Report) -> String {
    let count = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = format!(
        "{} in {}, {}",
        count(report.sessions, "session"),
        count(report.files, "file"),
        count(report.events, "event")
    );
    let mut odd = Vec::new();
    if report.damaged > 0 {
        odd.push(count(report.damaged, "damaged line"));
    }
    if report.n_unread > 0 {
        odd.push(format!("{} not read", count(report.n_unread, "file")));
    }
    if !odd.is_empty() {
        let _ = write!(text, "; {}", odd.join(", "));
    }
    text.push('\n');
    text
}
