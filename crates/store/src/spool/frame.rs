//! The form of a spool file: a header, then frames, each with its length and a checksum.
//!
//! | bytes | frame |
//! |---|---|
//! | 4 | length of the body |
//! | 4 | CRC-32 of the body, mixed with the file's generation |
//! | … | body: kind (1 row, 2 job, 3 filter trace), then what it says |
//!
//! A file that is used again gets a new generation, so old frames behind the last new one do not count. What is torn
//! or damaged is skipped up to the next frame whose checksum is right.

use crate::database::Batch;
use crate::error::StoreError;
use crate::job::NewJob;
use crate::row::{Framed, LARGEST, Row};
use crate::trace::NewTrace;

/// Length and checksum.
pub(crate) const FRAME_HEAD: usize = 8;
const ROW: u8 = 1;
const JOB: u8 = 2;
const TRACE: u8 = 3;

/// A frame as it is handed to a spool; the checksum still lacks the generation.
#[derive(Debug)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// The frame of a row.
    pub(crate) fn of_row(row: &Row<'_>) -> Result<Frame, StoreError> {
        Frame::make(ROW, |bytes| row.put(bytes))
    }

    /// The frame of a job.
    pub(crate) fn of_job(job: &NewJob<'_>) -> Result<Frame, StoreError> {
        Frame::make(JOB, |bytes| job.put(bytes))
    }

    /// The frame of a filter trace.
    pub(crate) fn of_trace(trace: &NewTrace<'_>) -> Result<Frame, StoreError> {
        Frame::make(TRACE, |bytes| trace.put(bytes))
    }

    fn make(kind: u8, put: impl FnOnce(&mut Vec<u8>)) -> Result<Frame, StoreError> {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend_from_slice(&[0; FRAME_HEAD]);
        bytes.push(kind);
        put(&mut bytes);
        let body = bytes.get(FRAME_HEAD..).unwrap_or_default();
        if body.len() > LARGEST {
            let text = format!("a record of {} bytes is too large; at most {LARGEST} are kept", body.len());
            return Err(StoreError::Refused(text));
        }
        let (len, sum) = (u32::try_from(body.len()).unwrap_or(0), crc32fast::hash(body));
        for (place, byte) in bytes.iter_mut().zip(len.to_le_bytes().into_iter().chain(sum.to_le_bytes())) {
            *place = byte;
        }
        Ok(Frame(bytes))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the frame to what is to be written to a file of this generation.
    pub(crate) fn put(&self, generation: u64, out: &mut Vec<u8>) {
        let Some((head, body)) = self.0.split_first_chunk::<FRAME_HEAD>() else { return };
        let [a, b, c, d, sum @ ..] = *head;
        out.extend_from_slice(&[a, b, c, d]);
        out.extend_from_slice(&(u32::from_le_bytes(sum) ^ mix(generation)).to_le_bytes());
        out.extend_from_slice(body);
    }
}

/// What was found in a piece of a file.
#[derive(Debug, Default)]
pub(crate) struct Found<'a> {
    pub(crate) batch: Batch<'a>,
    /// Bytes of the piece that are dealt with.
    pub(crate) used: usize,
    /// Places at which something was damaged and skipped.
    pub(crate) damaged: u64,
}

/// Reads up to `most` frames. `last`: nothing comes behind this piece, so a torn frame at its end is dealt with too.
pub(crate) fn read(piece: &[u8], generation: u64, most: usize, last: bool) -> Found<'_> {
    let mut found = Found::default();
    while found.batch.len() < most {
        match next(piece, found.used, generation) {
            Next::Body(body, end) => {
                take(body, &mut found);
                found.used = end;
            }
            Next::Torn if !last => break,
            Next::Torn | Next::Damaged => {
                match resume(piece, found.used, generation) {
                    Some(place) => {
                        found.damaged = found.damaged.saturating_add(1);
                        found.used = place;
                    }
                    // behind a torn tail there is nothing, or what an earlier generation left; where more comes, a
                    // frame may begin near the end of the piece
                    None => {
                        let kept = if last { 0 } else { LARGEST.saturating_add(FRAME_HEAD) };
                        found.used = piece.len().saturating_sub(kept).max(found.used.saturating_add(1));
                        break;
                    }
                }
            }
            Next::End => break,
        }
    }
    found
}

enum Next<'a> {
    /// A frame's body, and where the frame ends.
    Body(&'a [u8], usize),
    /// The piece ends within a frame.
    Torn,
    /// This is no frame.
    Damaged,
    /// The piece is over.
    End,
}

