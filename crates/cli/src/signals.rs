//! Signals that ask to stop.

use crate::exit::Exit;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Ctrl-C, and for a run without a terminal the requests to end.
pub(crate) struct Signals {
    interrupt: Signal,
    others: Option<(Signal, Signal)>,
}

impl Signals {
    /// Ctrl-C only: what else ends a program still ends it.
    pub(crate) fn interrupt() -> io::Result<Signals> {
        Ok(Signals { interrupt: signal(SignalKind::interrupt())?, others: None })
    }

    /// Everything that asks to end, so that tools are stopped with the program.
    pub(crate) fn all() -> io::Result<Signals> {
        let others = (signal(SignalKind::terminate())?, signal(SignalKind::hangup())?);
        Ok(Signals { others: Some(others), ..Signals::interrupt()? })
    }

    /// Waits for one.
    pub(crate) async fn next(&mut self) -> Exit {
        let number = match &mut self.others {
            None => {
                self.interrupt.recv().await;
                SignalKind::interrupt()
            }
            Some((terminate, hangup)) => tokio::select! {
                _ = self.interrupt.recv() => SignalKind::interrupt(),
                _ = terminate.recv() => SignalKind::terminate(),
                _ = hangup.recv() => SignalKind::hangup(),
            },
        };
        Exit::Signal(number.as_raw_value().try_into().unwrap_or(0))
    }
}
