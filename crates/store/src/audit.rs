//! Questions to the trail, and its care: retention, deleted hooks, new keys.
//!
//! Opening it moves in what dead processes left, so that an answer lacks nothing that was kept. Calls block.

use crate::chain::{ChainState, Checkpoint};
use crate::database::Database;
use crate::error::StoreError;
use crate::keys::{Keys, Purpose};
use crate::query::{Entry, Filter, Order, Stats};
use crate::spool::adopt;
use crate::sqlite;
use crate::store::{Options, Place};
use crate::trace::{StoredTrace, bound_to};
use crate::verify::{self, Verified};
use hookgate_core::explain::FilterTrace;
use std::path::PathBuf;

/// Rows that are fetched at once on the way through many.
const PAGE: usize = 1000;

/// The trail, for questions.
#[derive(Debug)]
pub struct Audit {
    place: Place,
    database: Box<dyn Database>,
    found: Found,
}

/// What was found when the trail was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// Rows that dead processes had left in their spools.
    pub rows: u64,
    /// Damaged places in these spools.
    pub damaged: u64,
    /// Damaged database files that were moved aside, at any time. Each is a trail of its own, and worth a warning.
    pub set_aside: Vec<PathBuf>,
    /// Why spools could not be moved in, if they could not: the answers may lack the newest rows.
    pub left: Option<String>,
    /// The trail can only be read: what waits in spools is not in the answers.
    pub is_read_only: bool,
}

impl Audit {
    /// Opens the trail.
    pub fn open(options: &Options) -> Result<Audit, StoreError> {
        let place = options.place()?;
        let mut database = (place.backend)()?;
        let mut found = Found::default();
        match adopt::adopt(&place, &mut *database) {
            Ok(adopted) => (found.rows, found.damaged) = (adopted.rows, adopted.damaged),
            Err(error) => found.left = Some(error.to_string()),
        }
        if options.backend.is_none() {
            found.set_aside = sqlite::damaged(&options.database_file());
        }
        Ok(Audit { place, database, found })
    }

    /// Opens a trail that this process may not or shall not change, such as a copy. Nothing is moved in, nothing is made;
    /// calls that would change something are refused by the database.
    pub fn open_read_only(options: &Options) -> Result<Audit, StoreError> {
        let place = options.place_to_read();
        let file = options.database_file();
        let database: Box<dyn Database> = match &options.backend {
            Some(open) => open()?,
            None => Box::new(sqlite::Sqlite::open_read_only(&file)?),
        };
        let set_aside = sqlite::damaged(&file);
        Ok(Audit { place, database, found: Found { set_aside, is_read_only: true, ..Found::default() } })
    }

    /// Moves in what other processes have left since it was opened; gives how many rows. A trail that is only read stays
    /// as it is.
    pub fn catch_up(&mut self) -> Result<u64, StoreError> {
        if self.found.is_read_only {
            return Ok(0);
        }
        Ok(adopt::adopt(&self.place, &mut *self.database)?.rows)
    }

    /// What was found when it was opened.
    pub fn found(&self) -> &Found {
        &self.found
    }

    /// Rows that a filter wants, beyond the one with the id `after`.
    pub fn list(
        &mut self,
        filter: &Filter,
        order: Order,
        after: Option<i64>,
        limit: usize,
    ) -> Result<Vec<Entry>, StoreError> {
        self.database.page(filter, order, after, limit)
    }

    /// One row, with its detail if there is one and its key is at hand. A key that is missing or wrong is an error of
    /// its own beside the row: all else can be shown without it.
    pub fn show(&mut self, id: i64) -> Result<Option<(Entry, Option<StoreError>)>, StoreError> {
        let Some(mut entry) = self.database.get(id)? else { return Ok(None) };
        let error = self.open_detail(&mut entry).err();
        Ok(Some((entry, error)))
    }

    /// Opens an entry's detail in place.
    pub fn open_detail(&self, entry: &mut Entry) -> Result<(), StoreError> {
        let Some(sealed) = &entry.sealed else { return Ok(()) };
        let keys = self.place.keys.as_ref().ok_or(StoreError::NoKey("reading a detail"))?;
        let text = keys.open(Purpose::Detail, &entry.dedup, sealed)?;
        entry.error_detail = Some(String::from_utf8_lossy(&text).into_owned());
        Ok(())
    }

    /// The newest filter traces of an event or a session, oldest first, as far as their key is at hand; gives also how
    /// many could not be opened.
    pub fn traces(&mut self, of: &str, limit: usize) -> Result<(Vec<FilterTrace>, usize), StoreError> {
        let stored = self.database.traces(of, limit)?;
        let open = |trace: &StoredTrace| -> Option<FilterTrace> {
            let bound = bound_to(&trace.session_id, &trace.event_id);
            let json = self.place.keys.as_ref()?.open(Purpose::Trace, &bound, &trace.payload).ok()?;
            serde_json::from_slice(&json).ok()
        };
        let traces: Vec<FilterTrace> = stored.iter().filter_map(open).collect();
        let closed = stored.len().saturating_sub(traces.len());
        Ok((traces, closed))
    }

