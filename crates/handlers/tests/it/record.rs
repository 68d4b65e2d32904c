//! What the chain owes to the record, and the record to the chain.

use crate::bench::{Bench, head, tool_ran};
use hookgate_core::facts::Facts;
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::Surroundings;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_core::record::{Record, RecordError, Recorder};
use hookgate_core::verdict::Cause;
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
struct Allows;

impl Handler for Allows {
    fn ask<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async { Ok(Answer { decision: Some("allow".into()), ..Answer::default() }) })
    }
}

/// A store that takes nothing, or refuses.
#[derive(Debug)]
struct Store(Option<&'static str>);

impl Recorder for Store {
    fn record(&self, _: Record) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.0 {
            Some(why) => Box::pin(std::future::ready(Err(RecordError(why.into())))),
            None => Box::pin(std::future::pending()),
        }
    }
}

fn bench(hooks: &Value) -> Bench {
    let workshop = Workshop::empty().with(HandlerType::Command, |_, _| Ok(Arc::new(Allows)));
    Bench::new(tempfile::tempdir().unwrap(), &workshop, hooks)
}

fn hook(event: &str) -> Value {
    json!({"id": "h", "event": event, "handler": {"type": "command", "argv": ["x"]}})
}

#[tokio::test(start_paused = true)]
async fn a_gate_without_its_record_blocks_within_the_budget() {
    for (store, words) in [(None, "in time"), (Some("disk full"), "disk full")] {
        let mut bench = bench(&hook("pre_tool_use"));
        bench.around = Surroundings {
            recorder: Arc::new(Store(store)),
            budget: Duration::from_millis(400),
            ..bench.around
        };
        let began = tokio::time::Instant::now();
        let ruling = bench.ls().await;
        assert!(began.elapsed() <= Duration::from_millis(401), "{:?}", began.elapsed());
        let block = ruling.block().unwrap();
        assert_eq!(block.cause, Cause::Record);
        assert!(block.reason.contains(words), "{}", block.reason);
    }
}

#[tokio::test]
async fn a_record_tells_the_version_of_the_definition() {
    let mut seen = Vec::new();
    for definition in [
        hook("pre_tool_use"),
        // another order of the same
        json!({"handler": {"argv": ["x"], "type": "command"}, "event": "pre_tool_use", "id": "h"}),
        json!({"id": "h", "event": "pre_tool_use", "handler": {"type": "command", "argv": ["y"]}}),
    ] {
        let bench = bench(&definition);
        assert!(bench.ls().await.block().is_none());
        seen.push(bench.last().hook_version);
    }
    assert_eq!(seen[0].len(), 12);
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
}

#[tokio::test]
async fn an_event_that_was_kept_runs_again() {
    let bench = bench(&hook("post_tool_use"));
    let watch = bench.dispatcher.watch(&head("e-9"), tool_ran()).remove(0);
    let kept = watch.facts().to_json();
    let facts = Facts::from_json(&kept).unwrap();
    assert_eq!(&facts, watch.facts());
    let again = bench.dispatcher.watch_again("h", facts.clone()).unwrap();
    again.run(&bench.around).await;
    assert_eq!(bench.last().event_id, "e-9");
    assert!(bench.dispatcher.watch_again("gone", facts).is_none());
    assert!(Facts::from_json("{}").is_none());
}
