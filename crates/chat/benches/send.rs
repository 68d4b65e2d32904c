//! A scripted answer of 10,000 chunks through `send()`: what the whole loop costs for each chunk.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hookgate_chat::{ChatService, Role};
use hookgate_llm::Scripted;
use serde_json::json;
use std::time::{Duration, Instant};

const CHUNKS: u64 = 10_000;

fn model() -> Scripted {
    let chunks: Vec<_> =
        (0..CHUNKS).map(|i| json!({"type": "content", "text": format!("word {i} of many ")})).collect();
    Scripted::parse(&json!({"turns": [{"chunks": chunks}]}).to_string()).unwrap()
}

fn hooks(count: usize, one: impl Fn(usize) -> serde_json::Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let list: Vec<_> = (0..count).map(one).collect();
    std::fs::write(dir.path().join("hooks.json"), serde_json::Value::from(list).to_string()).unwrap();
    dir
}

fn send(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let model = model();
    let mut group = c.benchmark_group("send() of 10,000 chunks");
    group.throughput(Throughput::Elements(CHUNKS));
    let pattern = |i: usize| json!({"target": "stream", "regex": format!("secret_{i}\\b"), "actions": [{"type": "interrupt"}]});
    let log = |_| json!({"target": "stream", "chunks": ["content"], "actions": [{"type": "log", "message": "{{text}}"}]});
    let cases = [
        ("no hooks", hooks(0, pattern)),
        ("10 hooks with patterns", hooks(10, pattern)),
        ("100 hooks with patterns", hooks(100, pattern)),
        ("10 hooks that log every chunk", hooks(10, log)),
    ];
    for (name, dir) in cases {
        group.bench_function(name, |b| {
            b.iter_custom(|times| {
                let mut took = Duration::ZERO;
                for _ in 0..times {
                    let service =
                        ChatService::builder(model.clone()).environment(|_| None).hooks_dir(dir.path());
                    let service = service.build().unwrap();
                    service.add_message(Role::User, "q");
                    let started = Instant::now();
                    runtime.block_on(service.send()).unwrap();
                    took += started.elapsed();
                }
                took
            });
        });
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).without_plots();
    targets = send
}
criterion_main!(benches);
