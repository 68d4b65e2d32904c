//! The way into a process's own spool: a queue with a bound in bytes. Whoever finds it full waits.

use super::Durability;
use super::frame::Frame;
use super::mover::{self, Moving};
use super::segment::{Header, START, Segment};
use super::writer::{self, Writing};
use crate::error::StoreError;
use crate::files;
use crate::store::Place;
use hookgate_core::future::BoxFuture;
use hookgate_core::record::RecordError;
use std::collections::BTreeMap;
use std::future::ready;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Told whether a frame was written.
pub(super) type Ack = oneshot::Sender<Result<(), RecordError>>;

/// A frame on its way to the file.
pub(super) struct Ticket {
    pub(super) frame: Frame,
    /// Missing if nobody waits.
    pub(super) ack: Option<Ack>,
    /// It came when there was no room.
    pub(super) is_over: bool,
}

/// What a spool is like.
#[derive(Debug, Clone)]
pub(crate) struct Limits {
    pub(crate) durability: Durability,
    /// Bytes that wait in memory at most.
    pub(crate) queue: u32,
    /// Bytes that wait on the disk at most.
    pub(crate) spool: u64,
}

/// A process's own spool with its two threads.
#[derive(Debug)]
pub(crate) struct Spool {
    /// The name of its files without their end.
    pub(crate) name: String,
    limits: Limits,
    room: Arc<Semaphore>,
    tickets: Option<mpsc::UnboundedSender<Ticket>>,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// How long to wait for the database at the end.
    pub(crate) patience: Duration,
}

/// What writer, mover and owner know of the files.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) segments: [Segment; 2],
    state: Mutex<State>,
    pub(super) changed: Condvar,
    /// Bytes of what came when there was no room.
    pub(super) over: AtomicUsize,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) files: [FileState; 2],
    pub(super) active: usize,
    /// The writer has ended: nothing more will come.
    pub(super) written_out: bool,
    /// The mover is to end when all is moved, at the latest then.
    pub(super) end_by: Option<Instant>,
    /// The mover sleeps until it is called.
    pub(super) idle: bool,
    /// Somebody waits until all is moved.
    pub(super) hurry: bool,
    /// The hooks that sources have now, still to be told to the database.
    pub(super) installs: BTreeMap<String, Vec<String>>,
    pub(super) health: Health,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct FileState {
    pub(super) generation: u64,
    pub(super) written: u64,
    pub(super) moved: u64,
}

/// How a store is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Bytes in the spool that the database does not have yet.
    pub waiting_bytes: u64,
    /// Rows that went into the database.
    pub rows: u64,
    /// Damaged places in spool files that had to be skipped.
    pub damaged: u64,
    /// Rows, jobs and traces that nobody waited for and that could not be kept.
    pub missed: u64,
    /// Why the database takes nothing, if it does not.
    pub database: Option<String>,
    /// Why the spool takes nothing, if it does not.
    pub spool: Option<String>,
}

impl Spool {
    pub(crate) fn open(place: &Arc<Place>, limits: Limits) -> Result<Spool, StoreError> {
        let syncs = limits.durability == Durability::Power;
        let name = files::random_name()?;
        let path = |end: &str| -> PathBuf { place.spool.join(format!("{name}-{end}.spool")) };
        let header = Header { generation: 1, moved: START, syncs };
        let segments = [Segment::create(&path("a"), header)?, Segment::create(&path("b"), header)?];
        let file = FileState { generation: 1, written: START, moved: START };
        let state = State {
            files: [file; 2],
            active: 0,
            written_out: false,
            end_by: None,
            idle: false,
            hurry: false,
            installs: BTreeMap::new(),
            health: Health::default(),
        };
        let shared = Arc::new(Shared {
            segments,
            state: Mutex::new(state),
            changed: Condvar::new(),
            over: AtomicUsize::new(0),
        });
        let (tickets, taken) = mpsc::unbounded_channel();
        let room = Arc::new(Semaphore::new(usize::try_from(limits.queue).unwrap_or(usize::MAX)));
        let writing =
            Writing { shared: shared.clone(), limits: limits.clone(), tickets: taken, room: room.clone() };
        let (connected, first) = std::sync::mpsc::channel();
        let moving = Moving::new(&name, &shared, place, connected);
        let threads = vec![
            start("hookgate-spool", move || writer::run(writing))?,
            start("hookgate-store", move || mover::run(moving))?,
        ];
        let patience = Duration::from_secs(2);
        let mut spool = Spool { name, limits, room, tickets: Some(tickets), shared, threads, patience };
        // a database that will never do is told at once; one that is slow or down now is not waited for
        match first.recv_timeout(Duration::from_millis(500)) {
            Ok(Err(error @ StoreError::Newer { .. })) => {
                spool.patience = Duration::ZERO;
                Err(error)
            }
            _ => Ok(spool),
        }
    }

