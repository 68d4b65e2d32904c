//! What every database of a store does, whichever it is.

use crate::bench::{Hand, LONG, failed, options, record, wait};
use hookgate_core::explain::{FilterTrace, FilteredBy, FilteredOut, Looked};
use hookgate_core::record::{InputHash, Record, Recorder};
use hookgate_core::verdict::Decision;
use hookgate_store::audit::Audit;
use hookgate_store::database::Database;
use hookgate_store::job::{JobCounts, JobFilter, JobState};
use hookgate_store::keys::Keys;
use hookgate_store::outbox::{Job, Outbox, Retry};
use hookgate_store::query::{Entry, Filter, Order};
use hookgate_store::store::{Backend, Options, Store};
use hookgate_store::{Memory, StoreError};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A store under test, with its clock.
pub(crate) struct Subject {
    pub(crate) options: Options,
    pub(crate) hand: Hand,
    _dir: tempfile::TempDir,
}

impl Subject {
    pub(crate) fn new(backend: Option<Backend>) -> Subject {
        let dir = tempfile::tempdir().unwrap();
        let hand = Hand::at(1_000_000);
        let options = Options { backend, clock: hand.clock(), ..options(dir.path()) };
        Subject { options, hand, _dir: dir }
    }

    fn keep(&self, records: impl IntoIterator<Item = Record>) {
        crate::bench::keep(&self.options, records);
    }

    fn audit(&self) -> Audit {
        Audit::open(&self.options).unwrap()
    }

    fn list(&self, filter: &Filter) -> Vec<Entry> {
        self.audit().list(filter, Order::OldestFirst, None, 1000).unwrap()
    }

    fn outbox(&self, retry: Retry) -> Outbox {
        Outbox::open(&self.options, retry).unwrap()
    }

    fn enqueue(&self, jobs: &[Job]) {
        let store = Store::open(&self.options).unwrap();
        for job in jobs {
            wait(store.enqueue(job)).unwrap();
        }
        store.flush(LONG).unwrap();
    }
}

/// The whole suite. Each part gets a new and empty store.
pub(crate) fn run(fresh: impl Fn() -> Subject) {
    type Part = fn(&Subject);
    let parts: [(&str, Part); 13] = [
        ("a row comes back as it was", a_row_comes_back),
        ("twice is once", twice_is_once),
        ("filters", filters),
        ("pages", pages),
        ("stats", stats),
        ("a deleted hook", a_deleted_hook),
        ("retention", retention),
        ("new keys", new_keys),
        ("jobs", jobs),
        ("whose jobs", whose_jobs),
        ("filter traces", filter_traces),
        ("hooks that are gone", hooks_that_are_gone),
        ("retention by itself", retention_by_itself),
    ];
    for (name, part) in parts {
        println!("contract: {name}");
        part(&fresh());
    }
}

fn a_row_comes_back(subject: &Subject) {
    let whole = Record {
        agent_id: Some("builder".into()),
        refused_fields: vec!["toolInput.a".into(), "\"quoted\"".into()],
        tokens: Some(42),
        trace_id: Some("t-1".into()),
        times: 3,
        ..failed("h", "e-1", "the whole story with 中")
    };
    let bare = Record { tenant_id: None, tool_name: None, ..record("h", "e-2") };
    subject.keep([whole, bare]);
    let mut audit = subject.audit();
    let rows = audit.list(&Filter::default(), Order::OldestFirst, None, 10).unwrap();
    let (shown, error) = audit.show(rows[0].id).unwrap().unwrap();
    assert!(error.is_none());
    let expected = serde_json::json!({
        "id": rows[0].id, "hook_id": "h", "hook_label": "label of h", "hook_version": "0123456789ab",
        "session_id": "s-1", "tenant_id": "acme", "agent_id": "builder", "event_id": "e-1",
        "event": "pre_tool_use", "tool_name": "exec", "input_hash": "ab".repeat(32), "decision": "error",
        "cause": "error", "duration_ms": 1, "duration_us": 1500, "dedup_key": shown.dedup_key,
        "error": "it failed", "error_detail": "the whole story with 中",
        "key_id": subject.options.keys.as_ref().unwrap().newest(),
        "refused_fields": ["toolInput.a", "\"quoted\""], "tokens": 42, "times": 3, "trace_id": "t-1",
        "created_at": 1_000_000, "writer": shown.writer, "seq": 1, "hash": shown.hash,
    });
    assert_eq!(serde_json::to_value(&shown).unwrap(), expected);
    assert_eq!((shown.dedup_key.len(), shown.hash.len()), (32, 64));
    let bare = &rows[1];
    assert_eq!((&bare.tenant_id, &bare.tool_name, &bare.cause, &bare.error), (&None, &None, &None, &None));
    assert_eq!((&bare.key_id, bare.tokens, bare.refused_fields.len(), bare.seq), (&None, None, 0, 2));
    assert!(audit.show(i64::MAX).unwrap().is_none());
}

