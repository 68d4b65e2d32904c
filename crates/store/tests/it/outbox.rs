//! The outbox where processes die and many work at once.

use crate::bench::{Hand, LONG, options, wait};
use hookgate_store::job::{JobFilter, JobState};
use hookgate_store::outbox::{Job, Outbox, Retry};
use hookgate_store::store::{Options, Store};
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

fn job(number: usize) -> Job {
    Job { hook: "h".into(), event_id: format!("e-{number}"), origin: String::new(), facts: "{}".into() }
}

#[test]
fn many_workers_share_the_work() {
    let dir = tempfile::tempdir().unwrap();
    let options = options(dir.path());
    let store = Store::open(&options).unwrap();
    for number in 0..200 {
        assert!(store.try_enqueue(&job(number)));
    }
    store.flush(LONG).unwrap();
    let seen = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut outbox = Outbox::open(&options, Retry::default()).unwrap();
                outbox
                    .drain(LONG, |job| {
                        seen.lock().unwrap().push(job.event_id.clone());
                        Ok(())
                    })
                    .unwrap();
            });
        }
    });
    let seen = seen.into_inner().unwrap();
    assert_eq!((seen.len(), seen.iter().collect::<HashSet<_>>().len()), (200, 200));
}

#[test]
fn a_receiver_that_is_down_gets_it_later_or_it_is_dead() {
    let dir = tempfile::tempdir().unwrap();
    let hand = Hand::at(0);
    let options = Options { clock: hand.clock(), ..options(dir.path()) };
    let one_shot = Store::spool_only(&options).unwrap();
    one_shot.enqueue(&job(1)).unwrap();
    one_shot.enqueue(&job(2)).unwrap();
    let retry = Retry { attempts: 4, ..Retry::default() };
    let mut outbox = Outbox::open(&options, retry).unwrap();
    let mut tries = Vec::new();
    while let Some(due) = outbox.next_due().unwrap() {
        hand.set(due);
        // the first works at its third attempt, the second never
        outbox
            .drain(LONG, |job| {
                tries.push(job.event_id.clone());
                let so_far = tries.iter().filter(|id| **id == job.event_id).count();
                if job.event_id == "e-1" && so_far == 3 { Ok(()) } else { Err("connection refused".into()) }
            })
            .unwrap();
    }
    let count = |id: &str| tries.iter().filter(|tried| *tried == id).count();
    assert_eq!((count("e-1"), count("e-2")), (3, 4));
    let dead = outbox.list(JobFilter { state: Some(JobState::Dead) }, 10).unwrap();
    assert_eq!((dead.len(), dead[0].event_id.as_str(), dead[0].attempts), (1, "e-2", 4));
    assert_eq!(dead[0].error.as_deref(), Some("connection refused"));
    assert_eq!(outbox.resend(Some(dead[0].id)).unwrap(), 1);
    assert_eq!(outbox.drain(LONG, |_| Ok(())).unwrap(), 1);
}

#[test]
fn draining_ends_within_its_limit_and_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let hand = Hand::at(0);
    let options = Options { clock: hand.clock(), ..options(dir.path()) };
    let store = Store::open(&options).unwrap();
    (0..40).for_each(|number| wait(store.enqueue(&job(number))).unwrap());
    store.flush(LONG).unwrap();
    let mut outbox = Outbox::open(&options, Retry::default()).unwrap();
    let slow = |_: &Job| {
        std::thread::sleep(Duration::from_millis(30));
        Ok(())
    };
    let done = outbox.drain(Duration::from_millis(100), slow).unwrap();
    assert!((1..20).contains(&done), "{done}");
    // what was claimed and not begun is due when its lease ends
    hand.set(1_000_000);
    assert_eq!(outbox.drain(LONG, |_| Ok(())).unwrap(), 40 - done);
}

#[test]
fn without_a_key_no_job_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(&Options { keys: None, ..options(dir.path()) }).unwrap();
    assert!(!store.try_enqueue(&job(1)));
    assert!(wait(store.enqueue(&job(1))).unwrap_err().to_string().contains("needs a key"));
}
