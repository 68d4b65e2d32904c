//! A million events leave nothing behind.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, missing_docs, reason = "a test may stop")]
#![allow(clippy::disallowed_methods, reason = "the test looks at the process; core does not")]

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::event::{Chunk, Message, Origin, Role, WatchEvent};
use hookgate_core::facts::{GateEvent, Head, LifeEvent};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::{Surroundings, Timer};
use hookgate_core::handler::{Answer, Call, Fault, Handler};
use hookgate_core::hook::{Source, Work};
use hookgate_core::record::Memory;
use hookgate_core::session::Session;
use hookgate_core::set::HookSet;
use serde_json::json;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

#[derive(Debug)]
struct NoTimer;
impl Timer for NoTimer {
    fn now(&self) -> Duration {
        Duration::ZERO
    }
    fn sleep(&self, _: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// Allows, with something in each member of its answer.
#[derive(Debug)]
struct Allows;
impl Handler for Allows {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let updated = json!({"command": "changed"}).as_object().cloned();
        let answer = Answer {
            updated_input: updated,
            console: call.json.to_owned(),
            ..Answer::with_decision("allow")
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

const HOOKS: &str = r#"[
    {"target": "stream", "regex": "pass\\w+d", "actions": [{"type": "log"}, {"type": "queue-message"}]},
    {"target": "chat", "regex": "sorry", "maxTriggers": 5, "actions": [{"type": "log"}]},
    {"target": "tool", "actions": [{"type": "warn"}]},
    {"id": "g", "event": "pre_tool_use", "matcher": "ex.c", "if_expr": "toolInput.n % 2 == 0",
     "handler": {"type": "script", "source": "x"}},
    {"id": "w", "event": "post_tool_use", "handler": {"type": "script", "source": "x"}}
]"#;

fn now<T>(asked: impl Future<Output = T>) -> T {
    match pin!(asked).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("nothing here waits"),
    }
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse().unwrap()
}

struct World {
    dispatcher: Dispatcher,
    around: Surroundings,
    session: Session,
}

impl World {
    fn new() -> World {
        let mut read = define::read("h.json", HOOKS, Source::User, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        for hook in &mut read.hooks {
            if let Work::Handler { run, .. } = &mut hook.work {
                *run = Some(Arc::new(Allows));
            }
        }
        World {
            dispatcher: Dispatcher::new(HookSet::new(read.hooks).unwrap()),
            around: Surroundings {
                timer: Arc::new(NoTimer),
                recorder: Arc::new(Memory::new(1000)),
                budget: Duration::from_secs(1),
            },
            session: Session::new(),
        }
    }

    /// Ten events: an answer in pieces, a message, a tool's gate, its run and what watches it.
    fn turn(&mut self, n: u64) {
        let mut effects = Vec::new();
        let pieces = [
            Chunk::Content("the pass"),
            Chunk::Content("word is"),
            Chunk::Reasoning("hm"),
            Chunk::ToolCallDelta { index: 0, id: Some("c"), text: "{\"a\":" },
            Chunk::ToolCallDelta { index: 0, id: None, text: "1}" },
            Chunk::Finish { reason: "stop" },
        ];
        for piece in pieces {
            self.dispatcher.tell(&mut self.session, &WatchEvent::Chunk(piece), &mut effects);
        }
        let message = Message { role: Role::Assistant, content: "sorry", origin: Origin::Model };
        self.dispatcher.tell(&mut self.session, &WatchEvent::Message(message), &mut effects);
        self.session.end_response();
        let head = Head { event_id: n.to_string(), session_id: (n % 7).to_string(), ..Head::default() };
        let input = json!({"n": n, "command": "ls"});
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: input.clone() };
        let ruling = now(self.dispatcher.ask(&self.around, &head, event));
        assert_eq!(ruling.trace.ran.len(), usize::from(n.is_multiple_of(2)));
        let event =
            LifeEvent::PostToolUse { tool_name: "exec".into(), tool_input: input, tool_output: "x".into() };
        for watch in self.dispatcher.watch(&head, event) {
            now(watch.run(&self.around));
        }
    }
}

#[test]
fn does_not_grow_with_the_number_of_events() {
    let mut world = World::new();
    (0..5_000).for_each(|n| world.turn(n));
    let before = resident();
    (5_000..105_000).for_each(|n| world.turn(n));
    let after = resident();
    assert!(after < before + 1024, "{before} KiB before, {after} KiB after a million events");
}
