//! The time and the seed that a script sees: of the event, not of the call, so that an event that is asked about
//! again meets a script that says the same.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// So many events are remembered; then the older half is forgotten.
const MOST: usize = 8192;

/// When events were first seen.
#[derive(Debug, Default)]
pub(super) struct Moments(Mutex<Halves>);

#[derive(Debug, Default)]
struct Halves {
    new: HashMap<u64, u64>,
    old: HashMap<u64, u64>,
}

/// What stands for an event's time and chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    /// Milliseconds since 1970.
    pub(super) now: u64,
    /// Where random numbers begin.
    pub(super) seed: u64,
}

impl Moments {
    /// The moment of an event. One without an id is always new.
    pub(super) fn of(&self, session: &str, event: &str) -> Moment {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.of_at(session, event, u64::try_from(now.as_millis()).unwrap_or(0))
    }

    fn of_at(&self, session: &str, event: &str, now: u64) -> Moment {
        // the same in every process
        let mut hasher = DefaultHasher::new();
        (session, event).hash(&mut hasher);
        let seed = hasher.finish();
        if event.is_empty() {
            return Moment { now, seed: seed ^ now };
        }
        let mut halves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(first) = halves.new.get(&seed) {
            return Moment { now: *first, seed };
        }
        let first = halves.old.get(&seed).copied().unwrap_or(now);
        if halves.new.len() >= MOST / 2 {
            halves.old = std::mem::take(&mut halves.new);
        }
        halves.new.insert(seed, first);
        Moment { now: first, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_has_one_moment() {
        let moments = Moments::default();
        let first = moments.of_at("s", "e", 1);
        assert_eq!(moments.of_at("s", "e", 2), first);
        assert_ne!(moments.of_at("t", "e", 2), first);
        assert_ne!(moments.of_at("s", "", 1), moments.of_at("s", "", 2));
        for n in 0..MOST {
            moments.of_at("s", &n.to_string(), 3);
        }
        let halves = moments.0.lock().unwrap();
        assert!(halves.new.len() + halves.old.len() <= MOST);
    }
}
