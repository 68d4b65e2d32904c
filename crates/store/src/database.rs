//! What every database of a store can do. Calls wait for the database; who must not wait goes through the spool.

use crate::chain::{Anchor, ChainState};
use crate::error::StoreError;
use crate::job::{JobCounts, JobFilter, NewJob, StoredJob};
use crate::keys::ChainKey;
use crate::query::{Entry, Filter, InChain, Order, Stats};
use crate::row::{Dedup, Framed, Row, Sealed};
use crate::trace::{NewTrace, StoredTrace};
use std::fmt::Debug;

/// Rows, jobs and filter traces that go in together or not at all.
#[derive(Debug, Default)]
pub struct Batch<'a> {
    /// The rows, in order.
    pub rows: Vec<Framed<'a>>,
    /// The jobs, in order.
    pub jobs: Vec<NewJob<'a>>,
    /// The filter traces, in order.
    pub traces: Vec<NewTrace<'a>>,
}

impl Batch<'_> {
    /// How many things it holds.
    pub fn len(&self) -> usize {
        self.rows.len().saturating_add(self.jobs.len()).saturating_add(self.traces.len())
    }

    /// True if it holds nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Who takes jobs, and which.
#[derive(Debug, Clone, Copy)]
pub struct Claimant<'a> {
    /// The name under which a dead process's leases are given back.
    pub owner: &'a str,
    /// Only jobs of hooks from there; none: all.
    pub origins: Option<&'a [String]>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Appended {
    /// Rows that are new.
    pub rows: u64,
    /// Jobs that are new.
    pub jobs: u64,
}

/// What retention took out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Rows.
    pub rows: u64,
    /// True if there may be more to take out.
    pub more: bool,
}

/// Looks at a row on the way through all; false ends the way.
pub type See<'a> = dyn FnMut(InChain<'_>, &Row<'_>) -> Result<bool, StoreError> + 'a;

/// Makes the mark of an anchor that only holders of the key can make.
pub type MarkAnchor<'a> = dyn Fn(&str, &Anchor) -> Anchor + 'a;

/// A place for rows and jobs.
pub trait Database: Send + Debug {
    /// Adds a batch in one transaction. A row or job that is there already changes nothing and leaves no gap in the
    /// chain.
    fn append(&mut self, writer: &str, key: &ChainKey, batch: &Batch<'_>) -> Result<Appended, StoreError>;

    /// From now on, a batch outlives a power cut once `append` has returned.
    fn sync_each(&mut self, on: bool) -> Result<(), StoreError>;

    /// Some rows that the filter wants, in order, beyond the one with the id `after`.
    fn page(
        &mut self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError>;

    /// One row.
    fn get(&mut self, id: i64) -> Result<Option<Entry>, StoreError>;

    /// Numbers over the rows that the filter wants.
    fn stats(&mut self, filter: &Filter) -> Result<Stats, StoreError>;

    /// Goes through all rows as they were written, quickly.
    fn walk(&mut self, see: &mut See<'_>) -> Result<(), StoreError>;

    /// What the database says about its chains.
    fn chains(&mut self) -> Result<Vec<ChainState>, StoreError>;

    /// Takes rows out that were made before a time: from the beginning of each chain up to the first that was not.
    /// Does a bounded part of the work.
    fn prune(&mut self, before: i64, mark: &MarkAnchor<'_>) -> Result<Pruned, StoreError>;

    /// The hook is deleted: its rows lose its key and keep its label. Gives how many hooks or rows it concerned.
    fn forget_hook(&mut self, hook: &str) -> Result<u64, StoreError>;

    /// Some rows with a detail that another key than this one sealed, beyond the id `after`.
    fn sealed_by_others(
        &mut self,
        key_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Dedup, Sealed<'static>)>, StoreError>;

    /// Puts new seals in the place of old ones.
    fn reseal(&mut self, seals: &[(i64, Sealed<'static>)]) -> Result<(), StoreError>;

    /// Takes jobs that are due, or whose lease has ended, and leases them.
    fn claim(
        &mut self,
        now: i64,
        lease_until: i64,
        limit: usize,
        who: Claimant<'_>,
    ) -> Result<Vec<StoredJob>, StoreError>;

    /// The owner is gone: what he had leased is due again. Gives how many.
    fn free_leases(&mut self, owner: &str) -> Result<u64, StoreError>;

    /// The job is done. False if the lease was lost to somebody else.
    fn finish_job(&mut self, id: i64, lease: i64, now: i64) -> Result<bool, StoreError>;

    /// The job failed: it is due again then, or is dead (`None`). False if the lease was lost.
    fn fail_job(&mut self, id: i64, lease: i64, due: Option<i64>, error: &str) -> Result<bool, StoreError>;

    /// Some jobs, oldest first.
    fn jobs(&mut self, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>, StoreError>;

    /// How many jobs are not done.
    fn job_counts(&mut self) -> Result<JobCounts, StoreError>;

    /// Dead jobs (one, or all) are due again now, with all their attempts. Gives how many.
    fn resend(&mut self, id: Option<i64>, now: i64) -> Result<u64, StoreError>;

    /// When the next job of hooks from there (none: of any) is due or its lease ends.
    fn next_due(&mut self, origins: Option<&[String]>) -> Result<Option<i64>, StoreError>;

    /// Forgets jobs that were done before a time; until then they keep the same event from being sent again.
    fn clean_jobs(&mut self, before: i64) -> Result<u64, StoreError>;

    /// The newest filter traces of an event or a session, oldest first.
    fn traces(&mut self, of: &str, limit: usize) -> Result<Vec<StoredTrace>, StoreError>;

    /// The hooks that a source has now. One that it had before and that no other source has is deleted, as by
    /// [`forget_hook`](Database::forget_hook); gives those.
    fn install(&mut self, source: &str, hooks: &[String]) -> Result<Vec<String>, StoreError>;

    /// True for one caller in each stretch of `each` milliseconds, who then takes old rows out.
    fn begin_retention(&mut self, now: i64, each: i64) -> Result<bool, StoreError>;

    /// Gives what an earlier program or crash left in logs of the database back to it. Called when nobody waits.
    fn tidy(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}
