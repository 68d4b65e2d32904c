//! One answer, and what can end it early: a signal, or an output that nobody reads any more.

use super::Display;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::signals::Signals;
use hookgate_chat::{ChatService, Outcome, SendError};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

/// How long a stopped answer may take to let go of its tools.
const PATIENCE: Duration = Duration::from_millis(500);

/// How it ended.
pub(super) enum Turn {
    /// By itself.
    Sent(Result<Outcome, SendError>),
    /// By a signal.
    Stopped(Exit),
    /// Standard output is gone.
    Lost,
}

/// The answer is made on a thread of its own, so that signals are heard even while an output is stuck.
pub(super) fn runtime() -> Result<Runtime, Failure> {
    Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::new(format!("the program cannot start its threads: {error}")))
}

/// Sends what is queued and waits for the end. What is stopped is dropped: request and tools with it.
pub(super) async fn send(service: &ChatService, display: &Display, signals: &mut Signals) -> Turn {
    let service = service.clone();
    let mut sending = tokio::spawn(async move { service.send().await });
    let early = tokio::select! {
        biased;
        sent = &mut sending => match sent {
            Ok(sent) => return Turn::Sent(sent),
            Err(_) => Turn::Lost,
        },
        () = display.lost() => Turn::Lost,
        exit = signals.next() => Turn::Stopped(exit),
    };
    sending.abort();
    let _ = tokio::time::timeout(PATIENCE, sending).await;
    early
}