fn twice_is_once(subject: &Subject) {
    subject.keep([record("h", "e-1"), record("h", "e-1"), record("g", "e-1"), record("h", "e-2")]);
    // a retry at another time, from another process
    subject.hand.set(2_000_000);
    subject.keep([failed("h", "e-1", "x"), record("h", "e-3")]);
    let rows = subject.list(&Filter::default());
    let seen: Vec<(&str, &str, u64)> =
        rows.iter().map(|row| (row.hook_id.as_deref().unwrap(), &*row.event_id, row.seq)).collect();
    assert_eq!(seen, [("h", "e-1", 1), ("g", "e-1", 2), ("h", "e-2", 3), ("h", "e-3", 4)]);
    assert_eq!(rows[0].decision, "allow");
    let verified = subject.audit().verify().unwrap();
    assert_eq!((verified.rows, verified.fault, verified.without_key), (4, None, 0));
}

fn filters(subject: &Subject) {
    let block = |record: Record| Record { decision: Decision::Block, ..record };
    subject.keep([record("a", "e-1"), block(record("b", "e-1"))]);
    subject.hand.set(2_000_000);
    subject.keep([
        Record { session_id: "s-2".into(), tenant_id: None, ..record("a", "e-2") },
        Record { event: "post_tool_use", tool_name: Some("write".into()), ..record("a", "e-3") },
        Record { input_hash: InputHash([0xcd; 32]), agent_id: Some("x".into()), ..record("a", "e-4") },
        Record { trace_id: Some("t-9".into()), ..record("a", "e-5") },
    ]);
    let text = |text: &str| Some(text.to_owned());
    let any = Filter::default();
    for (filter, expected) in [
        (any.clone(), "e-1 e-1 e-2 e-3 e-4 e-5"),
        (Filter { since: Some(2_000_000), ..any.clone() }, "e-2 e-3 e-4 e-5"),
        (Filter { until: Some(2_000_000), ..any.clone() }, "e-1 e-1"),
        (Filter { session_id: text("s-2"), ..any.clone() }, "e-2"),
        (Filter { session_id: text("s-"), ..any.clone() }, ""),
        (Filter { tenant_id: text("acme"), session_id: text("s-2"), ..any.clone() }, ""),
        (Filter { agent_id: text("x"), ..any.clone() }, "e-4"),
        (Filter { hook: text("b"), ..any.clone() }, "e-1"),
        (Filter { hook: text("label of b"), ..any.clone() }, "e-1"),
        (Filter { event: text("post_tool_use"), ..any.clone() }, "e-3"),
        (Filter { event_id: text("e-1"), ..any.clone() }, "e-1 e-1"),
        (Filter { event_id: text("e-9"), ..any.clone() }, ""),
        (Filter { tool_name: text("write"), event: text("pre_tool_use"), ..any.clone() }, ""),
        (Filter { decision: text("block"), ..any.clone() }, "e-1"),
        (Filter { input_hash: Some([0xcd; 32]), ..any.clone() }, "e-4"),
        (Filter { trace_id: text("t-9"), ..any.clone() }, "e-5"),
    ] {
        let found: Vec<String> = subject.list(&filter).into_iter().map(|row| row.event_id).collect();
        assert_eq!(found.join(" "), expected, "{filter:?}");
    }
}