fn next(piece: &[u8], at: usize, generation: u64) -> Next<'_> {
    let rest = piece.get(at..).unwrap_or_default();
    if rest.is_empty() {
        return Next::End;
    }
    let Some((head, rest)) = rest.split_first_chunk::<FRAME_HEAD>() else { return Next::Torn };
    let [a, b, c, d, sum @ ..] = *head;
    let len = usize::try_from(u32::from_le_bytes([a, b, c, d])).unwrap_or(usize::MAX);
    if len == 0 || len > LARGEST {
        return Next::Damaged;
    }
    let Some(body) = rest.get(..len) else { return Next::Torn };
    if crc32fast::hash(body) ^ mix(generation) != u32::from_le_bytes(sum) {
        return Next::Damaged;
    }
    Next::Body(body, at.saturating_add(FRAME_HEAD).saturating_add(len))
}

/// The next place behind a damaged one where a frame begins.
fn resume(piece: &[u8], at: usize, generation: u64) -> Option<usize> {
    let mut place = at.saturating_add(1);
    while place < piece.len() {
        // long stretches of zeros are what was never written
        let rest = piece.get(place..).unwrap_or_default();
        place = place.saturating_add(rest.iter().position(|byte| *byte != 0)?.saturating_sub(3));
        if matches!(next(piece, place, generation), Next::Body(..)) {
            return Some(place);
        }
        place = place.saturating_add(1);
    }
    None
}

fn take<'a>(body: &'a [u8], found: &mut Found<'a>) {
    let read = match body.split_first() {
        Some((&ROW, bytes)) => Framed::read(bytes).map(|row| found.batch.rows.push(row)),
        Some((&JOB, bytes)) => NewJob::read(bytes).map(|job| found.batch.jobs.push(job)),
        Some((&TRACE, bytes)) => NewTrace::read(bytes).map(|trace| found.batch.traces.push(trace)),
        _ => Err(StoreError::Frame),
    };
    if read.is_err() {
        found.damaged = found.damaged.saturating_add(1);
    }
}

fn mix(generation: u64) -> u32 {
    let folded = generation ^ (generation >> 32);
    u32::try_from(folded & 0xffff_ffff).unwrap_or(0).wrapping_mul(0x9e37_79b1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Sealed;

    /// What an older program left must be readable.
    #[test]
    fn the_checksum_is_the_usual_one() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    fn job(number: u8) -> NewJob<'static> {
        let payload = Sealed { key_id: "k".into(), bytes: vec![number; 40].into() };
        NewJob { dedup: [number; 16], hook: "h", event_id: "e", origin: "o", payload, created_at: 1 }
    }

    fn file(generation: u64, numbers: std::ops::Range<u8>) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in numbers {
            Frame::of_job(&job(number)).unwrap().put(generation, &mut bytes);
        }
        bytes
    }

    /// The numbers of the jobs that are found, and how much was damaged.
    #[track_caller]
    fn check(piece: &[u8], last: bool, numbers: &[u8], damaged: u64) {
        let found = read(piece, 7, 1024, last);
        let seen: Vec<u8> = found.batch.jobs.iter().map(|job| job.dedup[0]).collect();
        assert_eq!((seen.as_slice(), found.damaged), (numbers, damaged));
    }

    #[test]
    fn a_torn_tail_is_cut_and_damage_is_skipped() {
        let whole = file(7, 1..4);
        let one = whole.len() / 3;
        check(&whole, true, &[1, 2, 3], 0);
        for cut in [1, 7, 8, one - 1] {
            check(&whole[..2 * one + cut], true, &[1, 2], 0);
        }
        let found = read(&whole[..2 * one + 5], 7, 1024, false);
        assert_eq!(found.used, 2 * one, "a frame that is still to come is not dealt with");
        for place in [0, 3, 5, 9, one - 1] {
            let mut bent = whole.clone();
            bent[one + place] ^= 0x55;
            check(&bent, true, &[1, 3], 1);
        }
        // a file that was made larger beforehand, and one that was used before
        check(&[whole.as_slice(), &[0; 5000]].concat(), true, &[1, 2, 3], 0);
        check(&[file(7, 1..2), file(6, 5..9)].concat(), true, &[1], 0);
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let mut large = job(1);
        large.payload.bytes = vec![0; LARGEST].into();
        assert!(Frame::of_job(&large).unwrap_err().to_string().contains("too large"));
    }
}
