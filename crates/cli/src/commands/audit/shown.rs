//! Rows and numbers as people read them.

use crate::table;
use hookgate_store::query::{Entry, Stats};

/// A row a line.
pub(super) fn table(rows: &[Entry]) -> String {
    if rows.is_empty() {
        return "no rows\n".into();
    }
    let head = ["ROW", "TIME", "DECISION", "HOOK", "EVENT", "TOOL", "MS", "SESSION", "ERROR"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(rows.iter().map(|row| {
        let error = row.error.as_deref().unwrap_or_default();
        [
            row.id.to_string(),
            time(row.created_at),
            row.decision.clone(),
            row.hook_label.clone(),
            row.event.clone(),
            row.tool_name.clone().unwrap_or_else(|| "-".into()),
            milliseconds(row.duration_us),
            row.session_id.clone(),
            error.chars().take(60).collect(),
        ]
    }));
    table::lines(&lines)
}

/// All of one row.
pub(super) fn entry(row: &Entry) -> String {
    let optional = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".into());
    let refused = if row.refused_fields.is_empty() { "-".into() } else { row.refused_fields.join(", ") };
    let lines = [
        ("row", row.id.to_string()),
        ("time", time(row.created_at)),
        ("hook", format!("{} (version {})", row.hook_label, row.hook_version)),
        ("hook id", row.hook_id.clone().unwrap_or_else(|| "- (deleted)".into())),
        ("event", format!("{} ({})", row.event, row.event_id)),
        ("tool", optional(&row.tool_name)),
        ("session", row.session_id.clone()),
        ("tenant", optional(&row.tenant_id)),
        ("agent", optional(&row.agent_id)),
        ("trace", optional(&row.trace_id)),
        ("decision", row.decision.clone()),
        ("cause", optional(&row.cause)),
        ("took", format!("{} ms", milliseconds(row.duration_us))),
        ("firings", row.times.to_string()),
        ("tokens", row.tokens.map_or_else(|| "-".into(), |tokens| tokens.to_string())),
        ("refused fields", refused),
        ("error", optional(&row.error)),
        ("detail", optional(&row.error_detail)),
        ("key", optional(&row.key_id)),
        ("input hash", row.input_hash.clone()),
        ("chain", format!("{} place {}", row.writer, row.seq)),
        ("hash", row.hash.clone()),
    ];
    table::lines(&lines.map(|(name, value)| [name.to_owned(), value]))
}

/// Numbers by hook.
pub(super) fn stats(stats: &Stats) -> String {
    if stats.rows == 0 {
        return "no rows\n".into();
    }
    let of = |counts: &std::collections::BTreeMap<String, u64>, word: &str| {
        counts.get(word).copied().unwrap_or(0).to_string()
    };
    let head = ["HOOK", "ROWS", "ALLOW", "BLOCK", "ERROR", "TIMEOUT", "MEAN MS", "LONGEST MS"];
    let mut lines = vec![head.map(str::to_owned)];
    lines.extend(stats.hooks.iter().map(|(name, hook)| {
        [
            name.clone(),
            hook.rows.to_string(),
            of(&hook.decisions, "allow"),
            of(&hook.decisions, "block"),
            of(&hook.decisions, "error"),
            of(&hook.decisions, "timeout"),
            milliseconds(hook.total_us.checked_div(hook.rows).unwrap_or(0)),
            milliseconds(hook.longest_us),
        ]
    }));
    let span = |at: Option<i64>| at.map_or_else(|| "-".into(), time);
    let (first, last) = (span(stats.first), span(stats.last));
    format!("{} rows from {first} to {last}\n{}", stats.rows, table::lines(&lines))
}

/// `2026-11-30T08:15:09.123Z`
pub(in crate::commands) fn time(milliseconds: i64) -> String {
    jiff::Timestamp::from_millisecond(milliseconds)
        .map_or_else(|_| milliseconds.to_string(), |time| format!("{time:.3}"))
}

pub(in crate::commands) fn milliseconds(micros: u64) -> String {
    format!("{}.{}", micros / 1000, micros % 1000 / 100)
}
