//! What a gate costs before any handler runs: no hook, hooks ruled out by matcher, hooks ruled out by condition.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may stop")]

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::facts::{GateEvent, Head};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::{Surroundings, Timer};
use hookgate_core::hook::Source;
use hookgate_core::record::Memory;
use hookgate_core::set::HookSet;
use hookgate_core::verdict::{Ruling, Verdict};
use serde_json::json;
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

fn ask(c: &mut Criterion, group: &str, name: &str, dispatcher: &Dispatcher) {
    let around = Surroundings {
        timer: Arc::new(NoTimer),
        recorder: Arc::new(Memory::new(10)),
        budget: Duration::from_secs(60),
    };
    let head = Head { event_id: "e".into(), session_id: "s".into(), ..Head::default() };
    let event = || GateEvent::PreToolUse {
        tool_name: "exec".into(),
        tool_input: json!({"command": "ls -la /srv/data", "path": "/srv/data", "n": 3}),
    };
    c.benchmark_group(group).bench_function(name, |b| {
        b.iter_batched(
            event,
            |event| {
                // the event itself is the caller's, also what dropping it costs
                let asked = dispatcher.ask(&around, black_box(&head), event);
                let ruling = at_once(asked);
                assert_eq!(ruling.verdict, Verdict::Allow);
                ruling
            },
            BatchSize::SmallInput,
        );
    });
}

const SCRIPT: &str = r#""handler":{"type":"script","source":"x"}"#;

/// What making and dropping such an event costs without any engine, to be taken off the others.
fn bare(c: &mut Criterion) {
    let event = || GateEvent::PreToolUse {
        tool_name: "exec".into(),
        tool_input: json!({"command": "ls -la /srv/data", "path": "/srv/data", "n": 3}),
    };
    c.benchmark_group("ask").bench_function("nobody: the event is only dropped", |b| {
        b.iter_batched(event, |event| drop(black_box(event)), BatchSize::SmallInput);
    });
}

fn ruled_out(c: &mut Criterion) {
    let other_point = |i| format!(r#"{{"id":"h{i}","event":"stop",{SCRIPT}}}"#);
    ask(c, "ask", "no hook listens at the point", &dispatcher(1, other_point));
    for count in [10, 1000] {
        let plain = |i| format!(r#"{{"id":"h{i}","event":"pre_tool_use","matcher":"tool{i}",{SCRIPT}}}"#);
        ask(c, "ask", &format!("{count} ruled out by plain matchers"), &dispatcher(count, plain));
        let pattern =
            |i| format!(r#"{{"id":"h{i}","event":"pre_tool_use","matcher":"mcp__s{i}__.*",{SCRIPT}}}"#);
        ask(c, "ask", &format!("{count} ruled out by pattern matchers"), &dispatcher(count, pattern));
    }
    for count in [1, 100] {
        let condition = |i| {
            format!(
                r#"{{"id":"h{i}","event":"pre_tool_use","if_expr":"toolInput.path.startsWith('/etc/{i}')",{SCRIPT}}}"#
            )
        };
        ask(c, "ask", &format!("{count} ruled out by conditions"), &dispatcher(count, condition));
    }
}

criterion_group!(benches, bare, ruled_out);
criterion_main!(benches);
