use crate::bench::{Bench, head, load, tool_ran};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::future::BoxFuture;
use hookgate_core::gate::Watch;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType};
use hookgate_core::set::HookSet;
use hookgate_core::verdict::Trace;
use hookgate_core::word::Word;
use hookgate_handlers::outbox::{Claimed, End, Job, Outbox, origin_of};
use hookgate_handlers::watchers::{Kept, Limits, Watchers};
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

/// An outbox in memory, whose clock stands still: what failed is due again at once.
#[derive(Debug, Default)]
struct Shelf(Mutex<Jobs>);

#[derive(Debug, Default)]
struct Jobs {
    /// Kept, and whether it is claimed.
    jobs: Vec<(Claimed, bool)>,
    ended: Vec<(String, u32, End)>,
    given_back: usize,
    full: bool,
}

const ATTEMPTS: u32 = 3;

impl Outbox for Shelf {
    fn keep(&self, job: Job) -> bool {
        let mut shelf = self.0.lock().unwrap();
        let id = i64::try_from(shelf.jobs.len()).unwrap();
        if !shelf.full {
            shelf.jobs.push((Claimed { job, id, attempt: 0 }, false));
        }
        !shelf.full
    }

    fn may_hold_jobs(&self) -> bool {
        !self.0.lock().unwrap().jobs.is_empty()
    }

    fn claim(&self, origins: &[String], limit: usize) -> Result<Vec<Claimed>, String> {
        let mut shelf = self.0.lock().unwrap();
        let free = shelf.jobs.iter_mut().filter(|(held, taken)| !taken && origins.contains(&held.job.origin));
        let claim = |(held, taken): &mut (Claimed, bool)| {
            *taken = true;
            held.attempt += 1;
            held.clone()
        };
        Ok(free.take(limit).map(claim).collect())
    }

    fn settle(&self, claimed: &Claimed, end: &End) -> Result<(), String> {
        let mut shelf = self.0.lock().unwrap();
        let ended = (claimed.job.event_id.clone(), claimed.attempt, end.clone());
        shelf.ended.push(ended);
        match end {
            End::Again(_) => shelf
                .jobs
                .iter_mut()
                .filter(|(held, _)| held.id == claimed.id)
                .for_each(|(_, taken)| *taken = false),
            End::Done | End::Dead(_) => shelf.jobs.retain(|(held, _)| held.id != claimed.id),
        }
        Ok(())
    }

    fn next_due(&self, _: &[String]) -> Result<Option<Duration>, String> {
        Ok(None)
    }

    fn attempts(&self) -> u32 {
        ATTEMPTS
    }

    fn flush(&self, _: Duration) {}

    fn give_back(&self) {
        self.0.lock().unwrap().given_back += 1;
    }
}

/// Fails as it is told to, by the event's number.
#[derive(Debug)]
struct Moody;

impl Handler for Moody {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let event = call.facts.head().event_id.clone();
        Box::pin(async move {
            match event.as_str() {
                "wrong" => Err(Fault::failed("it is wrong", "it is wrong")),
                "away" => Err(Fault::passing("it is away", "it is away")),
                "late" => std::future::pending().await,
                _ => Ok(Answer::default()),
            }
        })
    }
}

fn with_shelf(
    handler: Arc<dyn Handler>,
    origin: Option<&str>,
) -> (Bench, Arc<Shelf>, Watchers, Arc<Mutex<Vec<String>>>) {
    let workshop = Workshop::empty().with(HandlerType::Command, move |_, _| Ok(handler.clone()));
    let hook = json!({
        "id": "n", "event": "post_tool_use", "timeout_ms": 20, "handler": {"type": "command", "argv": ["x"]}
    });
    let bench = Bench::new(tempfile::tempdir().unwrap(), &workshop, &hook);
    let loaded = load(bench.dir.path(), &workshop, &hook);
    let shelf = Arc::new(Shelf::default());
    let kept = Kept {
        outbox: shelf.clone(),
        dispatcher: Arc::new(Dispatcher::new(HookSet::new(loaded.hooks).unwrap())),
        origins: vec![origin.map_or_else(|| origin_of(bench.dir.path()), str::to_owned)],
    };
    let told = Arc::new(Mutex::new(Vec::new()));
    let lines = told.clone();
    let on_trace = move |trace: &Trace| {
        let codes: Vec<&str> = trace.warnings.iter().map(|warning| warning.code.as_str()).collect();
        lines.lock().unwrap().push(codes.join(" "));
    };
    let watchers = Watchers::with_outbox(bench.around.clone(), LIMITS, Some(Box::new(on_trace)), Some(kept));
    (bench, shelf, watchers, told)
}

