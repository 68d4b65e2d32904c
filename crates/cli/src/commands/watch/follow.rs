//! What is new in the trail since the last look.
//!
//! Numbers of rows grow, but not always in the order in which rows become visible: two processes write to one PostgreSQL
//! at a time, and the one with the higher number may be done first. So each look goes back a little, and rows that were
//! seen are passed over.

use crate::data::DataDir;
use crate::failure::Failure;
use hookgate_store::StoreError;
use hookgate_store::audit::Audit;
use hookgate_store::query::{Entry, Filter, Order};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// How far each look goes back.
const BACK: i64 = 256;
/// Rows that one look takes at most; the next takes the rest.
const PAGE: usize = 1000;
/// How often what dead processes left is moved in.
const CATCH_UP: Duration = Duration::from_secs(1);

/// Follows a trail.
pub(super) struct Follow {
    place: DataDir,
    filter: Filter,
    last: usize,
    read_only: bool,
    trail: Option<Trail>,
}

struct Trail {
    audit: Audit,
    /// The highest number that was seen.
    newest: i64,
    /// Numbers that were seen, those that a look may meet again.
    seen: BTreeSet<i64>,
    /// Below that nothing is new: it was there before the watch began.
    from: i64,
    caught_up: Instant,
}

impl Follow {
    /// Follows the rows that the filter wants, and begins with the `last` of them.
    pub(super) fn new(place: DataDir, filter: Filter, last: usize, read_only: bool) -> Follow {
        Follow { place, filter, last, read_only, trail: None }
    }

    /// Where the trail is.
    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    /// Whether there is a trail by now. One that no door has begun is waited for.
    pub(super) fn is_there(&self) -> bool {
        self.trail.is_some()
    }

    /// Rows since the last look, the oldest first. A database that is busy or away for a moment is asked again with the
    /// next look; what is wrong stands in the answer.
    pub(super) fn look(&mut self) -> Result<Vec<Entry>, Failure> {
        match &mut self.trail {
            Some(trail) => trail.look(&self.filter).map_err(super::super::audit::of_store),
            None => self.begin(),
        }
    }

    /// Opens an entry's detail where its key is at hand.
    pub(super) fn open_detail(&self, entry: &mut Entry) {
        if let Some(trail) = &self.trail {
            // without its key all else is shown
            let _ = trail.audit.open_detail(entry);
        }
    }

    fn begin(&mut self) -> Result<Vec<Entry>, Failure> {
        if !self.place.is_in_use() && !self.place.is_elsewhere() {
            return Ok(Vec::new());
        }
        let mut audit = super::super::audit::open(&self.place, self.read_only)?;
        super::super::audit::warn(&audit)?;
        let found = begin(&mut audit, &self.filter, self.last).map_err(super::super::audit::of_store)?;
        let (newest, mut rows) = found;
        rows.reverse();
        let seen = rows.iter().map(|row| row.id).collect();
        self.trail = Some(Trail { audit, newest, seen, from: newest, caught_up: Instant::now() });
        Ok(rows)
    }
}

/// The highest number, and the last rows, the newest first.
fn begin(audit: &mut Audit, filter: &Filter, last: usize) -> Result<(i64, Vec<Entry>), StoreError> {
    let newest = audit.list(&Filter::default(), Order::NewestFirst, None, 1)?;
    let newest = newest.first().map_or(0, |row| row.id);
    let rows = if last == 0 { Vec::new() } else { audit.list(filter, Order::NewestFirst, None, last)? };
    Ok((newest, rows))
}

impl Trail {
    fn look(&mut self, filter: &Filter) -> Result<Vec<Entry>, StoreError> {
        if self.caught_up.elapsed() >= CATCH_UP {
            self.caught_up = Instant::now();
            self.audit.catch_up()?;
        }
        let after = self.newest.saturating_sub(BACK).max(self.from);
        let mut rows = self.audit.list(filter, Order::OldestFirst, Some(after), PAGE)?;
        rows.retain(|row| self.seen.insert(row.id));
        self.newest = rows.last().map_or(self.newest, |row| self.newest.max(row.id));
        let forgotten = self.newest.saturating_sub(BACK);
        self.seen = self.seen.split_off(&forgotten);
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::AuditTable;
    use hookgate_core::record::{Record, Recorder};
    use hookgate_core::verdict::Decision;
    use hookgate_store::store::{Options, Store};

    fn record(n: usize, decision: Decision) -> Record {
        crate::commands::watch::tests::record(&format!("e-{n}"), decision)
    }

    #[test]
    fn each_row_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        let place = DataDir::find(Some(dir.path()), &AuditTable::default(), &|_| None).unwrap().unwrap();
        let mut follow = Follow::new(place, Filter::default(), 2, false);
        assert!(follow.look().unwrap().is_empty() && !follow.is_there(), "no door has begun it");
        let store = Store::open(&Options::new(dir.path())).unwrap();
        let mut made = 0;
        let mut make = |n: usize| {
            for _ in 0..n {
                made += 1;
                store.record_soon(record(made, Decision::Allow));
            }
            store.flush(Duration::from_secs(10)).unwrap();
        };
        make(5);
        let events = |rows: &[Entry]| rows.iter().map(|row| row.event_id.clone()).collect::<Vec<_>>();
        assert_eq!(events(&follow.look().unwrap()), ["e-4", "e-5"]);
        assert!(follow.look().unwrap().is_empty());
        make(1);
        assert_eq!(events(&follow.look().unwrap()), ["e-6"]);
        make(2500);
        let mut seen = 0;
        loop {
            let rows = follow.look().unwrap();
            if rows.is_empty() {
                break;
            }
            seen += rows.len();
        }
        assert_eq!(seen, 2500);
    }

    #[test]
    fn what_short_lived_processes_leave_is_moved_in() {
        let dir = tempfile::tempdir().unwrap();
        let place = DataDir::find(Some(dir.path()), &AuditTable::default(), &|_| None).unwrap().unwrap();
        let options = Options::new(dir.path());
        let hand_in = |n| {
            let one = Store::spool_only(&options).unwrap();
            one.record_soon(record(n, Decision::Block));
        };
        hand_in(1);
        let blocks = Filter { decision: Some("block".into()), ..Filter::default() };
        let mut follow = Follow::new(place, blocks, 10, false);
        assert_eq!(follow.look().unwrap().len(), 1);
        hand_in(2);
        follow.trail.as_mut().unwrap().caught_up -= CATCH_UP;
        assert_eq!(follow.look().unwrap().len(), 1);
    }
}
