//! Caches of one automaton, shared by many users.
//!
//! A state's id means something only together with the cache that made it, so a user who keeps a state between calls
//! stays with one cache. A few caches, each behind a lock held for microseconds, bound the memory of any number of
//! streams.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use regex_automata::hybrid::dfa::{Cache, DFA};

/// How many caches a set keeps unless told otherwise.
pub(super) const SHARDS: usize = 4;

/// A cache and which life it is in.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) cache: Cache,
    epoch: usize,
}

/// A life of a cache: ids of states are comparable only within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    epoch: usize,
    clears: usize,
}

impl Shard {
    pub(super) fn stamp(&self) -> Stamp {
        Stamp { epoch: self.epoch, clears: self.cache.clear_count() }
    }
}

/// An automaton with its caches.
#[derive(Debug)]
pub(super) struct Shards {
    pub(super) dfa: DFA,
    shards: Vec<Mutex<Shard>>,
    first: Mutex<Shard>,
    next: AtomicUsize,
}

impl Shards {
    pub(super) fn new(dfa: DFA, n: usize) -> Self {
        let shard = || Mutex::new(Shard { cache: dfa.create_cache(), epoch: 0 });
        let shards = (1..n).map(|_| shard()).collect();
        Self { first: shard(), shards, next: AtomicUsize::new(0), dfa }
    }

    /// The number of the cache for the next long-lived user.
    pub(super) fn assign(&self) -> usize {
        self.next.fetch_add(1, Ordering::Relaxed) % (self.shards.len() + 1)
    }

    /// One certain cache.
    pub(super) fn lock(&self, n: usize) -> MutexGuard<'_, Shard> {
        let shard = n.checked_sub(1).and_then(|n| self.shards.get(n)).unwrap_or(&self.first);
        shard.lock().unwrap_or_else(|poisoned| self.renew(shard, poisoned))
    }

    /// Any cache, for a user who keeps nothing; the first free one, because that is the warmest.
    pub(super) fn lock_any(&self) -> MutexGuard<'_, Shard> {
        for shard in std::iter::once(&self.first).chain(&self.shards) {
            match shard.try_lock() {
                Ok(guard) => return guard,
                Err(TryLockError::Poisoned(poisoned)) => return self.renew(shard, poisoned),
                Err(TryLockError::WouldBlock) => {}
            }
        }
        self.lock(self.assign())
    }

    /// Lets `work` fill one cache, and gives all the others a copy.
    pub(super) fn warm(&self, work: impl FnOnce(&mut Shard)) {
        let warm = {
            let mut first = self.lock(0);
            work(&mut first);
            first.cache.clone()
        };
        for n in 1..=self.shards.len() {
            let mut shard = self.lock(n);
            *shard = Shard { cache: warm.clone(), epoch: shard.epoch + 1 };
        }
    }

    /// A holder died while its cache was in some state between two; begin a new one.
    fn renew<'a>(
        &self,
        shard: &'a Mutex<Shard>,
        poisoned: PoisonError<MutexGuard<'a, Shard>>,
    ) -> MutexGuard<'a, Shard> {
        let mut guard = poisoned.into_inner();
        let epoch = guard.epoch + 1;
        *guard = Shard { cache: self.dfa.create_cache(), epoch };
        shard.clear_poison();
        guard
    }
}
