//! One answer, and what can end it early: a signal, or an output that nobody reads any more.
//!
//! Two threads: one makes the answer and writes it, the other waits for signals. So a signal is heard even while the
//! first is stuck in a pipe that nobody empties.

use super::Display;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::signals::Signals;
use hookgate_chat::{ChatService, Outcome, SendError};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// How long a stopped answer may take to let go of its tools.
const PATIENCE: Duration = Duration::from_millis(500);

/// How long watching hooks may go on at the end.
const CLOSING: Duration = Duration::from_secs(5);

/// How it ended.
pub(super) enum Turn {
    /// By itself.
    Sent(Result<Outcome, SendError>),
    /// By a signal.
    Stopped(Exit),
    /// Standard output is gone.
    Lost,
}

/// What runs answers.
pub(crate) struct Engine {
    watch: Runtime,
    /// Driven by a thread of its own for the time of an answer; connections live on between answers.
    work: Arc<Runtime>,
}

impl Engine {
    pub(crate) fn start() -> Result<Engine, Failure> {
        let watch = Builder::new_current_thread().enable_all().build();
        // a thread of its own: watching hooks go on while nobody asks anything
        let work = || Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let both = watch.and_then(|watch| Ok(Engine { watch, work: Arc::new(work()?) }));
        both.map_err(|error| cannot_start(&error))
    }

    /// Ctrl-C, from now on.
    pub(super) fn interrupts(&self) -> Result<Signals, Failure> {
        let _inside = self.watch.enter();
        Signals::interrupt().map_err(|error| cannot_start(&error))
    }

    /// Everything that asks to end, from now on.
    pub(super) fn all_signals(&self) -> Result<Signals, Failure> {
        let _inside = self.watch.enter();
        Signals::all().map_err(|error| cannot_start(&error))
    }

    /// Sends what is queued and waits for the end. What is stopped is dropped: request and tools with it.
    pub(super) fn send(&self, service: &ChatService, display: &Display, signals: &mut Signals) -> Turn {
        let (stop, stopped) = oneshot::channel::<()>();
        let (work, service) = (self.work.clone(), service.clone());
        self.watch.block_on(async {
            let mut sending = tokio::task::spawn_blocking(move || {
                work.block_on(async {
                    tokio::select! {
                        sent = service.send() => Some(sent),
                        _ = stopped => None,
                    }
                })
            });
            let early = tokio::select! {
                biased;
                sent = &mut sending => return match sent {
                    Ok(Some(sent)) => Turn::Sent(sent),
                    Ok(None) | Err(_) => Turn::Lost,
                },
                () = display.lost() => Turn::Lost,
                exit = signals.next() => Turn::Stopped(exit),
            };
            drop(stop);
            let _ = tokio::time::timeout(PATIENCE, sending).await;
            early
        })
    }

    /// Ends the session: what watching hooks still have to do gets a moment.
    pub(super) fn close(&self, service: &ChatService, display: &Display) {
        let left = self.work.block_on(service.close(CLOSING));
        if left > 0 {
            display.tell(&format!("{left} watching hooks did not finish in {} s", CLOSING.as_secs()));
        }
        let later = service.postponed_watches();
        if later > 0 {
            let runs = if later == 1 {
                "1 run of a watching hook waits".into()
            } else {
                format!("{later} runs of watching hooks wait")
            };
            display.tell(&format!("{runs} in the outbox to be tried again (hookgate outbox list)"));
        }
        let dropped = service.dropped_watches();
        if dropped > 0 {
            display.tell(&format!("{dropped} runs of watching hooks were dropped: too many waited"));
        }
    }

    /// Works on what is due in the outbox. Gives how much was left undone.
    pub(crate) fn deliver(&self, service: &ChatService, within: Duration) -> usize {
        self.work.block_on(service.deliver(within))
    }

    /// Leaves without waiting for what is stuck.
    pub(crate) fn leave(self) {
        self.watch.shutdown_background();
        if let Some(work) = Arc::into_inner(self.work) {
            work.shutdown_background();
        }
    }
}

fn cannot_start(error: &io::Error) -> Failure {
    Failure::new(format!("the program cannot start its threads: {error}"))
}