fn pages(subject: &Subject) {
    let ids: Vec<String> = (0..2500).map(|n| format!("e-{n}")).collect();
    subject.keep(ids.iter().map(|id| record("h", id)));
    let mut audit = subject.audit();
    let newest = audit.list(&Filter::default(), Order::NewestFirst, None, 2).unwrap();
    let next = audit.list(&Filter::default(), Order::NewestFirst, Some(newest[1].id), 2).unwrap();
    let seen: Vec<&str> = newest.iter().chain(&next).map(|row| &*row.event_id).collect();
    assert_eq!(seen, ["e-2499", "e-2498", "e-2497", "e-2496"]);
    let filter = Filter { hook: Some("h".into()), ..Filter::default() };
    let exported: Vec<String> = audit.export(&filter).map(|row| row.unwrap().event_id).collect();
    assert_eq!(exported, ids);
}

fn stats(subject: &Subject) {
    let slow = Record { duration: Duration::from_millis(9), ..record("a", "e-2") };
    subject.keep([record("a", "e-1"), slow, failed("a", "e-3", "x"), record("b", "e-1")]);
    let stats = subject.audit().stats(&Filter::default()).unwrap();
    assert_eq!((stats.rows, stats.decisions["allow"], stats.decisions["error"]), (4, 3, 1));
    assert_eq!((stats.first, stats.last), (Some(1_000_000), Some(1_000_000)));
    let a = &stats.hooks["label of a"];
    assert_eq!((a.rows, a.total_us, a.longest_us, a.decisions["error"]), (3, 12_000, 9_000, 1));
    let filter = Filter { hook: Some("b".into()), ..Filter::default() };
    assert_eq!(subject.audit().stats(&filter).unwrap().rows, 1);
    let none = Filter { hook: Some("c".into()), ..Filter::default() };
    assert_eq!(subject.audit().stats(&none).unwrap(), Default::default());
}

fn a_deleted_hook(subject: &Subject) {
    subject.keep([record("a", "e-1"), record("b", "e-1")]);
    assert!(subject.audit().forget_hook("a").unwrap() > 0);
    // the same key comes back: new rows have it, old ones do not
    subject.keep([record("a", "e-1"), record("a", "e-2")]);
    let rows = subject.list(&Filter::default());
    let seen: Vec<(Option<&str>, &str)> =
        rows.iter().map(|row| (row.hook_id.as_deref(), &*row.hook_label)).collect();
    assert_eq!(seen, [(None, "label of a"), (Some("b"), "label of b"), (Some("a"), "label of a")]);
    let by_event = Filter { event_id: Some("e-1".into()), ..Filter::default() };
    assert_eq!(subject.list(&by_event).len(), 2);
    assert_eq!(subject.audit().verify().unwrap().fault, None);
}

fn retention(subject: &Subject) {
    subject.keep((0..5).map(|n| record("h", &format!("old-{n}"))));
    let early = subject.audit().checkpoint().unwrap();
    subject.hand.set(2_000_000);
    subject.keep([record("h", "new-1")]);
    subject.hand.set(1_000_000);
    // made before, written later: it stays as long as what it follows
    subject.keep([record("h", "late")]);
    let mut audit = subject.audit();
    assert_eq!(audit.prune(1_500_000).unwrap(), 5);
    assert_eq!(audit.prune(1_500_000).unwrap(), 0);
    assert_eq!(audit.verify_against(&early).unwrap().fault, None);
    let kept: Vec<String> = subject.list(&Filter::default()).into_iter().map(|row| row.event_id).collect();
    assert_eq!(kept, ["new-1", "late"]);
    assert_eq!(audit.prune(3_000_000).unwrap(), 2);
    subject.keep([record("h", "again")]);
    let rows = subject.list(&Filter::default());
    assert_eq!((rows[0].seq, rows[0].id), (8, 8), "neither place nor number is used twice");
    let verified = subject.audit().verify().unwrap();
    assert_eq!((verified.fault, verified.rows), (None, 1));
}

