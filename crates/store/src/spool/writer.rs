//! The thread that writes a process's spool: everything that waits, in one write, then one sync if asked for.

use super::Durability;
use super::queue::{Limits, Shared, Ticket};
use super::segment::{Header, START};
use hookgate_core::record::RecordError;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};

/// A segment is left for the other one when it is so large.
const TURN: u64 = 4 << 20;
/// As much is made ready at a time where each write is synced: a file whose size does not change syncs faster.
const AHEAD: u64 = 1 << 20;
/// As much is written at once.
const MOST: usize = 1 << 20;
/// How long a relaxed writer naps between two looks, so that handing over costs no system call.
const NAP: Duration = Duration::from_millis(5);
/// After so many naps with nothing to do it sleeps until it is called.
const NAPS: u32 = 40;
/// How long it waits before it tries again what could not be written.
const AGAIN: Duration = Duration::from_millis(100);

pub(super) struct Writing {
    pub(super) shared: Arc<Shared>,
    pub(super) limits: Limits,
    pub(super) tickets: mpsc::UnboundedReceiver<Ticket>,
    pub(super) room: Arc<Semaphore>,
}

/// Writes until nobody can hand anything over any more.
pub(super) fn run(mut writing: Writing) {
    let mut ready = [START; 2];
    let mut batch = Vec::new();
    let mut bytes = Vec::new();
    while writing.take(&mut batch) {
        let written = writing.write(&batch, &mut bytes, &mut ready);
        writing.shared.state().health.spool = written.as_ref().err().map(ToString::to_string);
        writing.settle(&mut batch, &written);
        if !batch.is_empty() {
            // nobody waits for these, so nobody would hear that they are lost: they are tried until the end
            if writing.tickets.is_closed() && writing.tickets.is_empty() {
                break;
            }
            std::thread::sleep(AGAIN);
        }
        // the gates first; a mover that is at work or gathers comes by itself
        let state = writing.shared.state();
        if state.idle || state.waiting() >= super::mover::ENOUGH {
            writing.shared.changed.notify_all();
        }
    }
    let lost = u64::try_from(batch.len()).unwrap_or(u64::MAX);
    writing.shared.state().health.missed(lost);
    writing.shared.state().written_out = true;
    writing.shared.changed.notify_all();
}

impl Writing {
    /// Takes all that waits, behind what is to be tried again; sleeps until there is something. False: it is over.
    fn take(&mut self, batch: &mut Vec<Ticket>) -> bool {
        let mut len = 0usize;
        let mut naps = 0;
        loop {
            while len < MOST
                && let Ok(ticket) = self.tickets.try_recv()
            {
                len = len.saturating_add(ticket.frame.len());
                batch.push(ticket);
            }
            if !batch.is_empty() {
                return true;
            }
            if self.limits.durability == Durability::Relaxed && naps < NAPS && !self.tickets.is_closed() {
                naps = naps.saturating_add(1);
                std::thread::sleep(NAP);
                continue;
            }
            let Some(ticket) = self.tickets.blocking_recv() else { return false };
            len = len.saturating_add(ticket.frame.len());
            batch.push(ticket);
            if self.limits.durability == Durability::Relaxed {
                // what comes with the first one goes with it
                std::thread::sleep(NAP);
            }
        }
    }

    /// Writes a batch behind what is there. What fails leaves nothing behind that would be read.
    fn write(&self, batch: &[Ticket], bytes: &mut Vec<u8>, ready: &mut [u64; 2]) -> io::Result<()> {
        let (active, generation, at) = self.make_place()?;
        bytes.clear();
        batch.iter().for_each(|ticket| ticket.frame.put(generation, bytes));
        let segment = self.shared.segment(active);
        let syncs = self.limits.durability == Durability::Power;
        let end = at.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        let ready = ready.get_mut(active);
        if syncs && let Some(ready) = ready.filter(|ready| **ready < end) {
            let more = end.saturating_sub(*ready).max(AHEAD);
            let zeros = vec![0; usize::try_from(more).unwrap_or(0)];
            // without it each sync costs more, that is all
            if segment.write(&zeros, *ready).is_ok() {
                *ready = ready.saturating_add(more);
            }
        }
        let written =
            segment.write(bytes, at).and_then(|()| if syncs { segment.file.sync_data() } else { Ok(()) });
        if let Err(why) = written {
            // a frame that was written whole although its gate was told otherwise
            let len = segment.len().unwrap_or(0);
            if len > at && segment.write(&[0; 8], at).is_err() {
                segment.file.set_len(at).ok();
            }
            return Err(why);
        }
        self.shared.state().file(active).written = end;
        Ok(())
    }

    /// Waits until the spool is below its bound, and turns to the other segment if this one is large and that one
    /// empty. Gives the segment, its generation, and where to write.
    fn make_place(&self) -> io::Result<(usize, u64, u64)> {
        let mut state = self.shared.state();
        while state.waiting() >= self.limits.spool {
            if state.end_by.is_some() {
                return Err(io::Error::other("the spool is full and the store is being closed"));
            }
            state.health.spool = Some("the spool is full; it waits for the database".into());
            state = self.shared.wait_for_change(state);
        }
        let active = state.active;
        let other = 1usize.saturating_sub(active);
        let file = *state.file(active);
        let free = state.file(other).waiting() == 0;
        if file.written < TURN || !free {
            return Ok((active, file.generation, file.written));
        }
        let syncs = self.limits.durability == Durability::Power;
        let generation = state.file(other).generation.saturating_add(1);
        let segment = self.shared.segment(other);
        if segment.len()? > TURN.saturating_mul(2) {
            segment.file.set_len(START)?;
        }
        segment.put_header(Header { generation, moved: START, syncs })?;
        *state.file(other) = super::queue::FileState { generation, written: START, moved: START };
        state.active = other;
        Ok((other, generation, START))
    }

    /// Tells who waits how it went, and gives the room back. What failed and nobody waits for stays in the batch.
    fn settle(&self, batch: &mut Vec<Ticket>, written: &io::Result<()>) {
        let mut room = 0usize;
        let mut again = Vec::new();
        for ticket in batch.drain(..) {
            if written.is_err() && ticket.ack.is_none() {
                again.push(ticket);
                continue;
            }
            if ticket.is_over {
                self.shared.over.fetch_sub(ticket.frame.len(), Ordering::Relaxed);
            } else {
                room = room.saturating_add(ticket.frame.len());
            }
            if let Some(ack) = ticket.ack {
                let result = written.as_ref().copied().map_err(|why| {
                    RecordError(format!("the record could not be written to the spool: {why}"))
                });
                // whoever no longer waits has blocked already
                ack.send(result).ok();
            }
        }
        *batch = again;
        self.room.add_permits(room);
    }
}
