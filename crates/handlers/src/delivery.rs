//! Takes jobs out of the outbox and runs them: the part of the pool that outlives processes.
//!
//! A job is recorded when it is settled: a try that will be repeated leaves no row. What failed in a way that may pass
//! (no connection, a server that has no time, no answer in time) is tried again; what the hook itself did wrong is a dead
//! letter at once.

use crate::outbox::{Claimed, End, Outbox};
use crate::watchers::{Kept, Shared};
use hookgate_core::facts::Facts;
use hookgate_core::gate::{Attempt, Watch};
use hookgate_core::verdict::{Warning, WarningCode};
use std::sync::Arc;
use std::time::Duration;

/// What was kept just now is in the outbox after about this time.
const SOON: Duration = Duration::from_millis(25);
/// The longest pause while something is expected.
const LATE: Duration = Duration::from_secs(1);
/// How often it looks for what other processes left.
const LOOK_EACH: Duration = Duration::from_secs(5);
/// After so many looks in vain, what is expected is taken to be somebody else's by now.
const IN_VAIN: u32 = 8;

/// Looks into the outbox until the pool is closed; one at a time.
pub(crate) async fn look(shared: Arc<Shared>) {
    let _away = Away(shared.clone());
    let Some(kept) = shared.kept.clone() else { return };
    let mut in_vain = 0u32;
    loop {
        let (asked, free) = {
            let state = shared.state();
            if state.closed {
                return;
            }
            (state.asked_dry, shared.limits.at_a_time.saturating_sub(state.delivering))
        };
        if free == 0 {
            let changed = shared.changed.notified();
            if shared.state().delivering >= shared.limits.at_a_time {
                changed.await;
            }
            continue;
        }
        let (outbox, origins) = (kept.outbox.clone(), kept.origins.clone());
        let claimed = blocking(move || outbox.claim(&origins, free)).await;
        match claimed {
            Ok(jobs) if !jobs.is_empty() => {
                in_vain = 0;
                jobs.into_iter().for_each(|job| begin(&shared, &kept, job));
            }
            other => {
                if other.is_ok() {
                    shared.state().told_dry = asked;
                    shared.changed.notify_waiters();
                }
                in_vain = in_vain.saturating_add(1);
                rest(&shared, &kept, in_vain).await;
            }
        }
    }
}

/// Waits until there may be something to do.
async fn rest(shared: &Shared, kept: &Kept, in_vain: u32) {
    let nudged = shared.nudged.notified();
    let (is_asked, expects) = {
        let mut state = shared.state();
        if in_vain >= IN_VAIN {
            state.expected = 0;
        }
        (state.asked_dry > state.told_dry, state.expected > 0)
    };
    if is_asked {
        return tokio::time::sleep(SOON).await;
    }
    let pause = if expects {
        SOON.saturating_mul(1 << in_vain.min(8)).min(LATE)
    } else {
        let (outbox, origins) = (kept.outbox.clone(), kept.origins.clone());
        let due = blocking(move || outbox.next_due(&origins)).await.ok().flatten();
        // a moment later, so that the clocks agree
        due.map_or(LOOK_EACH, |due| due.saturating_add(Duration::from_millis(1)).min(LOOK_EACH))
    };
    tokio::select! {
        () = tokio::time::sleep(pause) => {}
        () = nudged => tokio::time::sleep(SOON).await,
    }
}

/// Begins a job in a task of its own.
fn begin(shared: &Arc<Shared>, kept: &Kept, job: Claimed) {
    let mut state = shared.state();
    state.expected = state.expected.saturating_sub(1);
    state.delivering = state.delivering.saturating_add(1);
    drop(state);
    let (shared, kept) = (shared.clone(), kept.clone());
    // `drain` waits for it
    tokio::spawn(async move {
        let _ended = Ended(shared.clone());
        deliver(&shared, &kept, job).await;
    });
}