fn new_keys(subject: &Subject) {
    subject.keep([failed("h", "e-1", "first story"), record("h", "e-2")]);
    let old = subject.options.keys.clone().unwrap();
    let (new, resealed) = subject.audit().rekey().unwrap();
    assert_eq!(resealed, 1);
    let renewed = Options { keys: Some(new.clone()), ..subject.options.clone() };
    crate::bench::keep(&renewed, [failed("h", "e-3", "second story")]);
    let details = |options: &Options| -> Vec<Result<Option<String>, String>> {
        let mut audit = Audit::open(options).unwrap();
        let rows = audit.list(&Filter::default(), Order::OldestFirst, None, 10).unwrap();
        let open = |mut row: Entry| {
            audit.open_detail(&mut row).map_err(|error| error.to_string())?;
            Ok(row.error_detail)
        };
        rows.into_iter().map(open).collect()
    };
    let told = |text: &str| Ok(Some(text.to_owned()));
    assert_eq!(details(&renewed), [told("first story"), Ok(None), told("second story")]);
    // with the old key alone, and with none, all but the details can be read
    let error = details(&Options { keys: Some(old), ..subject.options.clone() })[0].clone().unwrap_err();
    assert!(error.contains(new.newest()) && error.contains("does not hold"), "{error}");
    let error = details(&Options { keys: None, ..subject.options.clone() })[2].clone().unwrap_err();
    assert!(error.contains("needs a key"), "{error}");
    let verified = Audit::open(&renewed).unwrap().verify().unwrap();
    assert_eq!((verified.fault, verified.details, verified.rows), (None, 2, 3));
    // a key of somebody else
    let dir = tempfile::tempdir().unwrap();
    let (other, _) = Keys::load_or_make(&dir.path().join("keys")).unwrap();
    let stranger = Options { keys: Some(other), ..subject.options.clone() };
    let error = Audit::open(&stranger).unwrap().verify().unwrap_err();
    assert!(matches!(error, StoreError::WrongKey { .. }), "{error}");
    let error = Audit::open(&Options { keys: None, ..stranger }).unwrap().verify().unwrap_err();
    assert!(matches!(error, StoreError::NoKey(_)), "{error}");
}

fn jobs(subject: &Subject) {
    let job = |event: &str| Job {
        hook: "h".into(),
        event_id: event.into(),
        origin: "there".into(),
        facts: format!("{{\"e\":\"{event}\"}}"),
    };
    subject.enqueue(&[job("e-1"), job("e-2"), job("e-1")]);
    let counts = |waiting, dead| JobCounts { waiting, dead };
    let second = Duration::from_secs(1);
    let retry = Retry { attempts: 2, first: second, longest: second, lease: 10 * second };
    let (mut one, mut other) = (subject.outbox(retry), subject.outbox(retry));
    assert_eq!(one.counts().unwrap(), counts(2, 0));
    let first = one.claim(1).unwrap().remove(0);
    assert_eq!((&first.job, first.attempt), (&job("e-1"), 1));
    let second_job = other.claim(10).unwrap();
    assert_eq!(second_job.iter().map(|claimed| &claimed.job).collect::<Vec<_>>(), [&job("e-2")]);
    assert!(one.done(&first).unwrap());
    assert!(!one.done(&first).unwrap(), "a lease is given back once");
    // done is done, also if the same comes again
    subject.enqueue(&[job("e-1")]);
    assert!(one.claim(10).unwrap().is_empty());
    // a worker that does not come back loses its lease
    subject.hand.set(1_010_000);
    let again = one.claim(10).unwrap().remove(0);
    assert_eq!((&again.job, again.attempt), (&job("e-2"), 2));
    assert!(!other.done(&second_job[0]).unwrap());
    // its attempts are used up
    assert!(one.failed(&again, "Bearer abcdefgh12345678 refused").unwrap());
    let dead = one.list(JobFilter { state: Some(JobState::Dead) }, 10).unwrap();
    assert_eq!((dead.len(), dead[0].attempts), (1, 2));
    assert_eq!(one.counts().unwrap(), counts(0, 1));
    assert!(dead[0].error.as_deref().unwrap().contains("[redacted]"));
    assert_eq!(one.open_job(&dead[0]).unwrap(), job("e-2"));
    assert_eq!(one.next_due().unwrap(), None);
    assert_eq!(one.resend(None).unwrap(), 1);
    assert_eq!(one.next_due().unwrap(), Some(1_010_000));
    let once_more = one.claim(10).unwrap().remove(0);
    assert_eq!(once_more.attempt, 1);
    assert!(one.failed(&once_more, "no").unwrap());
    let due = one.next_due().unwrap().unwrap();
    assert!((1_010_500..=1_011_000).contains(&due), "{due}");
    assert!(one.claim(10).unwrap().is_empty());
    subject.hand.set(due);
    let mut ran = Vec::new();
    let done = one.drain(LONG, |job| {
        ran.push(job.clone());
        Ok(())
    });
    assert_eq!((done.unwrap(), ran), (1, vec![job("e-2")]));
    // a day later nothing is left, and the same may come again
    subject.hand.set(due + 25 * 3_600_000);
    assert_eq!(one.drain(LONG, |_| Ok(())).unwrap(), 0);
    assert_eq!(one.list(JobFilter::default(), 10).unwrap(), []);
}

