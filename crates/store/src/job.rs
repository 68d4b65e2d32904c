//! A job of the outbox as the database keeps it.

use crate::error::StoreError;
use crate::row::{Dedup, Sealed};
use crate::wire::{Reader, put_bytes, put_i64, put_text};
use serde::Serialize;

/// A job on its way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob<'a> {
    /// Hook and event: the idempotency key.
    pub dedup: Dedup,
    /// The hook's key.
    pub hook: &'a str,
    /// The event's id.
    pub event_id: &'a str,
    /// Where the hook comes from: only a door with hooks from there works on it.
    pub origin: &'a str,
    /// The event, sealed.
    pub payload: Sealed<'a>,
    /// When it came.
    pub created_at: i64,
}

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// To be run, now or later.
    Due,
    /// Out of attempts.
    Dead,
    /// Done; kept for a while so that the same event is not sent twice.
    Done,
}

/// Which jobs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// That stand so.
    pub state: Option<JobState>,
}

/// How many jobs are not done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct JobCounts {
    /// To be run, now or later, or being run.
    pub waiting: u64,
    /// Out of attempts.
    pub dead: u64,
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StoredJob {
    /// Its number.
    pub id: i64,
    /// The hook's key.
    pub hook: String,
    /// The event's id.
    pub event_id: String,
    /// Where the hook comes from.
    pub origin: String,
    /// How it stands.
    pub state: JobState,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is to be run, in milliseconds since 1970.
    pub due_at: i64,
    /// Until when somebody has it; also tells leases apart.
    pub lease_until: Option<i64>,
    /// When it came.
    pub created_at: i64,
    /// Why the last attempt failed.
    pub error: Option<String>,
    /// The event, sealed; empty once the job is done.
    #[serde(skip)]
    pub payload: Option<Sealed<'static>>,
    #[serde(skip)]
    pub(crate) dedup: Dedup,
}

impl JobState {
    pub(crate) fn number(self) -> i64 {
        match self {
            JobState::Due => 0,
            JobState::Dead => 1,
            JobState::Done => 2,
        }
    }

    pub(crate) fn of_number(number: i64) -> JobState {
        match number {
            1 => JobState::Dead,
            2 => JobState::Done,
            _ => JobState::Due,
        }
    }
}

impl<'a> NewJob<'a> {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.dedup);
        put_text(out, self.hook);
        put_text(out, self.event_id);
        put_i64(out, self.created_at);
        put_text(out, &self.payload.key_id);
        put_bytes(out, &self.payload.bytes);
        put_text(out, self.origin);
    }

    pub(crate) fn read(bytes: &'a [u8]) -> Result<NewJob<'a>, StoreError> {
        let mut from = Reader::new(bytes);
        let mut job = NewJob {
            dedup: from.array()?,
            hook: from.text()?,
            event_id: from.text()?,
            origin: "",
            created_at: from.i64()?,
            payload: Sealed { key_id: from.text()?.into(), bytes: from.bytes()?.into() },
        };
        // spools of the first version end here
        if from.end().is_err() {
            job.origin = from.text()?;
        }
        from.end()?;
        Ok(job)
    }
}
