//! Runs watching hooks in the background, bounded: a few at a time, a queue of a stated length, and a count of what
//! did not fit. Nothing here makes the agent wait.
//!
//! With an [`Outbox`], hooks with a written handler go through it: kept first, then run by whoever claims them, again
//! with pauses where that can help. What ends with the process there is not lost.

use crate::delivery;
use crate::outbox::{Job, Outbox, origin_of};
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::gate::{Surroundings, Watch};
use hookgate_core::hook::Work;
use hookgate_core::verdict::Trace;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Told how a watching hook's run went.
pub type OnTrace = dyn Fn(&Trace) + Send + Sync;

/// The bounds of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Hooks that run at a time, and jobs of the outbox that run at a time beside them.
    pub at_a_time: usize,
    /// Hooks that wait in memory at most; what comes on top goes to the outbox, or is counted and dropped.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { at_a_time: 8, waiting: 10_000 }
    }
}

/// A place for work that must not be lost, and what is needed to take it up again.
#[derive(Debug, Clone)]
pub struct Kept {
    /// The place.
    pub outbox: Arc<dyn Outbox>,
    /// The hooks that kept events are given to.
    pub dispatcher: Arc<Dispatcher>,
    /// The folders whose hooks these are, as [`origin_of`] names them: jobs of others stay for others.
    pub origins: Vec<String>,
}

/// The pool. Clones share it.
#[derive(Clone)]
pub struct Watchers {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) around: Surroundings,
    pub(crate) limits: Limits,
    pub(crate) on_trace: Option<Box<OnTrace>>,
    pub(crate) kept: Option<Kept>,
    state: Mutex<State>,
    /// Something began, ended, or is over.
    pub(crate) changed: Notify,
    /// There may be something in the outbox.
    pub(crate) nudged: Notify,
}

#[derive(Default)]
pub(crate) struct State {
    waiting: VecDeque<Watch>,
    running: usize,
    overflowed: u64,
    /// Folders of hooks and the names that their jobs carry.
    origins: HashMap<String, String>,
    /// Jobs that were kept and not seen again yet.
    pub(crate) expected: u64,
    /// Jobs that run.
    pub(crate) delivering: usize,
    /// Whether somebody looks into the outbox.
    pub(crate) looks: bool,
    /// How often somebody wanted to know that the outbox holds nothing that is due, and the last one who was told.
    pub(crate) asked_dry: u64,
    pub(crate) told_dry: u64,
    /// Nothing new is taken out of the outbox.
    pub(crate) closed: bool,
    /// Jobs that failed here and wait for their next try.
    pub(crate) postponed: BTreeSet<i64>,
}

impl Watchers {
    /// A pool that starts its work on the tokio runtime from which [`submit`](Watchers::submit) is called.
    pub fn new(around: Surroundings, limits: Limits) -> Watchers {
        Watchers::told(around, limits, None)
    }

    /// The same, with somebody who is told how each run went.
    pub fn told(around: Surroundings, limits: Limits, on_trace: Option<Box<OnTrace>>) -> Watchers {
        Watchers::with_outbox(around, limits, on_trace, None)
    }

    /// The same, with a place for what must not be lost.
    pub fn with_outbox(
        around: Surroundings,
        limits: Limits,
        on_trace: Option<Box<OnTrace>>,
        kept: Option<Kept>,
    ) -> Watchers {
        let (state, changed, nudged) = (Mutex::default(), Notify::new(), Notify::new());
        Watchers { shared: Arc::new(Shared { around, limits, on_trace, kept, state, changed, nudged }) }
    }

