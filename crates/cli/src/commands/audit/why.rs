//! `audit why`: what hooks did in a session or about an event, told in words.
//!
//! Told from the rows, and from the filter traces where `filter_trace` keeps them: a hook that a filter ruled out leaves
//! no row.

use super::shown::time;
use crate::chat::filtered_out;
use hookgate_core::explain::FilterTrace;
use hookgate_core::point::{Point, Stage};
use hookgate_core::word::Word;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::query::{Entry, Filter, Order};
use serde::Serialize;

/// A session with more rows is told from its last ones.
const MOST: usize = 1000;

/// What is known of an event or a session.
#[derive(Debug, Serialize)]
pub(super) struct Why {
    /// Oldest first.
    rows: Vec<Entry>,
    /// Oldest first.
    traces: Vec<FilterTrace>,
    /// Traces that no key at hand opens.
    sealed_traces: usize,
}

impl Why {
    /// Of the event with this id, else of the session.
    pub(super) fn read(audit: &mut Audit, id: &str) -> Result<Why, StoreError> {
        let event = Filter { event_id: Some(id.to_owned()), ..Filter::default() };
        let session = Filter { session_id: Some(id.to_owned()), ..Filter::default() };
        let mut rows = Vec::new();
        for filter in [event, session] {
            rows = audit.list(&filter, Order::NewestFirst, None, MOST)?;
            if !rows.is_empty() {
                break;
            }
        }
        rows.reverse();
        let (traces, sealed_traces) = audit.traces(id, MOST)?;
        Ok(Why { rows, traces, sealed_traces })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.traces.is_empty() && self.sealed_traces == 0
    }

    /// One paragraph an event, one line a hook.
    pub(super) fn told(&self) -> String {
        let mut text = String::new();
        let mut told: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !told.contains(&row.event_id.as_str()) {
                told.push(&row.event_id);
                text.push_str(&self.event(row));
            }
        }
        for trace in self.traces.iter().filter(|trace| !told.contains(&trace.event_id.as_str())) {
            let about = about(trace.tool_name.as_deref());
            text.push_str(&format!("{}{about} (event {})\n", trace.event, trace.event_id));
            text.push_str(&self.of_trace(trace));
        }
        if self.sealed_traces > 0 {
            let n = self.sealed_traces;
            text.push_str(&format!("{n} filter traces are sealed with a key that is not at hand\n"));
        } else if self.traces.is_empty() {
            text.push_str(
                "which hooks a filter ruled out was not kept: filter_trace = true under [audit] keeps it\n",
            );
        }
        text
    }

    /// An event that some hook ran on.
    fn event(&self, first: &Entry) -> String {
        let (at, about) = (time(first.created_at), about(first.tool_name.as_deref()));
        let mut text = format!("{at} {}{about} (event {})\n", first.event, first.event_id);
        for row in self.rows.iter().filter(|row| row.event_id == first.event_id) {
            text.push_str(&format!("  hook {} {}{}\n", row.hook_label, verb(row), because(row)));
        }
        let is_same =
            |trace: &&FilterTrace| trace.event_id == first.event_id && trace.session_id == first.session_id;
        if let Some(trace) = self.traces.iter().find(is_same) {
            text.push_str(&self.of_trace(trace));
        }
        text
    }

    /// What filters ruled out, and who was not asked any more because somebody had said no.
    fn of_trace(&self, trace: &FilterTrace) -> String {
        let mut text = filtered_out(trace);
        let ran = |key: &str| {
            let of_event =
                |row: &&Entry| row.event_id == trace.event_id && row.session_id == trace.session_id;
            self.rows.iter().filter(of_event).any(|row| row.hook_id.as_deref() == Some(key))
        };
        for looked in trace.looked.iter().filter(|looked| looked.out.is_none() && !ran(&looked.key)) {
            let why = match Point::from_word(&trace.event).map(Point::stage) {
                Some(Stage::Watch) => "its run is not over, see hookgate outbox list",
                _ => "another had stopped it by then",
            };
            text.push_str(&format!("  hook {} was concerned and left no row: {why}\n", looked.hook));
        }
        text
    }
}

fn about(tool: Option<&str>) -> String {
    tool.map(|tool| format!(" of {tool}")).unwrap_or_default()
}

fn verb(row: &Entry) -> String {
    let ms = row.duration_us / 1000;
    // a JSON hook decides nothing that takes time
    let after = if row.duration_us == 0 { String::new() } else { format!(" after {ms} ms") };
    let what = match row.decision.as_str() {
        "allow" if row.duration_us == 0 => return fired(row, "fired"),
        "block" if row.duration_us == 0 => return fired(row, "fired and stopped it"),
        "allow" => "let it through",
        "block" => "said no",
        "timeout" => "gave no answer in time",
        _ => "failed",
    };
    format!("{what}{after}")
}

fn fired(row: &Entry, what: &str) -> String {
    if row.times > 1 { format!("{what}, {} times in this answer", row.times) } else { what.to_owned() }
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
