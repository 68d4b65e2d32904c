//! A circuit breaker around a handler that fails again and again.
//!
//! It counts faults and timeouts in a row, never blocks: a guard that stops everything does its work. While it is
//! open a call is a fault at once, so at a gate it blocks as any fault does; it never opens a guard. After a rest one
//! call is let through to try; an answer closes it, a fault opens it again.

use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// When it opens, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct BreakerLimits {
    /// So many faults in a row open it.
    pub faults: u32,
    /// So long nothing is tried.
    pub rest: Duration,
}

impl Default for BreakerLimits {
    fn default() -> Self {
        BreakerLimits { faults: 5, rest: Duration::from_secs(10) }
    }
}

/// The state of one handler.
#[derive(Debug)]
pub struct Breaker {
    limits: BreakerLimits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    faults: u32,
    last: String,
    open_until: Option<Instant>,
    trying: bool,
}

/// Leave to call once. Dropped without a word, it counts as a fault if the call used up its time.
#[derive(Debug)]
pub struct Pass<'a> {
    breaker: &'a Breaker,
    until: Instant,
    told: bool,
}

impl Breaker {
    /// A closed one.
    pub fn new(limits: BreakerLimits) -> Breaker {
        Breaker { limits, state: Mutex::default() }
    }

    /// Asks for leave to call; `within` is the call's time limit.
    ///
    /// # Errors
    /// It is open.
    pub fn enter(&self, within: Duration) -> Result<Pass<'_>, Fault> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(until) = state.open_until {
            if now < until || state.trying {
                let faults = state.faults;
                let left = until.saturating_duration_since(now).as_secs_f32();
                let detail = format!(
                    "not tried, after {faults} faults in a row; the next try is in {left:.1} s. The last fault: {}",
                    state.last
                );
                return Err(Fault::passing("it rests after too many faults in a row", detail));
            }
            state.trying = true;
        }
        // a caller whose clock rings a little early still means the limit
        let until = now.checked_add(within.saturating_sub(Duration::from_millis(5))).unwrap_or(now);
        Ok(Pass { breaker: self, until, told: false })
    }

    fn note(&self, fault: Option<&str>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.trying = false;
        match fault {
            None => *state = State::default(),
            Some(text) => {
                state.faults = state.faults.saturating_add(1);
                state.last = crate::said::cut(text, 200).to_owned();
                if state.faults >= self.limits.faults {
                    state.open_until = Instant::now().checked_add(self.limits.rest);
                }
            }
        }
    }
}

impl Pass<'_> {
    /// Tells how the call ended.
    pub fn told<T, E: std::fmt::Display>(mut self, result: &Result<T, E>) {
        self.told = true;
        match result {
            Ok(_) => self.breaker.note(None),
            Err(fault) => self.breaker.note(Some(&fault.to_string())),
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if self.told {
            return;
        }
        if Instant::now() >= self.until {
            self.breaker.note(Some("no answer in time"));
        } else {
            // the caller gave up: that says nothing about the handler
            self.breaker.state.lock().unwrap_or_else(PoisonError::into_inner).trying = false;
        }
    }
}

/// A handler behind a breaker.
#[derive(Debug)]
pub struct Guarded {
    inner: Arc<dyn Handler>,
    breaker: Breaker,
}

impl Guarded {
    /// Puts a breaker in front of a handler.
    pub fn new(inner: Arc<dyn Handler>, limits: BreakerLimits) -> Guarded {
        Guarded { inner, breaker: Breaker::new(limits) }
    }
}

impl Handler for Guarded {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        Box::pin(async move {
            let pass = self.breaker.enter(call.within)?;
            let result = self.inner.ask(call).await;
            pass.told(&result);
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn breaker() -> Breaker {
        Breaker::new(BreakerLimits { faults: 2, rest: Duration::from_secs(10) })
    }

    fn fault() -> Result<Answer, Fault> {
        Err(Fault::failed("it failed", "x"))
    }

    fn said(word: &str) -> Result<Answer, Fault> {
        Ok(Answer::with_decision(word))
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn faults_in_a_row_open_it_and_one_try_closes_it() {
        let breaker = breaker();
        for _ in 0..2 {
            breaker.enter(SECOND).unwrap().told(&fault());
        }
        let error = breaker.enter(SECOND).unwrap_err().to_string();
        assert!(error.contains("2 faults in a row") && error.contains("x"), "{error}");
        tokio::time::advance(Duration::from_secs(11)).await;
        let pass = breaker.enter(SECOND).unwrap();
        assert!(breaker.enter(SECOND).is_err(), "one at a time");
        pass.told(&fault());
        assert!(breaker.enter(SECOND).is_err());
        tokio::time::advance(Duration::from_secs(11)).await;
        breaker.enter(SECOND).unwrap().told(&said("allow"));
        breaker.enter(SECOND).unwrap().told(&fault());
        assert!(breaker.enter(SECOND).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn blocks_and_callers_who_leave_do_not_count_but_timeouts_do() {
        let breaker = breaker();
        for _ in 0..9 {
            breaker.enter(SECOND).unwrap().told(&said("block"));
            drop(breaker.enter(SECOND).unwrap());
        }
        for _ in 0..2 {
            let pass = breaker.enter(SECOND).unwrap();
            tokio::time::advance(SECOND).await;
            drop(pass);
        }
        assert!(breaker.enter(SECOND).unwrap_err().to_string().contains("no answer in time"));
    }
}
