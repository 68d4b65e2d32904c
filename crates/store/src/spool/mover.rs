//! The thread that moves a process's spool into the database, and what dead processes left beside it.

use super::adopt;
use super::frame;
use super::queue::{Shared, State};
use super::segment::Segment;
use crate::database::Database;
use crate::error::StoreError;
use crate::store::Place;
use std::sync::mpsc::Sender;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// Rows in one transaction, where so many wait: the more there are, the fewer pages are written for each.
pub(super) const ROWS: usize = 8192;
/// A piece of a file that is read at once; about as many rows, and the largest frame fits.
const PIECE: u64 = 2 << 20;
/// How long it waits for more before it begins a transaction for a few rows.
const GATHER: Duration = Duration::from_millis(20);
/// As much is worth a transaction at once.
pub(super) const ENOUGH: u64 = 128 << 10;
/// The pauses after a failure grow from this to that.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Retention runs once in this time, whichever process does it, in milliseconds.
const RETENTION_EACH: i64 = 3_600_000;
/// How often a process asks whether it is its turn, in milliseconds.
const ASK_EACH: i64 = 600_000;
/// How often it looks for what other processes left.
const ADOPT_EACH: Duration = Duration::from_secs(5);

pub(super) struct Moving {
    pub(super) shared: Arc<Shared>,
    pub(super) place: Arc<Place>,
    /// Told how the first connection went.
    connected: Option<Sender<Result<(), StoreError>>>,
    /// The name of the spool's files: jobs that this process has are leased to it.
    name: String,
    /// When retention is looked after next, and the time before which rows are to go, while it is under way.
    care_at: i64,
    pruning: Option<i64>,
    /// What was read last; kept while there is work, because making room for it anew costs more than reading.
    piece: Vec<u8>,
}

/// Moves until all is moved and nothing more can come, or the time that was given for that is over.
pub(super) fn run(mut moving: Moving) {
    let mut database: Option<Box<dyn Database>> = None;
    let mut pause = FIRST_PAUSE;
    let mut adopted: Option<Instant> = None;
    loop {
        let result = moving.connect(&mut database).and_then(|database| {
            if adopted.is_none_or(|at| at.elapsed() >= ADOPT_EACH) {
                adopted = Some(Instant::now());
                let found = adopt::adopt(&moving.place, database)?;
                let mut state = moving.shared.state();
                state.health.rows = state.health.rows.saturating_add(found.rows);
                state.health.damaged = state.health.damaged.saturating_add(found.damaged);
            }
            Ok(moving.step(database)? || moving.care(database)?)
        });
        let mut state = moving.shared.state();
        state.health.database = result.as_ref().err().map(ToString::to_string);
        // also a short process looks after retention once, if the database can be reached
        let has_cared = moving.place.keep.is_none() || moving.care_at > i64::MIN;
        let is_done = state.waiting() == 0 && (result.is_err() || (has_cared && state.installs.is_empty()));
        if state.written_out && (is_done || state.is_late()) {
            break;
        }
        match result {
            Ok(true) => pause = FIRST_PAUSE,
            Ok(false) => drop(moving.rest(state)),
            Err(error) => {
                if !matches!(error, StoreError::Unavailable { .. }) {
                    database = None;
                }
                drop(moving.pause(state, pause));
                pause = pause.saturating_mul(2).min(LONGEST_PAUSE);
            }
        }
    }
    if moving.shared.state().waiting() == 0 {
        if let Some(database) = &mut database {
            // else they are due again when their time is over
            database.free_leases(&moving.name).ok();
        }
        for segment in &moving.shared.segments {
            // a file that stays is moved again and changes nothing
            std::fs::remove_file(&segment.path).ok();
        }
    }
}

impl Moving {
    pub(super) fn new(
        name: &str,
        shared: &Arc<Shared>,
        place: &Arc<Place>,
        connected: Sender<Result<(), StoreError>>,
    ) -> Moving {
        Moving {
            shared: shared.clone(),
            place: place.clone(),
            connected: Some(connected),
            name: name.to_owned(),
            care_at: i64::MIN,
            pruning: None,
            piece: Vec::new(),
        }
    }

    /// Tells the database which hooks there are now. A source stays in the list until the database knows, because who
    /// flushes waits for the list.
    fn install(&self, database: &mut dyn Database) -> Result<(), StoreError> {
        let next = || {
            let state = self.shared.state();
            state.installs.first_key_value().map(|(source, hooks)| (source.clone(), hooks.clone()))
        };
        while let Some((source, hooks)) = next() {
            database.install(&source, &hooks)?;
            let mut state = self.shared.state();
            // unless there is a newer word
            if state.installs.get(&source) == Some(&hooks) {
                state.installs.remove(&source);
            }
        }
        self.shared.changed.notify_all();
        Ok(())
    }

