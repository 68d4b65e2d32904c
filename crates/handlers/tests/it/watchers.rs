use crate::bench::{Bench, head, tool_ran};
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::Watch;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_handlers::watchers::{Limits, Outbox, Watchers};
use hookgate_handlers::workshop::Workshop;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Waits, and counts how many wait at the same time.
#[derive(Debug, Default)]
struct Slow {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Handler for Slow {
    fn ask<'a>(&'a self, _: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            Ok(Answer::default())
        })
    }
}

fn bench() -> (Bench, Arc<Slow>) {
    let slow = Arc::new(Slow::default());
    let made = slow.clone();
    let workshop = Workshop::empty().with(HandlerType::Command, move |_, _| Ok(made.clone()));
    let hook = json!({"id": "n", "event": "post_tool_use", "handler": {"type": "command", "argv": ["x"]}});
    (Bench::new(tempfile::tempdir().unwrap(), &workshop, &hook), slow)
}

fn work(bench: &Bench, count: usize) -> Vec<Watch> {
    (0..count).flat_map(|n| bench.dispatcher.watch(&head(&format!("e-{n}")), tool_ran())).collect()
}

const LIMITS: Limits = Limits { at_a_time: 3, waiting: 10 };

#[tokio::test]
async fn nobody_waits_and_everything_has_a_bound() {
    let (bench, slow) = bench();
    let told = Arc::new(AtomicUsize::new(0));
    let count = told.clone();
    let on_trace = move |_: &_| {
        count.fetch_add(1, Ordering::SeqCst);
    };
    let watchers = Watchers::told(bench.around.clone(), LIMITS, Some(Box::new(on_trace)));
    let began = Instant::now();
    watchers.submit(work(&bench, 25));
    assert!(began.elapsed() < Duration::from_millis(40), "{:?}", began.elapsed());
    assert_eq!(watchers.overflowed(), 15);
    assert!(watchers.drain(Duration::from_millis(60)).await > 0);
    assert_eq!(watchers.drain(Duration::from_secs(10)).await, 0);
    assert_eq!(slow.most.load(Ordering::SeqCst), 3);
    assert_eq!((bench.memory.records().len(), told.load(Ordering::SeqCst)), (10, 10));
    watchers.submit(work(&bench, 1));
    assert_eq!(watchers.drain(Duration::from_secs(10)).await, 0);
}

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Watch>>);

impl Outbox for Kept {
    fn spill(&self, watch: Watch) -> Option<Watch> {
        let mut kept = self.0.lock().unwrap();
        if kept.len() == 4 {
            return Some(watch);
        }
        kept.push(watch);
        None
    }
}

#[tokio::test]
async fn what_does_not_fit_goes_to_the_outbox() {
    let (bench, _) = bench();
    let outbox = Arc::new(Kept::default());
    let watchers = Watchers::with_outbox(bench.around.clone(), LIMITS, None, Some(outbox.clone()));
    watchers.submit(work(&bench, 16));
    assert_eq!((outbox.0.lock().unwrap().len(), watchers.overflowed()), (4, 2));
}

#[test]
fn without_a_runtime_the_work_waits() {
    let (bench, _) = bench();
    let watchers = Watchers::new(bench.around.clone(), LIMITS);
    watchers.submit(work(&bench, 2));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(runtime.block_on(watchers.drain(Duration::from_secs(10))), 0);
    assert_eq!(bench.memory.records().len(), 2);
}
