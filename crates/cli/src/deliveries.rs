//! The outbox of watching hooks on the store of a [`Trail`]: an adapter, because store and handlers do not know each other.

use crate::trail::Trail;
use hookgate_handlers::outbox::{Claimed, End, Job, Outbox};
use hookgate_store::job::JobCounts;
use hookgate_store::outbox::{self as store, Retry};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The store's outbox as the pool of watching hooks uses it.
pub(crate) struct Deliveries {
    trail: Trail,
    retry: Retry,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Opened with the first claim.
    outbox: Option<store::Outbox>,
    /// What is under way here, with the leases.
    claimed: HashMap<i64, store::Claimed>,
}

impl Deliveries {
    pub(crate) fn new(trail: Trail) -> Deliveries {
        Deliveries { trail, retry: Retry::default(), state: Mutex::default() }
    }

    /// How many wait, and how many are dead. Reads the database.
    pub(crate) fn counts(&self) -> Result<JobCounts, String> {
        self.with(|outbox, _| outbox.counts())
    }

    fn with<T>(
        &self,
        call: impl FnOnce(
            &mut store::Outbox,
            &mut HashMap<i64, store::Claimed>,
        ) -> Result<T, hookgate_store::StoreError>,
    ) -> Result<T, String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let State { outbox, claimed } = &mut *state;
        if outbox.is_none() {
            let (kept, options) = self.trail.store()?;
            let mut opened = store::Outbox::open(options, self.retry).map_err(|error| error.to_string())?;
            opened.clean().map_err(|error| error.to_string())?;
            *outbox = Some(opened.of_store(kept));
        }
        match outbox {
            Some(outbox) => call(outbox, claimed).map_err(|error| error.to_string()),
            None => Err("the outbox is not open".into()),
        }
    }
}

impl Outbox for Deliveries {
    fn keep(&self, job: Job) -> bool {
        let Job { hook, event_id, origin, facts } = job;
        self.trail.keep(store::Job { hook, event_id, origin, facts })
    }

    fn may_hold_jobs(&self) -> bool {
        self.trail.is_in_use()
    }

    fn claim(&self, origins: &[String], limit: usize) -> Result<Vec<Claimed>, String> {
        self.with(|outbox, claimed| {
            outbox.look_only_at(origins);
            let jobs = outbox.claim(limit)?;
            Ok(jobs
                .into_iter()
                .map(|job| {
                    let given = of_store(&job);
                    claimed.insert(job.id, job);
                    given
                })
                .collect())
        })
    }

    fn settle(&self, job: &Claimed, end: &End) -> Result<(), String> {
        self.with(|outbox, claimed| {
            let Some(held) = claimed.get(&job.id) else { return Ok(()) };
            // false: the lease was over and somebody else has it by now
            let _still_ours = match end {
                End::Done => outbox.done(held)?,
                End::Again(why) => outbox.failed(held, why)?,
                End::Dead(why) => outbox.give_up(held, why)?,
            };
            claimed.remove(&job.id);
            Ok(())
        })
    }

    fn next_due(&self, origins: &[String]) -> Result<Option<Duration>, String> {
        self.with(|outbox, _| {
            outbox.look_only_at(origins);
            outbox.next_due_in()
        })
    }

    fn attempts(&self) -> u32 {
        self.retry.attempts
    }

    fn flush(&self, within: Duration) {
        if let Ok((store, _)) = self.trail.store() {
            // what is late is claimed later
            store.flush(within).ok();
        }
    }

    fn give_back(&self) {
        let is_open = self.state.lock().unwrap_or_else(PoisonError::into_inner).outbox.is_some();
        if is_open {
            // else it is due again when the next process finds this one's spool
            self.with(|outbox, _| outbox.give_back()).ok();
        }
    }
}

fn of_store(claimed: &store::Claimed) -> Claimed {
    let store::Job { hook, event_id, origin, facts } = claimed.job.clone();
    Claimed { job: Job { hook, event_id, origin, facts }, id: claimed.id, attempt: claimed.attempt }
}

impl fmt::Debug for Deliveries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Deliveries").field("trail", &self.trail).finish_non_exhaustive()
    }
}