    /// Takes work in and returns at once. What does not fit is counted. Outside a runtime nothing can run: the work
    /// waits for the next call from inside one.
    pub fn submit(&self, work: Vec<Watch>) {
        let has_work = !work.is_empty();
        for watch in work {
            self.shared.take_in(watch);
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut state = self.shared.state();
        while state.running
            < self.shared.limits.at_a_time.min(state.running.saturating_add(state.waiting.len()))
        {
            state.running = state.running.saturating_add(1);
            // it ends when nothing waits; `drain` waits for it at shutdown
            runtime.spawn(work_off(self.shared.clone()));
        }
        state.closed &= !has_work;
        let begins = state.expected > 0 && !state.looks && !state.closed;
        state.looks |= begins;
        drop(state);
        if begins {
            runtime.spawn(delivery::look(self.shared.clone()));
        }
    }

    /// Takes up what earlier processes left in the outbox. To be called from inside a runtime when a door begins;
    /// where nothing was ever kept, nothing is opened.
    pub fn resume(&self) {
        let Some(kept) = &self.shared.kept else { return };
        if kept.origins.is_empty() || !kept.outbox.may_hold_jobs() {
            return;
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let mut state = self.shared.state();
        let begins = !state.looks;
        (state.looks, state.closed) = (true, false);
        drop(state);
        if begins {
            runtime.spawn(delivery::look(self.shared.clone()));
        }
    }

    /// How much work was dropped so far: it did not fit, and there is no outbox that takes it.
    pub fn overflowed(&self) -> u64 {
        self.shared.state().overflowed
    }

    /// How many jobs failed here and wait in the outbox for their next try.
    pub fn postponed(&self) -> usize {
        self.shared.state().postponed.len()
    }

    /// Waits until all work is done that is due, at most `limit`; gives how much is left. What is left of the outbox
    /// stays there for the next process.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.submit(Vec::new());
        let done = async {
            let dry = delivery::ask_dry(&self.shared, limit).await;
            loop {
                let changed = self.shared.changed.notified();
                if self.shared.left() == 0 && self.shared.is_dry(dry) {
                    break;
                }
                changed.await;
            }
        };
        // the time is up or the work is done: what is left tells which
        let in_time = tokio::time::timeout(limit, done).await.is_ok();
        self.shared.state().closed = true;
        self.shared.nudged.notify_waiters();
        let left = self.shared.left();
        if !in_time || left > 0 {
            delivery::give_back(&self.shared).await;
        }
        left
    }
}

/// One worker: takes work until there is none.
async fn work_off(shared: Arc<Shared>) {
    let leave = Leave(shared.clone());
    loop {
        let next = shared.state().waiting.pop_front();
        let Some(watch) = next else { break };
        let trace = watch.run(&shared.around).await;
        if let Some(on_trace) = &shared.on_trace {
            on_trace(&trace);
        }
    }
    drop(leave);
}

/// Counts a worker out, also when its task is dropped or panics.
struct Leave(Arc<Shared>);

impl Drop for Leave {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.running = state.running.saturating_sub(1);
        drop(state);
        self.0.changed.notify_waiters();
    }
}

impl Shared {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Work with a written handler goes to the outbox; what that cannot take, and hooks of the program, to memory.
    fn take_in(&self, watch: Watch) {
        let is_written = watch.definition().is_some_and(|hook| match &hook.work {
            Work::Handler { spec, .. } => spec.written_type().is_some(),
            Work::Actions(_) => false,
        });
        if is_written && self.keep(&watch) {
            return;
        }
        let mut state = self.state();
        if state.waiting.len() < self.limits.waiting {
            state.waiting.push_back(watch);
            return;
        }
        drop(state);
        if is_written || !self.keep(&watch) {
            let mut state = self.state();
            state.overflowed = state.overflowed.saturating_add(1);
        }
    }

    fn keep(&self, watch: &Watch) -> bool {
        let (Some(kept), Some(hook)) = (&self.kept, watch.definition()) else { return false };
        let origin = {
            let folder = hook.file.rsplit_once('/').map_or(".", |(folder, _)| folder);
            let known = self.state().origins.get(folder).cloned();
            known.unwrap_or_else(|| {
                let origin = origin_of(std::path::Path::new(folder));
                self.state().origins.insert(folder.to_owned(), origin.clone());
                origin
            })
        };
        let facts = watch.facts();
        let job = Job {
            hook: hook.key.to_string(),
            event_id: facts.head().event_id.clone(),
            origin,
            facts: facts.to_json(),
        };
        if !kept.outbox.keep(job) {
            return false;
        }
        let mut state = self.state();
        state.expected = state.expected.saturating_add(1);
        drop(state);
        self.nudged.notify_one();
        true
    }

    pub(crate) fn note_postponed(&self, id: i64, is_postponed: bool) {
        let mut state = self.state();
        if is_postponed {
            state.postponed.insert(id);
        } else {
            state.postponed.remove(&id);
        }
    }

    fn left(&self) -> usize {
        let state = self.state();
        state.waiting.len().saturating_add(state.running).saturating_add(state.delivering)
    }

    fn is_dry(&self, asked: u64) -> bool {
        let state = self.state();
        state.told_dry >= asked || !state.looks
    }
}

impl std::fmt::Debug for Watchers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchers").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
