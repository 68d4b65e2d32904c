//! A store in memory: for tests, and for doors that need no trail. Keeps a stated number of rows.

use crate::chain::{Anchor, ChainState, Epoch, Link, start};
use crate::database::{Appended, Batch, Claimant, Database, MarkAnchor, Pruned, See};
use crate::error::StoreError;
use crate::job::{JobCounts, JobFilter, JobState, StoredJob};
use crate::keys::ChainKey;
use crate::query::{Entry, Filter, Group, InChain, Order, Stats};
use crate::row::{Dedup, Framed, Row, Sealed};
use crate::trace::StoredTrace;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// Rows and jobs in memory.
#[derive(Debug)]
pub struct Memory {
    newest: usize,
    rows: VecDeque<Kept>,
    seen: HashSet<Dedup>,
    chains: Vec<ChainState>,
    jobs: Vec<StoredJob>,
    owners: BTreeMap<i64, String>,
    traces: VecDeque<StoredTrace>,
    installed: HashSet<(String, String)>,
    pruned_at: Option<i64>,
    last_id: i64,
    last_job: i64,
}

#[derive(Debug)]
struct Kept {
    id: i64,
    chain: usize,
    link: Link,
    bytes: Vec<u8>,
}

impl Memory {
    /// Keeps at most `newest` rows.
    pub fn new(newest: usize) -> Memory {
        Memory {
            newest,
            rows: VecDeque::new(),
            seen: HashSet::new(),
            chains: Vec::new(),
            jobs: Vec::new(),
            owners: BTreeMap::new(),
            traces: VecDeque::new(),
            installed: HashSet::new(),
            pruned_at: None,
            last_id: 0,
            last_job: 0,
        }
    }

    fn chain_of(&mut self, writer: &str) -> usize {
        self.chains.iter().position(|chain| chain.writer == writer).unwrap_or_else(|| {
            let (writer, head) = (writer.to_owned(), start(writer));
            self.chains.push(ChainState { writer, head, anchor: None, epochs: Vec::new() });
            self.chains.len().saturating_sub(1)
        })
    }

    fn add_row(&mut self, place: usize, key: &ChainKey, framed: &Framed<'_>) -> bool {
        let Some(chain) = self.chains.get_mut(place) else { return false };
        if !self.seen.insert(framed.row.dedup) {
            return false;
        }
        let link = chain.head.next(key, framed.canonical);
        let key_id = key.id().map(str::to_owned);
        if chain.epochs.last().is_none_or(|epoch| epoch.key_id != key_id) {
            chain.epochs.push(Epoch { from: link.seq, key_id });
        }
        chain.head = link;
        self.last_id = self.last_id.saturating_add(1);
        let mut bytes = Vec::new();
        framed.row.put(&mut bytes);
        self.rows.push_back(Kept { id: self.last_id, chain: place, link, bytes });
        if self.rows.len() > self.newest {
            self.drop_first(&|writer, anchor| anchor.marked(writer, key));
        }
        true
    }

    fn drop_first(&mut self, mark: &MarkAnchor<'_>) {
        let Some(first) = self.rows.pop_front() else { return };
        if let Ok(framed) = Framed::read(&first.bytes) {
            self.seen.remove(&framed.row.dedup);
        }
        if let Some(chain) = self.chains.get_mut(first.chain) {
            let anchor = Anchor { link: first.link, last_id: first.id, key_id: None, mark: None };
            chain.anchor = Some(mark(&chain.writer, &anchor));
        }
    }

    /// Looks at all rows, newest last.
    fn each(&self, mut see: impl FnMut(InChain<'_>, &Row<'_>) -> bool) -> Result<(), StoreError> {
        for kept in &self.rows {
            let framed = Framed::read(&kept.bytes)?;
            let writer = self.chains.get(kept.chain).map_or("", |chain| &chain.writer);
            let place = InChain { id: kept.id, writer, seq: kept.link.seq, hash: kept.link.hash };
            if !see(place, &framed.row) {
                break;
            }
        }
        Ok(())
    }