async fn deliver(shared: &Shared, kept: &Kept, claimed: Claimed) {
    let outbox = &kept.outbox;
    let watch = match watch_of(kept, &claimed) {
        Ok(watch) => watch,
        Err(why) => {
            settle(outbox, claimed, End::Dead(why)).await;
            return;
        }
    };
    let mut attempt = watch.attempt(&shared.around).await;
    let end = end_of(&attempt, claimed.attempt, outbox.attempts());
    warn(&mut attempt, &claimed, &end);
    let is_over = !matches!(end, End::Again(_));
    let trace = if is_over { attempt.keep(&shared.around).await } else { attempt.trace };
    // of a receiver that stays down, people hear at the first and at the last try
    if (is_over || claimed.attempt == 1)
        && let Some(on_trace) = &shared.on_trace
    {
        on_trace(&trace);
    }
    shared.note_postponed(claimed.id, !is_over);
    settle(outbox, claimed, end).await;
}

fn watch_of(kept: &Kept, claimed: &Claimed) -> Result<Watch, String> {
    let facts = Facts::from_json(&claimed.job.facts).ok_or("the kept event cannot be read")?;
    let gone = || format!("no hook `{}` listens to such events any more", claimed.job.hook);
    kept.dispatcher.watch_again(&claimed.job.hook, facts).ok_or_else(gone)
}

fn end_of(attempt: &Attempt, number: u32, most: u32) -> End {
    match &attempt.failed {
        None => End::Done,
        Some(failed) if failed.passing && number < most => End::Again(failed.error.clone()),
        Some(failed) => End::Dead(failed.error.clone()),
    }
}

fn warn(attempt: &mut Attempt, claimed: &Claimed, end: &End) {
    let (code, text) = match end {
        End::Done => return,
        End::Again(_) => (WarningCode::Postponed, "it is tried again later".to_owned()),
        End::Dead(_) => {
            let times =
                if claimed.attempt > 1 { format!(" after {} tries", claimed.attempt) } else { String::new() };
            (WarningCode::DeadLetter, format!("given up{times}; the outbox keeps it"))
        }
    };
    let hook =
        attempt.trace.ran.first().map_or_else(|| claimed.job.hook.as_str().into(), |ran| ran.hook.clone());
    attempt.trace.warnings.push(Warning { hook, code, text });
}

/// Tells the outbox, again if it cannot be told now: a job that was done and not settled runs once more.
async fn settle(outbox: &Arc<dyn Outbox>, claimed: Claimed, end: End) {
    const TRIES: u32 = 5;
    for number in 0..TRIES {
        let (outbox, claimed, end) = (outbox.clone(), claimed.clone(), end.clone());
        if blocking(move || outbox.settle(&claimed, &end)).await.is_ok() {
            return;
        }
        tokio::time::sleep(SOON.saturating_mul(1 << number.min(8))).await;
    }
}

/// Wants to know that nothing is due any more of all that was kept so far. Gives the number of the question.
pub(crate) async fn ask_dry(shared: &Arc<Shared>, within: Duration) -> u64 {
    let Some(kept) = &shared.kept else { return 0 };
    let (looks, expects) = {
        let state = shared.state();
        (state.looks, state.expected > 0)
    };
    if looks && expects {
        let outbox = kept.outbox.clone();
        let flushed = move || {
            outbox.flush(within);
            Ok::<_, String>(())
        };
        blocking(flushed).await.ok();
    }
    let mut state = shared.state();
    state.asked_dry = state.asked_dry.saturating_add(1);
    let asked = state.asked_dry;
    drop(state);
    shared.nudged.notify_one();
    asked
}

/// The end came first: others may have what is under way here.
pub(crate) async fn give_back(shared: &Arc<Shared>) {
    if let Some(kept) = &shared.kept {
        let outbox = kept.outbox.clone();
        blocking(move || {
            outbox.give_back();
            Ok::<_, String>(())
        })
        .await
        .ok();
    }
}

/// Runs what blocks where it may.
async fn blocking<T: Send + 'static>(
    call: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let ended = tokio::task::spawn_blocking(call).await;
    ended.unwrap_or_else(|_| Err("the call broke off".into()))
}

/// Says that nobody looks any more, also when the task is dropped.
struct Away(Arc<Shared>);

impl Drop for Away {
    fn drop(&mut self) {
        self.0.state().looks = false;
        self.0.changed.notify_waiters();
    }
}

/// Counts a job out, also when its task is dropped or panics.
struct Ended(Arc<Shared>);

impl Drop for Ended {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.delivering = state.delivering.saturating_sub(1);
        drop(state);
        self.0.changed.notify_waiters();
    }
}
