//! What a gate costs before any handler runs: no hook, hooks ruled out by matcher, hooks ruled out by condition.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may stop")]

use criterion::{Criterion, criterion_group, criterion_main};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{GateEvent, Head};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::{Surroundings, Timer};
use hookgate_core::hook::Source;
use hookgate_core::point::Point;
use hookgate_core::record::Memory;
use hookgate_core::set::HookSet;
use hookgate_core::verdict::{Ruling, Verdict};
use serde_json::{Value, json};
use std::future::Future;
use std::hint::black_box;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Nothing here waits, so no clock is needed.
#[derive(Debug)]
struct NoTimer;
impl Timer for NoTimer {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }
}

fn dispatcher(count: usize, one: impl Fn(usize) -> String) -> Dispatcher {
    let text = format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","));
    let read = define::read("bench.json", &text, Source::User, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    Dispatcher::new(HookSet::new(read.hooks).unwrap())
}

fn at_once(asked: impl Future<Output = Ruling>) -> Ruling {
    match pin!(asked).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(ruling) => ruling,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// An event with an input that conditions can look at.
fn full() -> GateEvent {
    let tool_input = json!({"command": "ls -la /srv/data", "path": "/srv/data", "n": 3});
    GateEvent::PreToolUse { tool_name: "exec".into(), tool_input }
}

/// An event that costs next to nothing itself.
fn light() -> GateEvent {
    GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: Value::Null }
}

fn ask(c: &mut Criterion, name: &str, dispatcher: &Dispatcher, event: fn() -> GateEvent) {
    let around = Surroundings {
        timer: Arc::new(NoTimer),
        recorder: Arc::new(Memory::new(10)),
        budget: Duration::from_secs(60),
    };
    let head = Head { event_id: "e".into(), session_id: "s".into(), ..Head::default() };
    c.benchmark_group("ask").bench_function(name, |b| {
        b.iter(|| {
            let ruling = at_once(dispatcher.ask(&around, black_box(&head), black_box(event())));
            assert_eq!(ruling.verdict, Verdict::Allow);
        });
    });
}

const SCRIPT: &str = r#""handler":{"type":"script","source":"x"}"#;

/// What making and dropping the events costs without any engine, to be taken off the others.
fn bare(c: &mut Criterion) {
    let mut group = c.benchmark_group("no engine");
    group.bench_function("light event", |b| b.iter(|| drop(black_box(light()))));
    group.bench_function("full event", |b| b.iter(|| drop(black_box(full()))));
}

fn ruled_out(c: &mut Criterion) {
    let other_point = |i| format!(r#"{{"id":"h{i}","event":"stop",{SCRIPT}}}"#);
    let nobody = dispatcher(1, other_point);
    c.benchmark_group("listens_at")
        .bench_function("no hook", |b| b.iter(|| nobody.listens_at(black_box(Point::PreToolUse))));
    ask(c, "no hook listens at the point", &dispatcher(1, other_point), light);
    for count in [10, 1000] {
        let plain = |i| format!(r#"{{"id":"h{i}","event":"pre_tool_use","matcher":"tool{i}",{SCRIPT}}}"#);
        ask(c, &format!("{count} ruled out by plain matchers"), &dispatcher(count, plain), light);
        let pattern =
            |i| format!(r#"{{"id":"h{i}","event":"pre_tool_use","matcher":"mcp__s{i}__.*",{SCRIPT}}}"#);
        ask(c, &format!("{count} ruled out by pattern matchers"), &dispatcher(count, pattern), light);
    }
    for count in [1, 100] {
        let condition = |i| {
            format!(
                r#"{{"id":"h{i}","event":"pre_tool_use","if_expr":"toolInput.path.startsWith('/etc/{i}')",{SCRIPT}}}"#
            )
        };
        ask(c, &format!("{count} ruled out by conditions"), &dispatcher(count, condition), full);
    }
}

criterion_group!(benches, bare, ruled_out);
criterion_main!(benches);
