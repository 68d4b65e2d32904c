//! `audit why`: what hooks did in a session or about an event, told in words.
//!
//! Told from the rows: a hook that a filter ruled out left none.

use super::shown::time;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::query::{Entry, Filter, Order};

/// A session with more rows is told from its last ones.
const MOST: usize = 1000;

/// The rows of the event with this id, else of the session, oldest first.
pub(super) fn rows(audit: &mut Audit, id: &str) -> Result<Vec<Entry>, StoreError> {
    let event = Filter { event_id: Some(id.to_owned()), ..Filter::default() };
    let session = Filter { session_id: Some(id.to_owned()), ..Filter::default() };
    for filter in [event, session] {
        let mut rows = audit.list(&filter, Order::NewestFirst, None, MOST)?;
        if !rows.is_empty() {
            rows.reverse();
            return Ok(rows);
        }
    }
    Ok(Vec::new())
}

/// One paragraph an event, one line a hook.
pub(super) fn told(rows: &[Entry]) -> String {
    let mut text = String::new();
    let mut event = "";
    for row in rows {
        if row.event_id != event {
            event = &row.event_id;
            let about = row.tool_name.as_deref().map(|tool| format!(" of {tool}")).unwrap_or_default();
            text.push_str(&format!("{} {}{about} (event {event})\n", time(row.created_at), row.event));
        }
        let ms = row.duration_us / 1000;
        text.push_str(&format!("  hook {} {} after {ms} ms{}\n", row.hook_label, verb(row), because(row)));
    }
    text
}

fn verb(row: &Entry) -> &'static str {
    match row.decision.as_str() {
        "allow" => "let it through",
        "block" => "said no",
        "timeout" => "gave no answer in time",
        _ => "failed",
    }
}

fn because(row: &Entry) -> String {
    let mut text = String::new();
    if let Some(error) = &row.error {
        text.push_str(&format!(": {error}"));
    }
    if !row.refused_fields.is_empty() {
        text.push_str(&format!("; it wanted to change {} and may not", row.refused_fields.join(", ")));
    }
    text
}