fn whose_jobs(subject: &Subject) {
    let job = |event: &str, origin: &str| Job {
        hook: "h".into(),
        event_id: event.into(),
        origin: origin.into(),
        facts: "{}".into(),
    };
    let store = Store::open(&subject.options).unwrap();
    for (event, origin) in [("e-1", "/a"), ("e-2", "/b"), ("e-3", "/a")] {
        wait(store.enqueue(&job(event, origin))).unwrap();
    }
    store.flush(LONG).unwrap();
    let events = |claimed: Vec<hookgate_store::outbox::Claimed>| -> Vec<String> {
        claimed.into_iter().map(|claimed| claimed.job.event_id).collect()
    };
    let mut of_b = subject.outbox(Retry::default()).only_from(vec!["/b".into(), "/c'\"".into()]);
    let mut of_a = subject.outbox(Retry::default()).only_from(vec!["/a".into()]).of_store(&store);
    assert_eq!(subject.outbox(Retry::default()).only_from(Vec::new()).next_due().unwrap(), None);
    assert_eq!(events(of_a.claim(10).unwrap()), ["e-1", "e-3"]);
    assert_eq!(events(of_b.claim(10).unwrap()), ["e-2"]);
    assert!(of_a.claim(10).unwrap().is_empty());
    // the end of a process gives its own back, and no one else's
    assert_eq!(of_a.give_back().unwrap(), 2);
    let again = of_a.claim(1).unwrap().remove(0);
    assert_eq!((again.job.origin.as_str(), again.attempt), ("/a", 2));
    drop(store);
    assert_eq!(events(of_a.claim(10).unwrap()), ["e-1", "e-3"], "the store's end gives back what was left");
    // what ends whoever begins it is not begun for ever
    let few = Retry { attempts: 1, ..Retry::default() };
    let mut last = subject.outbox(few);
    of_b.give_back().unwrap();
    assert!(last.claim(10).unwrap().is_empty());
    let dead = last.list(JobFilter { state: Some(JobState::Dead) }, 10).unwrap();
    assert_eq!(dead[0].error.as_deref(), Some("it was begun 1 times and never ended"));
}

