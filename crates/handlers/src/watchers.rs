//! Runs watching hooks in the background, bounded: a few at a time, a queue of a stated length, and a count of what
//! did not fit. Nothing here makes the agent wait.

use hookgate_core::gate::{Surroundings, Watch};
use hookgate_core::verdict::Trace;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Told how a watching hook's run went.
pub type OnTrace = dyn Fn(&Trace) + Send + Sync;

/// Keeps work that does not fit into the pool, for later.
pub trait Outbox: Send + Sync + std::fmt::Debug {
    /// Takes the work over, or gives it back if it cannot: then it is counted and dropped. Must not wait.
    fn spill(&self, watch: Watch) -> Option<Watch>;
}

/// The bounds of the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Hooks that run at a time.
    pub at_a_time: usize,
    /// Hooks that wait at most; what comes on top is counted and dropped.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { at_a_time: 8, waiting: 10_000 }
    }
}

/// The pool. Clones share it.
#[derive(Clone)]
pub struct Watchers {
    shared: Arc<Shared>,
}

struct Shared {
    around: Surroundings,
    limits: Limits,
    on_trace: Option<Box<OnTrace>>,
    outbox: Option<Arc<dyn Outbox>>,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<Watch>,
    running: usize,
    overflowed: u64,
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

    /// The same, with a place for what does not fit.
    pub fn with_outbox(
        around: Surroundings,
        limits: Limits,
        on_trace: Option<Box<OnTrace>>,
        outbox: Option<Arc<dyn Outbox>>,
    ) -> Watchers {
        let (state, changed) = (Mutex::default(), Notify::new());
        Watchers { shared: Arc::new(Shared { around, limits, on_trace, outbox, state, changed }) }
    }

    /// Takes work in and returns at once. What does not fit is counted. Outside a runtime nothing can run: the work
    /// waits for the next call from inside one.
    pub fn submit(&self, work: Vec<Watch>) {
        let mut state = self.shared.state();
        for watch in work {
            if state.waiting.len() < self.shared.limits.waiting {
                state.waiting.push_back(watch);
            } else if self.shared.outbox.as_ref().is_none_or(|outbox| outbox.spill(watch).is_some()) {
                state.overflowed = state.overflowed.saturating_add(1);
            }
        }
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        while state.running
            < self.shared.limits.at_a_time.min(state.running.saturating_add(state.waiting.len()))
        {
            state.running = state.running.saturating_add(1);
            // it ends when nothing waits; `drain` waits for it at shutdown
            runtime.spawn(work_off(self.shared.clone()));
        }
    }

    /// How much work did not fit so far.
    pub fn overflowed(&self) -> u64 {
        self.shared.state().overflowed
    }

    /// Waits until all work is done, at most `limit`; gives how much is left.
    pub async fn drain(&self, limit: Duration) -> usize {
        self.submit(Vec::new());
        let done = async {
            loop {
                let changed = self.shared.changed.notified();
                if self.shared.left() == 0 {
                    break;
                }
                changed.await;
            }
        };
        // the time is up or the work is done: what is left tells which
        tokio::time::timeout(limit, done).await.ok();
        self.shared.left()
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
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn left(&self) -> usize {
        let state = self.state();
        state.waiting.len().saturating_add(state.running)
    }
}

impl std::fmt::Debug for Watchers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watchers").field("limits", &self.shared.limits).finish_non_exhaustive()
    }
}
