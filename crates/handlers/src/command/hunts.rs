//! Counts the hunts that go on in the background, so that somebody can wait for them. See the `family` module for what a
//! hunt does. There are never more than places for programs: a hunt keeps its program's.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The hunts of one door.
#[derive(Debug, Clone, Default)]
pub(super) struct Hunts {
    shared: Arc<(Mutex<usize>, Condvar)>,
}

/// A hunt that goes on until this is dropped.
pub(super) struct Hunting(Hunts);

impl Hunts {
    /// One more.
    pub(super) fn begin(&self) -> Hunting {
        let mut count = self.count();
        *count = count.saturating_add(1);
        Hunting(self.clone())
    }

    /// Waits for all to end; gives the number of those that did not.
    pub(super) fn wait(&self, limit: Duration) -> usize {
        let waited = self.shared.1.wait_timeout_while(self.count(), limit, |count| *count > 0);
        let (count, _) = waited.unwrap_or_else(PoisonError::into_inner);
        *count
    }

    fn count(&self) -> MutexGuard<'_, usize> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Hunting {
    fn drop(&mut self) {
        let mut count = self.0.count();
        *count = count.saturating_sub(1);
        self.0.shared.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_waited_for_and_no_longer_than_the_limit() {
        let hunts = Hunts::default();
        assert_eq!(hunts.wait(Duration::from_secs(60)), 0);
        let (one, other) = (hunts.begin(), hunts.begin());
        assert_eq!(hunts.wait(Duration::from_millis(1)), 2);
        drop(one);
        assert_eq!(hunts.wait(Duration::ZERO), 1);
        let thread = std::thread::spawn(move || drop(other));
        assert_eq!(hunts.wait(Duration::from_secs(60)), 0);
        thread.join().unwrap();
    }
}