fn filter_traces(subject: &Subject) {
    let trace = |event: &str, session: &str| FilterTrace {
        event_id: event.into(),
        session_id: session.into(),
        event: "pre_tool_use".into(),
        tool_name: Some("exec".into()),
        looked: vec![Looked {
            hook: "label".into(),
            key: "h".into(),
            out: Some(FilteredOut {
                by: FilteredBy::IfExpr,
                wanted: "a == b".into(),
                found: "a = \"my-secret-value\"".into(),
            }),
        }],
    };
    let keep = |traces: &[FilterTrace]| {
        let store = Store::open(&subject.options).unwrap();
        traces.iter().for_each(|trace| store.trace(trace));
        store.flush(LONG).unwrap();
    };
    keep(&[trace("e-1", "s-1"), trace("e-2", "s-1"), trace("e-3", "s-2"), trace("e-1", "s-1")]);
    let found = |of: &str, limit| subject.audit().traces(of, limit).unwrap();
    assert_eq!(found("s-1", 10), (vec![trace("e-1", "s-1"), trace("e-2", "s-1")], 0));
    assert_eq!(found("e-3", 10), (vec![trace("e-3", "s-2")], 0));
    assert_eq!(found("s-1", 1), (vec![trace("e-2", "s-1")], 0));
    assert_eq!(found("nobody", 10), (vec![], 0));
    let keyless = Options { keys: None, ..subject.options.clone() };
    assert_eq!(Audit::open(&keyless).unwrap().traces("s-1", 10).unwrap(), (vec![], 2));
    subject.hand.set(2_000_000);
    keep(&[trace("e-4", "s-1")]);
    subject.audit().prune(1_500_000).unwrap();
    assert_eq!(found("s-1", 10), (vec![trace("e-4", "s-1")], 0));
}

fn hooks_that_are_gone(subject: &Subject) {
    subject.keep(["a", "b", "c"].map(|hook| record(hook, "e-1")));
    let store = Store::open(&subject.options).unwrap();
    let load = |source: &str, hooks: &[&str]| {
        store.installed(source, hooks.iter().map(|hook| (*hook).to_owned()).collect());
        store.flush(LONG).unwrap();
        let rows = subject.list(&Filter::default());
        rows.iter().map(|row| row.hook_id.as_deref().unwrap_or("-").to_owned()).collect::<String>()
    };
    assert_eq!(load("/one", &["a", "b"]), "abc", "what a source never had is not its to delete");
    assert_eq!(load("/two", &["b"]), "abc");
    assert_eq!(load("/one", &["a"]), "abc", "another source still has it");
    assert_eq!(load("/two", &[]), "a-c");
    assert_eq!(load("/one", &["a"]), "a-c");
    assert_eq!(load("/one", &[]), "--c");
    // it comes back: new rows have it again
    crate::bench::wait(store.record(record("a", "e-2"))).unwrap();
    assert_eq!(load("/one", &["a"]), "--ca");
    let rows = subject.list(&Filter::default());
    assert!(rows.iter().all(|row| row.hook_label.starts_with("label of ")));
    assert_eq!(subject.audit().verify().unwrap().fault, None);
}

fn retention_by_itself(subject: &Subject) {
    const HOUR: i64 = 3_600_000;
    let day = Duration::from_secs(86_400);
    let kept = || subject.list(&Filter::default()).len();
    let run = |keep| {
        let store = Store::open(&Options { keep, ..subject.options.clone() }).unwrap();
        // it is looked after when nothing is left to move: a row that goes in tells that it was
        wait(store.record(record("h", &format!("at {}", (subject.options.clock)())))).unwrap();
        drop(store);
    };
    let start = 1_000_000_000;
    subject.hand.set(start);
    run(None);
    subject.hand.set(start + 25 * HOUR);
    run(None);
    assert_eq!(kept(), 2, "nobody asked for it");
    subject.hand.set(start + 25 * HOUR + 1);
    run(Some(day));
    assert_eq!(kept(), 2, "the oldest is gone, and there is a new one");
    // within the hour nobody does it again
    subject.hand.set(start + 25 * HOUR + 2);
    run(Some(Duration::from_millis(1)));
    assert_eq!(kept(), 3);
    subject.hand.set(start + 26 * HOUR + 2);
    run(Some(Duration::from_secs(60)));
    assert_eq!(kept(), 1);
    let verified = subject.audit().verify().unwrap();
    assert_eq!((verified.rows, verified.fault), (1, None));
}

#[test]
fn sqlite_keeps_the_contract() {
    run(|| Subject::new(None));
}

/// One memory for all who open it, as a database is.
#[derive(Debug, Clone)]
struct OneMemory(Arc<Mutex<Memory>>);

