//! Background work that must not be lost: watching hooks that did not fit, or whose receiver was down.
//!
//! A job is the key of a hook and an event as JSON, sealed. It runs at least once: whoever claims it holds a lease, and
//! if he does not come back it is due again. It fails with growing pauses, up to a number of attempts; then it is dead,
//! can be looked at, and sent again by hand. Hook and event are the idempotency key: for a day after it was done the
//! same job is not taken in again. Any number of processes may work on one outbox.

use crate::database::{Claimant, Database};
use crate::error::StoreError;
use crate::files;
use crate::job::{JobCounts, JobFilter, StoredJob};
use crate::keys::{Keys, Purpose};
use crate::spool::adopt;
use crate::store::{Clock, Options, Store};
use hookgate_core::record::open_text;
use std::fmt;
use std::time::{Duration, Instant};

/// How long a done job keeps the same one out.
const REMEMBERED: i64 = 24 * 3_600_000;
/// Jobs that are claimed at once while draining.
const AT_ONCE: usize = 16;

/// A watching hook that is to run on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The hook's key.
    pub hook: String,
    /// The event's id.
    pub event_id: String,
    /// Where the hook comes from, such as its folder: hooks of several folders may have the same key, and only a door
    /// with hooks from there may work on it. May be empty.
    pub origin: String,
    /// The event, as `Facts::to_json` writes it.
    pub facts: String,
}

/// A job that this process has now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// What is to be done.
    pub job: Job,
    /// Its number.
    pub id: i64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    lease: i64,
}

/// How failures are dealt with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retry {
    /// After so many attempts a job is dead.
    pub attempts: u32,
    /// The pause after the first failure; it doubles.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// How long a claimed job is this process's own at most: longer than a hook may take. If the process dies, the next
    /// one in its data directory gives it back earlier.
    pub lease: Duration,
}

/// The outbox, for workers and for people.
pub struct Outbox {
    database: Box<dyn Database>,
    keys: Option<Keys>,
    clock: Clock,
    retry: Retry,
    owner: String,
    origins: Option<Vec<String>>,
}

impl Default for Retry {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Retry { attempts: 12, first: seconds(1), longest: seconds(3600), lease: seconds(660) }
    }
}

impl Outbox {
    /// Opens the outbox, and moves in what dead processes left.
    pub fn open(options: &Options, retry: Retry) -> Result<Outbox, StoreError> {
        let place = options.place()?;
        let mut database = (place.backend)()?;
        adopt::adopt(&place, &mut *database)?;
        let (keys, clock) = (place.keys, options.clock.clone());
        Ok(Outbox { database, keys, clock, retry, owner: files::random_name()?, origins: None })
    }

    /// The same for a process with a store: if the process dies, what it has is given back when its spool is found.
    #[must_use]
    pub fn of_store(mut self, store: &Store) -> Outbox {
        self.owner = store.name().to_owned();
        self
    }

    /// The same, only for jobs of hooks that come from there.
    #[must_use]
    pub fn only_from(mut self, origins: Vec<String>) -> Outbox {
        self.origins = Some(origins);
        self
    }

    /// From now on only at jobs of hooks that come from there.
    pub fn look_only_at(&mut self, origins: &[String]) {
        if self.origins.as_deref() != Some(origins) {
            self.origins = Some(origins.to_vec());
        }
    }

    /// How long until the next job is due; `None`: there is none.
    pub fn next_due_in(&mut self) -> Result<Option<Duration>, StoreError> {
        let now = (self.clock)();
        let left = |due: i64| Duration::from_millis(due.saturating_sub(now).try_into().unwrap_or(0));
        Ok(self.next_due()?.map(left))
    }

    /// Takes up to `limit` jobs that are due. A job that no key at hand opens is put back with the reason.
    pub fn claim(&mut self, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        let now = (self.clock)();
        let until = now.saturating_add(millis(self.retry.lease));
        let mut claimed = Vec::new();
        let who = Claimant { owner: &self.owner, origins: self.origins.as_deref() };
        for stored in self.database.claim(now, until, limit, who)? {
            let (id, attempt) = (stored.id, stored.attempts);
            if attempt > self.retry.attempts {
                // whoever had it never came back: it may be what ends them
                let why = format!("it was begun {} times and never ended", self.retry.attempts);
                self.database.fail_job(id, until, None, &why)?;
                continue;
            }
            match self.open_job(&stored) {
                Ok(job) => claimed.push(Claimed { job, id, attempt, lease: until }),
                Err(why) => {
                    self.fail(id, until, attempt, &why.to_string())?;
                }
            }
        }
        Ok(claimed)
    }

    /// The job is done. False: its lease had ended and somebody else has it.
    pub fn done(&mut self, claimed: &Claimed) -> Result<bool, StoreError> {
        self.database.finish_job(claimed.id, claimed.lease, (self.clock)())
    }