async fn watch(bench: &Bench, watchers: &Watchers, events: &[&str]) {
    for event in events {
        watchers.submit(bench.dispatcher.watch(&head(event), tool_ran()));
    }
    assert_eq!(watchers.drain(Duration::from_secs(20)).await, 0);
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_what_is_wrong_is_not() {
    let (bench, shelf, watchers, told) = with_shelf(Arc::new(Moody), None);
    watch(&bench, &watchers, &["fine", "wrong", "away", "late"]).await;
    // what failed meanwhile became due behind the last look
    while !shelf.0.lock().unwrap().jobs.is_empty() {
        watchers.resume();
        watch(&bench, &watchers, &[]).await;
    }
    let shelf = shelf.0.lock().unwrap();
    let of = |event: &str| -> Vec<(u32, End)> {
        shelf
            .ended
            .iter()
            .filter(|(id, ..)| id == event)
            .map(|(_, attempt, end)| (*attempt, end.clone()))
            .collect()
    };
    assert_eq!(of("fine"), [(1, End::Done)]);
    assert_eq!(of("wrong"), [(1, End::Dead("it is wrong".into()))]);
    for (event, why) in [("away", "it is away"), ("late", "no answer in time")] {
        let again = End::Again(why.into());
        assert_eq!(of(event), [(1, again.clone()), (2, again), (3, End::Dead(why.into()))]);
    }
    // one row each, of how it ended
    let mut rows: Vec<(String, String)> =
        bench.memory.records().into_iter().map(|row| (row.event_id, row.decision.to_string())).collect();
    rows.sort();
    let expected = [("away", "error"), ("fine", "allow"), ("late", "timeout"), ("wrong", "error")];
    assert_eq!(rows, expected.map(|(event, decision)| (event.to_owned(), decision.to_owned())));
    // people hear of the first try and of the end
    let mut told = told.lock().unwrap().clone();
    told.sort();
    assert_eq!(told, ["", "dead_letter", "dead_letter", "dead_letter", "postponed", "postponed"]);
    assert_eq!((watchers.postponed(), shelf.given_back), (0, 0));
}

#[tokio::test]
async fn what_the_outbox_cannot_take_runs_from_memory() {
    let (bench, shelf, watchers, _) = with_shelf(Arc::new(Moody), None);
    shelf.0.lock().unwrap().full = true;
    watch(&bench, &watchers, &["a", "b"]).await;
    assert_eq!((bench.memory.records().len(), watchers.overflowed()), (2, 0));
}

#[tokio::test]
async fn jobs_of_other_folders_stay_and_those_of_gone_hooks_are_dead() {
    let (bench, shelf, watchers, _) = with_shelf(Arc::new(Moody), Some("/elsewhere"));
    watch(&bench, &watchers, &["a"]).await;
    assert_eq!(shelf.0.lock().unwrap().jobs.len(), 1, "it is not this door's");
    let facts = shelf.0.lock().unwrap().jobs[0].0.job.facts.clone();
    let job = |hook: &str, facts: &str| Job {
        hook: hook.into(),
        event_id: "x".into(),
        origin: "/elsewhere".into(),
        facts: facts.into(),
    };
    shelf.keep(job("gone", &facts));
    shelf.keep(job("n", "{}"));
    watchers.resume();
    watch(&bench, &watchers, &[]).await;
    let ends: Vec<End> = shelf.0.lock().unwrap().ended.iter().map(|(.., end)| end.clone()).collect();
    let gone = "no hook `gone` listens to such events any more";
    assert_eq!(ends, [End::Dead(gone.into()), End::Dead("the kept event cannot be read".into())]);
}

#[tokio::test]
async fn what_is_under_way_at_the_end_is_given_back() {
    let (bench, shelf, watchers, _) = with_shelf(Arc::new(Slow::default()), None);
    watchers.submit(bench.dispatcher.watch(&head("e-1"), tool_ran()));
    while shelf.0.lock().unwrap().jobs.iter().all(|(_, taken)| !taken) {
        tokio::task::yield_now().await;
    }
    assert_eq!(watchers.drain(Duration::from_millis(1)).await, 1);
    assert_eq!(shelf.0.lock().unwrap().given_back, 1);
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