    /// Writes rows anew that a change concerns.
    fn rewrite(&mut self, mut change: impl FnMut(i64, &mut Row<'_>) -> bool) -> Result<u64, StoreError> {
        let mut changed = 0u64;
        for kept in &mut self.rows {
            let mut row = Framed::read(&kept.bytes)?.row;
            if change(kept.id, &mut row) {
                let mut bytes = Vec::new();
                row.put(&mut bytes);
                kept.bytes = bytes;
                changed = changed.saturating_add(1);
            }
        }
        Ok(changed)
    }

    fn leased(&mut self, id: i64, lease: i64) -> Option<&mut StoredJob> {
        let held = |job: &&mut StoredJob| job.id == id && job.lease_until == Some(lease);
        self.jobs.iter_mut().find(held)
    }
}

impl Database for Memory {
    fn append(&mut self, writer: &str, key: &ChainKey, batch: &Batch<'_>) -> Result<Appended, StoreError> {
        let chain = self.chain_of(writer);
        let mut appended = Appended::default();
        for framed in &batch.rows {
            appended.rows = appended.rows.saturating_add(u64::from(self.add_row(chain, key, framed)));
        }
        for job in &batch.jobs {
            if self.jobs.iter().any(|kept| kept.dedup == job.dedup) {
                continue;
            }
            self.last_job = self.last_job.saturating_add(1);
            appended.jobs = appended.jobs.saturating_add(1);
            self.jobs.push(StoredJob {
                id: self.last_job,
                hook: job.hook.to_owned(),
                event_id: job.event_id.to_owned(),
                origin: job.origin.to_owned(),
                state: JobState::Due,
                attempts: 0,
                due_at: job.created_at,
                lease_until: None,
                created_at: job.created_at,
                error: None,
                payload: Some(job.payload.clone().into_owned()),
                dedup: job.dedup,
            });
        }
        for trace in &batch.traces {
            let stored = trace.stored();
            let same = |kept: &StoredTrace| {
                (&kept.event_id, &kept.session_id) == (&stored.event_id, &stored.session_id)
            };
            if !self.traces.iter().any(same) {
                self.traces.push_back(stored);
            }
        }
        while self.traces.len() > self.newest {
            self.traces.pop_front();
        }
        Ok(appended)
    }