#[test]
fn memory_keeps_the_contract() {
    run(|| {
        let memory = OneMemory(Arc::new(Mutex::new(Memory::new(100_000))));
        Subject::new(Some(Arc::new(move || Ok(Box::new(memory.clone()) as Box<dyn Database>))))
    });
}

#[test]
fn who_flushes_waits_for_what_the_database_is_being_told() {
    let memory = OneMemory(Arc::new(Mutex::new(Memory::new(100))));
    let held = memory.clone();
    let subject = Subject::new(Some(Arc::new(move || Ok(Box::new(memory.clone()) as Box<dyn Database>))));
    let store = Store::open(&subject.options).unwrap();
    store.flush(LONG).unwrap();
    let busy = held.0.lock().unwrap();
    store.installed("/one", vec!["a".into()]);
    assert!(store.flush(Duration::from_millis(200)).is_err(), "the database does not know of it yet");
    drop(busy);
    store.flush(LONG).unwrap();
}

mod one_memory {
    use super::OneMemory;
    use hookgate_store::StoreError;
    use hookgate_store::chain::ChainState;
    use hookgate_store::database::{Appended, Batch, Claimant, Database, MarkAnchor, Pruned, See};
    use hookgate_store::job::{JobCounts, JobFilter, StoredJob};
    use hookgate_store::keys::ChainKey;
    use hookgate_store::query::{Entry, Filter, Order, Stats};
    use hookgate_store::row::{Dedup, Sealed};
    use hookgate_store::trace::StoredTrace;

    type Result<T> = std::result::Result<T, StoreError>;

    macro_rules! pass_on {
        ($( fn $name:ident(&mut self $(, $arg:ident: $type:ty)*) -> $result:ty; )+) => {
            impl Database for OneMemory {
                $( fn $name(&mut self $(, $arg: $type)*) -> $result { self.0.lock().unwrap().$name($($arg),*) } )+
            }
        };
    }

    pass_on! {
        fn append(&mut self, writer: &str, key: &ChainKey, batch: &Batch<'_>) -> Result<Appended>;
        fn sync_each(&mut self, on: bool) -> Result<()>;
        fn page(&mut self, filter: &Filter, order: Order, after: Option<i64>, limit: usize) -> Result<Vec<Entry>>;
        fn get(&mut self, id: i64) -> Result<Option<Entry>>;
        fn stats(&mut self, filter: &Filter) -> Result<Stats>;
        fn walk(&mut self, see: &mut See<'_>) -> Result<()>;
        fn chains(&mut self) -> Result<Vec<ChainState>>;
        fn prune(&mut self, before: i64, mark: &MarkAnchor<'_>) -> Result<Pruned>;
        fn forget_hook(&mut self, hook: &str) -> Result<u64>;
        fn sealed_by_others(&mut self, key: &str, after: i64, limit: usize)
            -> Result<Vec<(i64, Dedup, Sealed<'static>)>>;
        fn reseal(&mut self, seals: &[(i64, Sealed<'static>)]) -> Result<()>;
        fn claim(&mut self, now: i64, lease_until: i64, limit: usize, who: Claimant<'_>) -> Result<Vec<StoredJob>>;
        fn free_leases(&mut self, owner: &str) -> Result<u64>;
        fn traces(&mut self, of: &str, limit: usize) -> Result<Vec<StoredTrace>>;
        fn install(&mut self, source: &str, hooks: &[String]) -> Result<Vec<String>>;
        fn begin_retention(&mut self, now: i64, each: i64) -> Result<bool>;
        fn finish_job(&mut self, id: i64, lease: i64, now: i64) -> Result<bool>;
        fn fail_job(&mut self, id: i64, lease: i64, due: Option<i64>, error: &str) -> Result<bool>;
        fn jobs(&mut self, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>>;
        fn job_counts(&mut self) -> Result<JobCounts>;
        fn resend(&mut self, id: Option<i64>, now: i64) -> Result<u64>;
        fn next_due(&mut self, origins: Option<&[String]>) -> Result<Option<i64>>;
        fn clean_jobs(&mut self, before: i64) -> Result<u64>;
    }
}
