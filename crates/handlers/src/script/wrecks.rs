//! The breaker of one script: it counts wrecked workers in a row, never answers.
//!
//! A script whose worker had to be killed, or died, costs a new process each time. After a few in a row it is not run
//! for a while; its calls are faults then, so at a gate they block. An answer of any kind, a timeout that the engine
//! itself noticed among them, begins the count anew.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// When it trips, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct WreckLimits {
    /// So many in a row trip it.
    pub wrecks: u32,
    /// So long the script is not run.
    pub rest: Duration,
}

impl Default for WreckLimits {
    fn default() -> Self {
        WreckLimits { wrecks: 5, rest: Duration::from_secs(30) }
    }
}

/// The count of one script.
#[derive(Debug)]
pub(super) struct Wrecks {
    limits: WreckLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    in_a_row: u32,
    until: Option<Instant>,
}

impl Wrecks {
    pub(super) fn new(limits: WreckLimits) -> Wrecks {
        Wrecks { limits, state: Mutex::default() }
    }

    /// May the script run? The error says why not. After the rest the next wreck trips it again at once.
    pub(super) fn allow(&self, now: Instant) -> Result<(), String> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.until {
            Some(until) if now < until => {
                let left = until.duration_since(now).as_secs().saturating_add(1);
                let count = state.in_a_row;
                Err(format!(
                    "not run: it wrecked its worker {count} times in a row and rests for {left} s more"
                ))
            }
            _ => {
                state.until = None;
                Ok(())
            }
        }
    }

    /// A worker was lost to the script.
    pub(super) fn wrecked(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.in_a_row = state.in_a_row.saturating_add(1);
        if state.in_a_row >= self.limits.wrecks {
            state.until = now.checked_add(self.limits.rest);
        }
    }

    /// The worker answered.
    pub(super) fn survived(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.until.is_none() {
            state.in_a_row = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrecks_in_a_row_trip_it_for_a_while() {
        let limits = WreckLimits { wrecks: 3, rest: Duration::from_secs(30) };
        let (wrecks, start) = (Wrecks::new(limits), Instant::now());
        wrecks.wrecked(start);
        wrecks.wrecked(start);
        wrecks.survived();
        wrecks.wrecked(start);
        wrecks.wrecked(start);
        assert_eq!(wrecks.allow(start), Ok(()));
        wrecks.wrecked(start);
        let why = wrecks.allow(start + Duration::from_secs(9)).unwrap_err();
        assert!(why.contains("3 times in a row") && why.contains("22 s"), "{why}");
        let later = start + Duration::from_secs(31);
        assert_eq!(wrecks.allow(later), Ok(()));
        wrecks.wrecked(later);
        assert!(wrecks.allow(later).is_err());
    }
}