    fn sync_each(&mut self, _: bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn page(
        &mut self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        let mut page = VecDeque::new();
        self.each(|place, row| {
            let beyond = after.is_none_or(|after| match order {
                Order::OldestFirst => place.id > after,
                Order::NewestFirst => place.id < after,
            });
            if beyond && filter.wants(row) {
                match order {
                    Order::OldestFirst => page.push_back(Entry::of(row, place)),
                    Order::NewestFirst => page.push_front(Entry::of(row, place)),
                }
            }
            order == Order::NewestFirst || page.len() < limit
        })?;
        page.truncate(limit);
        Ok(page.into())
    }

    fn get(&mut self, id: i64) -> Result<Option<Entry>, StoreError> {
        let mut found = None;
        self.each(|place, row| {
            if place.id == id {
                found = Some(Entry::of(row, place));
            }
            found.is_none()
        })?;
        Ok(found)
    }

    fn stats(&mut self, filter: &Filter) -> Result<Stats, StoreError> {
        let mut stats = Stats::default();
        self.each(|_, row| {
            if filter.wants(row) {
                let (at, us) = (row.created_at, row.duration_us);
                let group = Group { rows: 1, first: at, last: at, total_us: us, longest_us: us };
                stats.add(row.label, row.decision, &group);
            }
            true
        })?;
        Ok(stats)
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<(), StoreError> {
        let mut result = Ok(());
        self.each(|place, row| match see(place, row) {
            Ok(on) => on,
            Err(error) => {
                result = Err(error);
                false
            }
        })?;
        result
    }

    fn chains(&mut self) -> Result<Vec<ChainState>, StoreError> {
        Ok(self.chains.clone())
    }

    fn prune(&mut self, before: i64, mark: &MarkAnchor<'_>) -> Result<Pruned, StoreError> {
        self.traces.retain(|trace| trace.created_at >= before);
        let mut rows = 0u64;
        // chains lie one beside the other here; the first row that must stay ends it for all
        while let Some(first) = self.rows.front() {
            if Framed::read(&first.bytes)?.row.created_at >= before {
                break;
            }
            self.drop_first(mark);
            rows = rows.saturating_add(1);
        }
        Ok(Pruned { rows, more: false })
    }

    fn forget_hook(&mut self, hook: &str) -> Result<u64, StoreError> {
        self.rewrite(|_, row| {
            let concerned = row.hook == hook;
            if concerned {
                row.hook = "";
            }
            concerned
        })
    }

    fn sealed_by_others(
        &mut self,
        key_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<Vec<(i64, Dedup, Sealed<'static>)>, StoreError> {
        let mut found = Vec::new();
        self.each(|place, row| {
            if let Some(sealed) =
                row.detail.as_ref().filter(|sealed| sealed.key_id != key_id && place.id > after)
            {
                found.push((place.id, row.dedup, sealed.clone().into_owned()));
            }
            found.len() < limit
        })?;
        Ok(found)
    }

    fn reseal(&mut self, seals: &[(i64, Sealed<'static>)]) -> Result<(), StoreError> {
        self.rewrite(|id, row| {
            let seal = seals.iter().find(|(of, _)| *of == id);
            if let Some((_, seal)) = seal {
                row.detail = Some(seal.clone());
            }
            seal.is_some()
        })?;
        Ok(())
    }

    fn claim(
        &mut self,
        now: i64,
        lease_until: i64,
        limit: usize,
        who: Claimant<'_>,
    ) -> Result<Vec<StoredJob>, StoreError> {
        let free = |job: &&mut StoredJob| {
            job.state == JobState::Due
                && who.origins.is_none_or(|origins| origins.contains(&job.origin))
                && job.due_at <= now
                && job.lease_until.is_none_or(|until| until <= now)
        };
        let mut claimed: Vec<&mut StoredJob> = self.jobs.iter_mut().filter(free).collect();
        claimed.sort_by_key(|job| (job.due_at, job.id));
        claimed.truncate(limit);
        let owners = &mut self.owners;
        let lease = |job: &mut StoredJob| {
            owners.insert(job.id, who.owner.to_owned());
            job.lease_until = Some(lease_until);
            job.attempts = job.attempts.saturating_add(1);
            job.clone()
        };
        Ok(claimed.into_iter().map(lease).collect())
    }

    fn free_leases(&mut self, owner: &str) -> Result<u64, StoreError> {
        let mut freed = 0u64;
        for job in self.jobs.iter_mut().filter(|job| job.lease_until.is_some()) {
            if self.owners.get(&job.id).is_some_and(|of| of == owner) {
                job.lease_until = None;
                freed = freed.saturating_add(1);
            }
        }
        Ok(freed)
    }

    fn finish_job(&mut self, id: i64, lease: i64, now: i64) -> Result<bool, StoreError> {
        let Some(job) = self.leased(id, lease) else { return Ok(false) };
        (job.state, job.due_at, job.lease_until, job.payload) = (JobState::Done, now, None, None);
        job.error = None;
        Ok(true)
    }

    fn fail_job(&mut self, id: i64, lease: i64, due: Option<i64>, error: &str) -> Result<bool, StoreError> {
        let Some(job) = self.leased(id, lease) else { return Ok(false) };
        job.state = if due.is_some() { JobState::Due } else { JobState::Dead };
        job.due_at = due.unwrap_or(job.due_at);
        (job.lease_until, job.error) = (None, Some(error.to_owned()));
        Ok(true)
    }

    fn jobs(&mut self, filter: JobFilter, limit: usize) -> Result<Vec<StoredJob>, StoreError> {
        let wanted = |job: &&StoredJob| filter.state.is_none_or(|state| job.state == state);
        Ok(self.jobs.iter().filter(wanted).take(limit).cloned().collect())
    }

    fn job_counts(&mut self) -> Result<JobCounts, StoreError> {
        let count = |state| {
            let n = self.jobs.iter().filter(|job| job.state == state).count();
            u64::try_from(n).unwrap_or(u64::MAX)
        };
        Ok(JobCounts { waiting: count(JobState::Due), dead: count(JobState::Dead) })
    }

    fn resend(&mut self, id: Option<i64>, now: i64) -> Result<u64, StoreError> {
        let wanted = |job: &&mut StoredJob| job.state == JobState::Dead && id.is_none_or(|id| job.id == id);
        let mut count = 0u64;
        for job in self.jobs.iter_mut().filter(wanted) {
            (job.state, job.due_at, job.attempts) = (JobState::Due, now, 0);
            count = count.saturating_add(1);
        }
        Ok(count)
    }

    fn next_due(&mut self, origins: Option<&[String]>) -> Result<Option<i64>, StoreError> {
        let due = |job: &StoredJob| job.due_at.max(job.lease_until.unwrap_or(i64::MIN));
        let wanted = |job: &&StoredJob| {
            job.state == JobState::Due && origins.is_none_or(|origins| origins.contains(&job.origin))
        };
        Ok(self.jobs.iter().filter(wanted).map(due).min())
    }

    fn traces(&mut self, of: &str, limit: usize) -> Result<Vec<StoredTrace>, StoreError> {
        let wanted = |trace: &&StoredTrace| trace.event_id == of || trace.session_id == of;
        let mut found: Vec<StoredTrace> =
            self.traces.iter().rev().filter(wanted).take(limit).cloned().collect();
        found.reverse();
        Ok(found)
    }

    fn install(&mut self, source: &str, hooks: &[String]) -> Result<Vec<String>, StoreError> {
        let before = self.installed.clone();
        self.installed.retain(|(of, _)| of != source);
        self.installed.extend(hooks.iter().map(|hook| (source.to_owned(), hook.clone())));
        let mut gone: Vec<String> = Vec::new();
        for (_, hook) in before.iter().filter(|(of, _)| of == source) {
            if !self.installed.iter().any(|(_, kept)| kept == hook) {
                self.forget_hook(hook)?;
                gone.push(hook.clone());
            }
        }
        gone.sort();
        Ok(gone)
    }

    fn begin_retention(&mut self, now: i64, each: i64) -> Result<bool, StoreError> {
        let begun = self.pruned_at.is_none_or(|at| at <= now.saturating_sub(each) || at > now);
        if begun {
            self.pruned_at = Some(now);
        }
        Ok(begun)
    }

    fn clean_jobs(&mut self, before: i64) -> Result<u64, StoreError> {
        let held = self.jobs.len();
        self.jobs.retain(|job| job.state != JobState::Done || job.due_at >= before);
        Ok(u64::try_from(held.saturating_sub(self.jobs.len())).unwrap_or(u64::MAX))
    }
}
