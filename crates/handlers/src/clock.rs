//! The clock that core's chains run on, from tokio.

use hookgate_core::future::BoxFuture;
use hookgate_core::gate::Timer;
use std::time::{Duration, Instant};

/// Real time. In tests with paused time it follows the paused clock.
#[derive(Debug)]
pub struct TokioTimer {
    started: tokio::time::Instant,
}

impl TokioTimer {
    /// A clock that begins now.
    pub fn new() -> TokioTimer {
        TokioTimer { started: tokio::time::Instant::from_std(Instant::now()) }
    }
}

impl Default for TokioTimer {
    fn default() -> Self {
        TokioTimer::new()
    }
}

impl Timer for TokioTimer {
    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