    /// The job failed; it is due again after a pause, or dead.
    pub fn failed(&mut self, claimed: &Claimed, why: &str) -> Result<bool, StoreError> {
        self.fail(claimed.id, claimed.lease, claimed.attempt, why)
    }

    /// The job failed and trying again cannot help: it is dead at once.
    pub fn give_up(&mut self, claimed: &Claimed, why: &str) -> Result<bool, StoreError> {
        self.database.fail_job(claimed.id, claimed.lease, None, &open_text(why))
    }

    /// Gives everything back that was claimed and neither done nor failed: it is due at once. For the end of a process.
    pub fn give_back(&mut self) -> Result<u64, StoreError> {
        self.database.free_leases(&self.owner)
    }

    /// Forgets jobs that were done a day ago. To be called now and then.
    pub fn clean(&mut self) -> Result<u64, StoreError> {
        self.database.clean_jobs((self.clock)().saturating_sub(REMEMBERED))
    }

    /// Runs jobs that are due until none is or the time is over. Gives how many were done. Blocks the thread.
    pub fn drain(
        &mut self,
        within: Duration,
        mut run: impl FnMut(&Job) -> Result<(), String>,
    ) -> Result<u64, StoreError> {
        let began = Instant::now();
        let mut done = 0u64;
        self.clean()?;
        while began.elapsed() < within {
            let claimed = self.claim(AT_ONCE)?;
            if claimed.is_empty() {
                break;
            }
            for claimed in claimed {
                if began.elapsed() >= within {
                    // not begun: it does not count as an attempt that failed, its lease ends by itself
                    break;
                }
                match run(&claimed.job) {
                    Ok(()) => done = done.saturating_add(u64::from(self.done(&claimed)?)),
                    Err(why) => {
                        self.failed(&claimed, &why)?;
                    }
                }
            }
        }
        Ok(done)
    }

    /// When the next job is due, in milliseconds since 1970.
    pub fn next_due(&mut self) -> Result<Option<i64>, StoreError> {
        self.database.next_due(self.origins.as_deref())
    }

    /// How many jobs are not done, whoever's they are.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn counts(&mut self) -> Result<JobCounts, StoreError> {
        self.database.job_counts()
    }

    /// Jobs, oldest first.
    pub fn list(&mut self, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        self.database.jobs(filter, limit)
    }

    /// Dead jobs, one or all, are due again. Gives how many.
    pub fn resend(&mut self, id: Option<i64>) -> Result<u64, StoreError> {
        self.database.resend(id, (self.clock)())
    }

    /// What a stored job is about, for people who may see it.
    pub fn open_job(&self, stored: &StoredJob) -> Result<Job, StoreError> {
        let keys = self.keys.as_ref().ok_or(StoreError::NoKey("reading a job"))?;
        let sealed = stored.payload.as_ref().ok_or_else(|| StoreError::Refused("the job is done".into()))?;
        let text = keys.open(Purpose::Job, &stored.dedup, sealed)?;
        let facts = String::from_utf8_lossy(&text).into_owned();
        let (hook, event_id) = (stored.hook.clone(), stored.event_id.clone());
        Ok(Job { hook, event_id, origin: stored.origin.clone(), facts })
    }

    fn fail(&mut self, id: i64, lease: i64, attempt: u32, why: &str) -> Result<bool, StoreError> {
        let again = attempt < self.retry.attempts;
        let pause = millis(pause_after(&self.retry, attempt, random()));
        let due = again.then(|| (self.clock)().saturating_add(pause));
        self.database.fail_job(id, lease, due, &open_text(why))
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outbox { database, retry, .. } = self;
        f.debug_struct("Outbox").field("database", database).field("retry", retry).finish_non_exhaustive()
    }
}

/// The pause after an attempt: doubled each time, and between half and all of that, so that jobs that failed together do
/// not come back together. `chance` is from 0 to 255.
fn pause_after(retry: &Retry, attempt: u32, chance: u8) -> Duration {
    let doubled = 2u32.saturating_pow(attempt.saturating_sub(1).min(30));
    let whole = retry.first.saturating_mul(doubled).min(retry.longest);
    let half = whole.checked_div(2).unwrap_or_default();
    half.saturating_add(half.saturating_mul(u32::from(chance)).checked_div(255).unwrap_or_default())
}

fn random() -> u8 {
    let mut byte = [0];
    // without chance the pauses are only less spread
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut byte).ok();
    let [byte] = byte;
    byte
}

fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_are_spread() {
        let retry = Retry::default();
        for (attempt, chance, millis) in [
            (1, 0, 500),
            (1, 255, 1000),
            (2, 255, 2000),
            (5, 0, 8000),
            (5, 255, 16_000),
            (13, 255, 3_600_000),
            (4_000_000_000, 0, 1_800_000),
        ] {
            assert_eq!(pause_after(&retry, attempt, chance), Duration::from_millis(millis), "{attempt}");
        }
    }
}
