//! What a record costs the processor before it is handed over: canonical JSON, digest, row, seal.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may stop")]

use criterion::{Criterion, criterion_group, criterion_main};
use hookgate_core::facts::{Facts, GateEvent, Head};
use hookgate_core::record::{Record, Recorder, hash_with};
use hookgate_core::verdict::Decision;
use hookgate_store::keys::Keys;
use hookgate_store::spool::Durability;
use hookgate_store::store::{Options, Store};
use std::hint::black_box;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

fn facts() -> Facts {
    let head = Head {
        event_id: "01J9ZQ3V7M5T8K2X4R6W1N0B3C".into(),
        session_id: "s-7f3a91c2".into(),
        tenant_id: Some("acme".into()),
        ..Head::default()
    };
    let tool_input = serde_json::json!({
        "command": "git -C /srv/app log --oneline -n 20 | head", "cwd": "/srv/app", "timeout": 30,
    });
    Facts::of_gate(&head, GateEvent::PreToolUse { tool_name: "exec".into(), tool_input })
}

fn record(facts: &Facts, number: u64, recorder: &dyn Recorder, failed: bool) -> Record {
    let head = facts.head();
    Record {
        hook: "no-destructive".into(),
        label: "no destructive commands".into(),
        hook_version: "0123456789ab".into(),
        session_id: head.session_id.clone(),
        tenant_id: head.tenant_id.clone(),
        agent_id: None,
        event_id: format!("e-{number}"),
        event: "pre_tool_use",
        tool_name: Some("exec".into()),
        input_hash: hash_with(facts, |canonical| recorder.digest(canonical)),
        decision: Decision::Allow,
        cause: None,
        duration: Duration::from_micros(812),
        error: failed.then(|| "it failed".into()),
        error_detail: failed.then(|| "x".repeat(300)),
        refused_fields: Vec::new(),
        tokens: None,
        trace_id: None,
    }
}

/// `relaxed` with room for everything: only what the caller does is measured.
fn making_and_handing_over(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    let (keys, _) = Keys::load_or_make(&dir.path().join("keys")).unwrap();
    let facts = facts();
    for (name, keys) in [("without a key", None), ("with a key", Some(keys))] {
        let folder = dir.path().join(name);
        let options = Options {
            durability: Durability::Relaxed,
            keys,
            queue_bytes: 1 << 30,
            spool_bytes: 1 << 40,
            ..Options::new(folder)
        };
        let store = Store::open(&options).unwrap();
        let mut group = c.benchmark_group(format!("a record, {name}"));
        let mut number = 0;
        for (what, failed) in [("allowed", false), ("failed, with a sealed detail", true)] {
            group.bench_function(what, |b| {
                b.iter(|| {
                    number += 1;
                    let record = record(black_box(&facts), number, &store, failed);
                    let mut kept = store.record(record);
                    let mut context = Context::from_waker(Waker::noop());
                    assert!(matches!(kept.as_mut().poll(&mut context), Poll::Ready(Ok(()))));
                });
            });
        }
        group.finish();
    }
    let mut group = c.benchmark_group("parts of it");
    let memory = hookgate_core::record::Memory::new(1);
    group.bench_function("canonical JSON and digest", |b| {
        b.iter(|| hash_with(black_box(&facts), |canonical| memory.digest(canonical)));
    });
    group.bench_function("the record", |b| b.iter(|| record(black_box(&facts), 1, &memory, false)));
    group.finish();
}

criterion_group!(benches, making_and_handing_over);
criterion_main!(benches);