    /// Waits for room, hands the frame over, and waits until it is as safe as promised. Where there is room, and nothing
    /// is promised, it is done before this returns.
    pub(crate) fn put(&self, frame: Frame) -> BoxFuture<'_, Result<(), RecordError>> {
        match self.room.try_acquire_many(room_of(&frame)) {
            Ok(room) => room.forget(),
            Err(_) => {
                return Box::pin(async move {
                    let room = self.room.acquire_many(room_of(&frame)).await;
                    room.map_err(|_| RecordError(StoreError::Closed.to_string()))?.forget();
                    self.promise(frame).await
                });
            }
        }
        self.promise(frame)
    }

    /// Hands the frame over, and waits until it is as safe as promised.
    fn promise(&self, frame: Frame) -> BoxFuture<'static, Result<(), RecordError>> {
        if self.limits.durability == Durability::Relaxed {
            return Box::pin(ready(self.hand_over(Ticket { frame, ack: None, is_over: false })));
        }
        let (ack, kept) = oneshot::channel();
        if let Err(error) = self.hand_over(Ticket { frame, ack: Some(ack), is_over: false }) {
            return Box::pin(ready(Err(error)));
        }
        Box::pin(async { kept.await.unwrap_or_else(|_| Err(RecordError(StoreError::Closed.to_string()))) })
    }

    /// Hands the frame over if there is room now. Nobody is told when it is written.
    pub(crate) fn try_put(&self, frame: Frame) -> bool {
        match self.room.try_acquire_many(room_of(&frame)) {
            Ok(room) => {
                room.forget();
                self.hand_over(Ticket { frame, ack: None, is_over: false }).is_ok()
            }
            Err(_) => false,
        }
    }

    /// Hands the frame over also when there is no room, up to as much again. What is more is counted as missed.
    pub(crate) fn put_soon(&self, frame: Frame) {
        match self.room.try_acquire_many(room_of(&frame)) {
            Ok(room) => {
                room.forget();
                self.hand_over(Ticket { frame, ack: None, is_over: false }).ok();
            }
            Err(_) => {
                let (len, most) = (frame.len(), usize::try_from(self.limits.queue).unwrap_or(usize::MAX));
                let before = self.shared.over.fetch_add(len, Ordering::Relaxed);
                let ticket = Ticket { frame, ack: None, is_over: true };
                if before >= most || self.hand_over(ticket).is_err() {
                    self.shared.over.fetch_sub(len, Ordering::Relaxed);
                    self.shared.state().health.missed(1);
                }
            }
        }
    }

    /// Something could not even be written down.
    pub(crate) fn missed(&self) {
        self.shared.state().health.missed(1);
    }

    /// Tells the database, when it has time, which hooks a source has now.
    pub(crate) fn install(&self, source: String, hooks: Vec<String>) {
        self.shared.state().installs.insert(source, hooks);
        self.shared.changed.notify_all();
    }

    fn hand_over(&self, ticket: Ticket) -> Result<(), RecordError> {
        let sent = self.tickets.as_ref().and_then(|tickets| tickets.send(ticket).ok());
        sent.ok_or_else(|| RecordError(StoreError::Closed.to_string()))
    }

    /// Waits until all that was handed over is in the database.
    pub(crate) fn flush(&self, within: Duration) -> Result<(), StoreError> {
        let end = Instant::now().checked_add(within);
        let all = usize::try_from(self.limits.queue).unwrap_or(usize::MAX);
        let mut state = self.shared.state();
        state.hurry = true;
        self.shared.changed.notify_all();
        while self.room.available_permits() < all
            || self.shared.over.load(Ordering::Relaxed) > 0
            || state.waiting() > 0
            || !state.installs.is_empty()
        {
            let left = end.map_or(within, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                let why = state.health.database.clone().or(state.health.spool.clone());
                let why = why.unwrap_or_else(|| "it is still at work".into());
                return Err(StoreError::Unavailable {
                    what: "the store did not take all in time".into(),
                    why,
                });
            }
            // the room in the queue is given back without a sign
            state = self.shared.wait(state, left.min(Duration::from_millis(5)));
        }
        Ok(())
    }

    pub(crate) fn health(&self) -> Health {
        let state = self.shared.state();
        Health { waiting_bytes: state.waiting(), ..state.health.clone() }
    }
}

impl Drop for Spool {
    /// Writes what was taken in, gives the database some time, and leaves the rest to the next process.
    fn drop(&mut self) {
        drop(self.tickets.take());
        self.shared.state().end_by = Instant::now().checked_add(self.patience);
        self.shared.changed.notify_all();
        for thread in self.threads.drain(..) {
            // a thread that panicked has said so
            thread.join().ok();
        }
    }
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wait<'a>(&self, state: MutexGuard<'a, State>, within: Duration) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, within).unwrap_or_else(PoisonError::into_inner).0
    }

    pub(super) fn wait_for_change<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn segment(&self, place: usize) -> &Segment {
        let [first, second] = &self.segments;
        if place == 0 { first } else { second }
    }
}

impl State {
    pub(super) fn file(&mut self, place: usize) -> &mut FileState {
        let [first, second] = &mut self.files;
        if place == 0 { first } else { second }
    }

    /// The time that was given at the end is over.
    pub(super) fn is_late(&self) -> bool {
        self.end_by.is_some_and(|end| Instant::now() >= end)
    }

    /// Bytes that are not in the database yet.
    pub(super) fn waiting(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.waiting()))
    }
}

impl Health {
    pub(super) fn missed(&mut self, count: u64) {
        self.missed = self.missed.saturating_add(count);
    }
}

impl FileState {
    pub(super) fn waiting(&self) -> u64 {
        self.written.saturating_sub(self.moved)
    }
}

fn room_of(frame: &Frame) -> u32 {
    u32::try_from(frame.len()).unwrap_or(u32::MAX)
}

fn start(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, StoreError> {
    let refused = |why| StoreError::Refused(format!("the thread {name} could not be started: {why}"));
    // the store waits for it when it is dropped
    std::thread::Builder::new().name(name.into()).spawn(run).map_err(refused)
}