    /// What is done when there is nothing to move: deleted hooks and retention. True if there is more to do.
    fn care(&mut self, database: &mut dyn Database) -> Result<bool, StoreError> {
        self.install(database)?;
        let Some(keep) = self.place.keep else { return Ok(false) };
        if self.pruning.is_none() {
            let now = (self.place.clock)();
            if now < self.care_at {
                return Ok(false);
            }
            self.care_at = now.saturating_add(ASK_EACH);
            let before = now.saturating_sub(i64::try_from(keep.as_millis()).unwrap_or(i64::MAX));
            self.pruning = database.begin_retention(now, RETENTION_EACH)?.then_some(before);
        }
        let Some(before) = self.pruning else { return Ok(false) };
        let key = self.place.chain_key();
        let pruned = database.prune(before, &|writer, anchor| anchor.marked(writer, &key))?;
        self.pruning = pruned.more.then_some(before);
        Ok(pruned.more)
    }

    fn connect<'d>(
        &mut self,
        database: &'d mut Option<Box<dyn Database>>,
    ) -> Result<&'d mut (dyn Database + 'static), StoreError> {
        if database.is_none() {
            match (self.place.backend)() {
                Ok(opened) => *database = Some(opened),
                Err(error) => {
                    if let (Some(connected), StoreError::Newer { what, found, known }) =
                        (self.connected.take(), &error)
                    {
                        let (what, found, known) = (what.clone(), *found, *known);
                        // who opened the store may have stopped waiting
                        connected.send(Err(StoreError::Newer { what, found, known })).ok();
                    }
                    return Err(error);
                }
            }
        }
        if let Some(connected) = self.connected.take() {
            connected.send(Ok(())).ok();
        }
        database.as_deref_mut().ok_or(StoreError::Closed)
    }

    /// Moves one batch; false if there was nothing to move.
    fn step(&mut self, database: &mut dyn Database) -> Result<bool, StoreError> {
        let mut state = self.shared.state();
        // the older segment first: rows stay in order
        let older = 1usize.saturating_sub(state.active);
        let from = if state.file(older).waiting() > 0 { older } else { state.active };
        let file = *state.file(from);
        drop(state);
        if file.waiting() == 0 {
            self.piece = Vec::new();
            return Ok(false);
        }
        let segment = self.shared.segment(from);
        read_piece(segment, file.moved, file.written, &mut self.piece)?;
        let piece = self.piece.as_slice();
        let whole = file.moved.saturating_add(u64::try_from(piece.len()).unwrap_or(0)) >= file.written;
        let mut found = frame::read(piece, file.generation, ROWS, whole);
        if piece.is_empty() {
            // somebody cut the file: there is nothing left to move
            found.damaged = 1;
            found.used = usize::try_from(file.waiting()).unwrap_or(usize::MAX);
        }
        let appended = database.append(&self.place.writer, &self.place.chain_key(), &found.batch)?;
        let moved = file.moved.saturating_add(u64::try_from(found.used).unwrap_or(0));
        // if the note is lost, the rows are moved again and change nothing
        segment.put_moved(moved).ok();
        let mut state = self.shared.state();
        state.file(from).moved = moved;
        // whoever waits for the move sees that the fault is over
        state.health.database = None;
        state.health.rows = state.health.rows.saturating_add(appended.rows);
        state.health.damaged = state.health.damaged.saturating_add(found.damaged);
        drop(state);
        self.shared.changed.notify_all();
        Ok(true)
    }

    /// Nothing to do: waits for something, and then a little for more.
    fn rest<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.hurry = false;
        if state.waiting() == 0 && !state.written_out && state.installs.is_empty() {
            state.idle = true;
            state = self.shared.wait(state, ADOPT_EACH);
            state.idle = false;
        }
        let began = Instant::now();
        loop {
            let left = GATHER.saturating_sub(began.elapsed());
            let waiting = state.waiting();
            let enough = waiting == 0 || waiting >= ENOUGH || state.hurry || state.end_by.is_some();
            if enough || left.is_zero() {
                return state;
            }
            state = self.shared.wait(state, left);
        }
    }

    /// Waits after a failure, at most until the end.
    fn pause<'a>(&'a self, mut state: MutexGuard<'a, State>, pause: Duration) -> MutexGuard<'a, State> {
        let began = Instant::now();
        loop {
            let end_in = state.end_by.map(|end| end.saturating_duration_since(Instant::now()));
            let left = pause.saturating_sub(began.elapsed()).min(end_in.unwrap_or(pause));
            if left.is_zero() {
                return state;
            }
            state = self.shared.wait(state, left);
        }
    }
}

/// What stands in a file between two places, up to a bound, in the place of what the buffer held.
pub(super) fn read_piece(
    segment: &Segment,
    from: u64,
    to: u64,
    piece: &mut Vec<u8>,
) -> Result<(), StoreError> {
    let len = to.saturating_sub(from).min(PIECE);
    piece.resize(usize::try_from(len).unwrap_or(0), 0);
    let filled = segment.read(piece, from).map_err(StoreError::file(&segment.path))?;
    piece.truncate(filled);
    Ok(())
}
