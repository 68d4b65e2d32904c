//! The place for work of watching hooks that must not be lost, as the pool uses it. What is behind it, a store on a
//! disk or a double in a test, is the door's to say.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

/// A watching hook that is to run on an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The hook's key.
    pub hook: String,
    /// The event's id. Hook and event together are the idempotency key: a second such job changes nothing.
    pub event_id: String,
    /// The folder that the hook comes from, see [`origin_of`].
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
}

/// How a try ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It was done.
    Done,
    /// It failed, and is to be tried again after a pause.
    Again(String),
    /// It failed, and trying again cannot help: a dead letter, for people to look at.
    Dead(String),
}

/// Keeps jobs and gives them out, at least once. Any number of processes may share one. All calls but
/// [`keep`](Outbox::keep) may block the thread. Errors are one sentence; whoever gets one tries again later.
pub trait Outbox: Send + Sync + Debug {
    /// Takes a job over without waiting. False: it cannot.
    fn keep(&self, job: Job) -> bool;

    /// Whether there may be jobs of earlier processes. Opens and makes nothing.
    fn may_hold_jobs(&self) -> bool;

    /// Up to `limit` jobs that are due, of hooks from these folders.
    fn claim(&self, origins: &[String], limit: usize) -> Result<Vec<Claimed>, String>;

    /// Says how a claimed job ended.
    fn settle(&self, claimed: &Claimed, end: &End) -> Result<(), String>;

    /// How long until the next job of hooks from these folders is due; `None`: there is none.
    fn next_due(&self, origins: &[String]) -> Result<Option<Duration>, String>;

    /// How often a job is tried before it is dead.
    fn attempts(&self) -> u32;

    /// Waits, at most `within`, until all that was kept can be claimed.
    fn flush(&self, within: Duration);

    /// Gives back what this process has claimed and not settled: it is due at once, for whoever comes.
    fn give_back(&self);
}

/// The name of a hooks folder in jobs: its whole path, without links.
pub fn origin_of(folder: &Path) -> String {
    std::fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()).display().to_string()
}