    /// Numbers over the rows that a filter wants.
    pub fn stats(&mut self, filter: &Filter) -> Result<Stats, StoreError> {
        self.database.stats(filter)
    }

    /// All rows that a filter wants, oldest first, in bounded memory.
    pub fn export<'a>(&'a mut self, filter: &'a Filter) -> Export<'a> {
        Export { audit: self, filter, page: Vec::new().into_iter(), after: None, over: false }
    }

    /// Checks every chain, and opens every detail if the keys are there. An error means that the check could not be
    /// made; what is wrong with the trail stands in the answer.
    pub fn verify(&mut self) -> Result<Verified, StoreError> {
        self.check(None)
    }

    /// The same, and compares with a checkpoint: also a cut end and a whole new trail are found.
    pub fn verify_against(&mut self, checkpoint: &Checkpoint) -> Result<Verified, StoreError> {
        self.check(Some(checkpoint))
    }

    fn check(&mut self, against: Option<&Checkpoint>) -> Result<Verified, StoreError> {
        let mut chains = self.database.chains()?;
        loop {
            // rows that others add meanwhile stand behind the heads that were read first
            let keys = self.place.keys.as_ref();
            let verified = verify::verify(&mut *self.database, chains.clone(), keys, against)?;
            let now = self.database.chains()?;
            let anchors = |chains: &[ChainState]| -> Vec<_> {
                chains.iter().map(|chain| (chain.writer.clone(), chain.anchor.clone())).collect()
            };
            // retention that took rows out meanwhile is no fault
            if verified.fault.is_none() || anchors(&chains) == anchors(&now) {
                return Ok(verified);
            }
            chains = now;
        }
    }

    /// The ends of all chains, to be stored elsewhere.
    pub fn checkpoint(&mut self) -> Result<Checkpoint, StoreError> {
        Ok(Checkpoint::of(&self.database.chains()?))
    }

    /// Takes rows out that were made before a time (milliseconds since 1970). The rest stays verifiable. Gives how
    /// many.
    pub fn prune(&mut self, before: i64) -> Result<u64, StoreError> {
        let key = self.place.chain_key();
        let mut rows = 0u64;
        loop {
            let pruned = self.database.prune(before, &|writer, anchor| anchor.marked(writer, &key))?;
            rows = rows.saturating_add(pruned.rows);
            if !pruned.more {
                return Ok(rows);
            }
        }
    }

    /// A hook is deleted: its rows keep its label and lose its key.
    pub fn forget_hook(&mut self, hook: &str) -> Result<u64, StoreError> {
        self.database.forget_hook(hook)
    }

    /// Makes a new key and seals all details anew with it. Gives the keys and how many details. Processes that run
    /// seal with the key they know until they start again; [`reseal`](Audit::reseal) can be repeated then. Old keys
    /// stay in the file: they check the older part of the chain.
    pub fn rekey(&mut self) -> Result<(Keys, u64), StoreError> {
        let keys = self.place.keys.as_ref().ok_or(StoreError::NoKey("a new key beside the old one"))?;
        let keys = Keys::add(keys.path())?;
        self.place.keys = Some(keys.clone());
        Ok((keys, self.reseal()?))
    }

    /// Seals all details anew that an older key sealed.
    pub fn reseal(&mut self) -> Result<u64, StoreError> {
        let keys = self.place.keys.clone().ok_or(StoreError::NoKey("sealing"))?;
        let (mut after, mut count) = (0, 0u64);
        loop {
            let page = self.database.sealed_by_others(keys.newest(), after, PAGE)?;
            let Some((last, ..)) = page.last() else { return Ok(count) };
            after = *last;
            let mut seals = Vec::with_capacity(page.len());
            for (id, dedup, sealed) in &page {
                let text = keys.open(Purpose::Detail, dedup, sealed)?;
                seals.push((*id, keys.seal(Purpose::Detail, dedup, &text)?));
            }
            self.database.reseal(&seals)?;
            count = count.saturating_add(u64::try_from(seals.len()).unwrap_or(0));
        }
    }

    /// True if new rows are chained with a key.
    pub fn is_keyed(&self) -> bool {
        self.place.chain_key().id().is_some()
    }
}

/// Rows on their way out, one page in memory at a time. Details are opened where the keys are at hand.
#[derive(Debug)]
pub struct Export<'a> {
    audit: &'a mut Audit,
    filter: &'a Filter,
    page: std::vec::IntoIter<Entry>,
    after: Option<i64>,
    over: bool,
}

impl Iterator for Export<'_> {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(entry) = self.page.next() {
                return Some(Ok(entry));
            }
            if self.over {
                return None;
            }
            match self.audit.list(self.filter, Order::OldestFirst, self.after, PAGE) {
                Ok(page) => {
                    self.after = page.last().map(|entry| entry.id).or(self.after);
                    self.over = page.len() < PAGE;
                    self.page = page.into_iter();
                }
                Err(error) => {
                    self.over = true;
                    return Some(Err(error));
                }
            }
        }
    }
}
