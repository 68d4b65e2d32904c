//! What can be asked of a store, and the shape of the answers.

use crate::row::{Dedup, Hash, Row};
use crate::row::{Sealed, hex};
use serde::Serialize;
use std::collections::BTreeMap;

/// Which rows; what is not said is any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// Made at this time or later, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Made before this time.
    pub until: Option<i64>,
    /// Of this session.
    pub session_id: Option<String>,
    /// Of this tenant.
    pub tenant_id: Option<String>,
    /// Of this agent.
    pub agent_id: Option<String>,
    /// Of the hook with this key or label.
    pub hook: Option<String>,
    /// At this point.
    pub event: Option<String>,
    /// Of the event with this id.
    pub event_id: Option<String>,
    /// About this tool.
    pub tool_name: Option<String>,
    /// That ended so.
    pub decision: Option<String>,
    /// With this digest of the input.
    pub input_hash: Option<Hash>,
    /// In this trace.
    pub trace_id: Option<String>,
}

/// In which order rows come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were written.
    OldestFirst,
    /// The last written first.
    NewestFirst,
}

/// A row as it is shown. The names are those of the table's columns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// The row's number; grows, is never used again.
    pub id: i64,
    /// The hook's key; none once the hook was deleted.
    pub hook_id: Option<String>,
    /// The hook's name for people.
    pub hook_label: String,
    /// The version of its definition.
    pub hook_version: String,
    /// The session.
    pub session_id: String,
    /// The tenant.
    pub tenant_id: Option<String>,
    /// The agent.
    pub agent_id: Option<String>,
    /// The event's id.
    pub event_id: String,
    /// The point.
    pub event: String,
    /// The tool.
    pub tool_name: Option<String>,
    /// The digest of the input, in hex.
    pub input_hash: String,
    /// How it ended.
    pub decision: String,
    /// What lies behind it.
    pub cause: Option<String>,
    /// How long it took.
    pub duration_ms: u64,
    /// The same, finer.
    pub duration_us: u64,
    /// Hook and event, in hex.
    pub dedup_key: String,
    /// The error in the open.
    pub error: Option<String>,
    /// The error in full, once it was opened.
    pub error_detail: Option<String>,
    /// The key that opens it.
    pub key_id: Option<String>,
    /// Fields that the hook wanted to change and may not.
    pub refused_fields: Vec<String>,
    /// What a question to a model cost.
    pub tokens: Option<u64>,
    /// How many firings it stands for.
    pub times: u64,
    /// The trace.
    pub trace_id: Option<String>,
    /// When, in milliseconds since 1970.
    pub created_at: i64,
    /// The chain that the row is in.
    pub writer: String,
    /// Its place in the chain.
    pub seq: u64,
    /// Its hash, in hex.
    pub hash: String,
    /// The detail as it is stored.
    #[serde(skip)]
    pub sealed: Option<Sealed<'static>>,
    #[serde(skip)]
    pub(crate) dedup: Dedup,
}

/// Numbers over rows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Stats {
    /// How many rows.
    pub rows: u64,
    /// The first row's time.
    pub first: Option<i64>,
    /// The last row's time.
    pub last: Option<i64>,
    /// Rows by decision.
    pub decisions: BTreeMap<String, u64>,
    /// By label.
    pub hooks: BTreeMap<String, HookStats>,
}

/// Numbers over the rows of one hook.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HookStats {
    /// How many rows.
    pub rows: u64,
    /// Rows by decision.
    pub decisions: BTreeMap<String, u64>,
    /// How long they took together, in microseconds.
    pub total_us: u64,
    /// The longest, in microseconds.
    pub longest_us: u64,
}

/// A row's place in its chain.
#[derive(Debug, Clone, Copy)]
pub struct InChain<'a> {
    /// The row's number.
    pub id: i64,
    /// The chain.
    pub writer: &'a str,
    /// The place.
    pub seq: u64,
    /// The hash.
    pub hash: Hash,
}

