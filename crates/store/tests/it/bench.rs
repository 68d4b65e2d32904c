//! What the tests share: records, and stores with a clock of their own.

use hookgate_core::record::{InputHash, Record, Recorder};
use hookgate_core::verdict::{Cause, Decision};
use hookgate_store::audit::Audit;
use hookgate_store::keys::Keys;
use hookgate_store::query::{Entry, Filter, Order};
use hookgate_store::spool::Durability;
use hookgate_store::store::{Options, Store};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// Long enough for a machine that has much to do.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A clock that is set by hand.
#[derive(Clone)]
pub(crate) struct Hand(Arc<AtomicI64>);

impl Hand {
    pub(crate) fn at(millis: i64) -> Hand {
        Hand(Arc::new(AtomicI64::new(millis)))
    }

    pub(crate) fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }

    pub(crate) fn clock(&self) -> hookgate_store::store::Clock {
        let hand = self.0.clone();
        Arc::new(move || hand.load(Ordering::SeqCst))
    }
}

pub(crate) fn record(hook: &str, event_id: &str) -> Record {
    Record {
        hook: hook.into(),
        label: format!("label of {hook}").into(),
        hook_version: "0123456789ab".into(),
        session_id: "s-1".into(),
        tenant_id: Some("acme".into()),
        agent_id: None,
        event_id: event_id.into(),
        event: "pre_tool_use",
        tool_name: Some("exec".into()),
        input_hash: InputHash([0xab; 32]),
        decision: Decision::Allow,
        cause: None,
        duration: Duration::from_micros(1500),
        error: None,
        error_detail: None,
        refused_fields: Vec::new(),
        tokens: None,
        times: 1,
        trace_id: None,
    }
}

pub(crate) fn failed(hook: &str, event_id: &str, detail: &str) -> Record {
    Record {
        decision: Decision::Error,
        cause: Some(Cause::Error),
        error: Some("it failed".into()),
        error_detail: Some(detail.into()),
        ..record(hook, event_id)
    }
}

pub(crate) fn options(dir: &Path) -> Options {
    let (keys, _) = Keys::load_or_make(&dir.join("keys")).unwrap();
    Options { keys: Some(keys), ..Options::new(dir) }
}

pub(crate) fn with(dir: &Path, durability: Durability) -> Options {
    Options { durability, ..options(dir) }
}

/// Writes records through the whole path.
pub(crate) fn keep(options: &Options, records: impl IntoIterator<Item = Record>) {
    let store = Store::open(options).unwrap();
    for record in records {
        wait(store.record(record)).unwrap();
    }
    store.flush(LONG).unwrap();
}

pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

pub(crate) fn all(options: &Options) -> Vec<Entry> {
    let mut audit = Audit::open(options).unwrap();
    assert_eq!(audit.found().left, None);
    audit.list(&Filter::default(), Order::OldestFirst, None, usize::MAX >> 1).unwrap()
}

pub(crate) fn event_ids(options: &Options) -> Vec<String> {
    all(options).into_iter().map(|entry| entry.event_id).collect()
}