impl Filter {
    /// True if a row is wanted. Databases that can ask better do.
    pub(crate) fn wants(&self, row: &Row<'_>) -> bool {
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        self.since.is_none_or(|since| row.created_at >= since)
            && self.until.is_none_or(|until| row.created_at < until)
            && is(&self.session_id, Some(row.session_id))
            && is(&self.tenant_id, row.tenant_id)
            && is(&self.agent_id, row.agent_id)
            && self.hook.as_deref().is_none_or(|hook| hook == row.label || hook == row.hook)
            && is(&self.event, Some(row.event))
            && is(&self.event_id, Some(row.event_id))
            && is(&self.tool_name, row.tool_name)
            && is(&self.decision, Some(row.decision))
            && self.input_hash.is_none_or(|hash| hash == row.input_hash)
            && is(&self.trace_id, row.trace_id)
    }
}

impl Entry {
    /// The entry of a row. An empty hook's key is a deleted hook.
    pub(crate) fn of(row: &Row<'_>, place: InChain<'_>) -> Entry {
        let refused = row.refused_fields.as_deref().and_then(|json| serde_json::from_str(json).ok());
        Entry {
            id: place.id,
            hook_id: (!row.hook.is_empty()).then(|| row.hook.to_owned()),
            hook_label: row.label.to_owned(),
            hook_version: row.version.to_owned(),
            session_id: row.session_id.to_owned(),
            tenant_id: row.tenant_id.map(str::to_owned),
            agent_id: row.agent_id.map(str::to_owned),
            event_id: row.event_id.to_owned(),
            event: row.event.to_owned(),
            tool_name: row.tool_name.map(str::to_owned),
            input_hash: hex(&row.input_hash),
            decision: row.decision.to_owned(),
            cause: row.cause.map(str::to_owned),
            duration_ms: row.duration_us / 1000,
            duration_us: row.duration_us,
            dedup_key: hex(&row.dedup),
            error: row.error.map(str::to_owned),
            error_detail: None,
            key_id: row.detail.as_ref().map(|sealed| sealed.key_id.clone().into_owned()),
            refused_fields: refused.unwrap_or_default(),
            tokens: row.tokens,
            times: row.times,
            trace_id: row.trace_id.map(str::to_owned),
            created_at: row.created_at,
            writer: place.writer.to_owned(),
            seq: place.seq,
            hash: hex(&place.hash),
            sealed: row.detail.clone().map(Sealed::into_owned),
            dedup: row.dedup,
        }
    }
}

impl Stats {
    /// Adds rows of one hook that ended the same way.
    pub(crate) fn add(&mut self, label: &str, decision: &str, group: &Group) {
        let plus = |number: &mut u64, more: u64| *number = number.saturating_add(more);
        plus(&mut self.rows, group.rows);
        self.first = self.first.into_iter().chain([group.first]).min();
        self.last = self.last.into_iter().chain([group.last]).max();
        plus(self.decisions.entry(decision.to_owned()).or_default(), group.rows);
        let hook = self.hooks.entry(label.to_owned()).or_default();
        plus(&mut hook.rows, group.rows);
        plus(hook.decisions.entry(decision.to_owned()).or_default(), group.rows);
        plus(&mut hook.total_us, group.total_us);
        hook.longest_us = hook.longest_us.max(group.longest_us);
    }
}

/// Numbers over rows of one hook that ended the same way.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    pub(crate) rows: u64,
    pub(crate) first: i64,
    pub(crate) last: i64,
    pub(crate) total_us: u64,
    pub(crate) longest_us: u64,
}

impl Group {
    /// Adds one row.
    pub(crate) fn add(&mut self, at: i64, us: u64) {
        self.rows = self.rows.saturating_add(1);
        (self.first, self.last) = (self.first.min(at), self.last.max(at));
        self.total_us = self.total_us.saturating_add(us);
        self.longest_us = self.longest_us.max(us);
    }
}
