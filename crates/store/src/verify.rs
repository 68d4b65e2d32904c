//! The check of the whole trail.
//!
//! One thread reads rows and puts their canonical bytes together, another makes the hashes and compares: each takes
//! about half of the time.

use crate::chain::{ChainState, Checkpoint, Link, start};
use crate::database::Database;
use crate::error::StoreError;
use crate::keys::{ChainKey, Keys, Purpose};
use crate::query::InChain;
use crate::row::{Dedup, Row, Sealed};
use std::collections::HashMap;
use std::fmt;
use std::sync::mpsc::sync_channel;

/// Bytes that are handed over at once.
const PIECE: usize = 128 << 10;
/// Pieces that wait at most.
const PIECES: usize = 4;

/// What a check of all chains found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// Rows that were looked at.
    pub rows: u64,
    /// Of these, rows whose hash was made without a key: they show accidents and careless hands only.
    pub without_key: u64,
    /// Details that were opened.
    pub details: u64,
    /// Where a chain went on without a key after rows with one: the key was taken away, or somebody wrote who has none.
    pub key_lost: Option<(String, u64)>,
    /// The first thing that is wrong.
    pub fault: Option<Fault>,
}

/// The first thing that is wrong with the trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// In which chain.
    pub writer: String,
    /// At which place.
    pub seq: u64,
    /// The row, if there is one.
    pub id: Option<i64>,
    /// What it is.
    pub kind: FaultKind,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The row is not what was written.
    Changed,
    /// The row at this place is gone or stands elsewhere.
    Missing,
    /// The row stands at a place that another row has.
    Misplaced,
    /// Rows after this place were cut off.
    Cut,
    /// The place where the chain begins was not marked by a holder of the key.
    Anchor,
    /// The trail is another than the checkpoint's at this place.
    Forked,
    /// The row's detail does not open.
    Detail,
    /// The row is in a chain that the database does not know.
    Stranger,
}

/// Checks all rows of a database against what it says about its chains, and against a checkpoint.
pub(crate) fn verify(
    database: &mut dyn Database,
    chains: Vec<ChainState>,
    keys: Option<&Keys>,
    against: Option<&Checkpoint>,
) -> Result<Verified, StoreError> {
    let mut verifier = Verifier::new(chains, keys, against)?;
    std::thread::scope(|scope| {
        let (send, pieces) = sync_channel::<Piece>(PIECES);
        let checking = scope.spawn(move || {
            while let Ok(piece) = pieces.recv() {
                if !verifier.see_all(&piece)? {
                    break;
                }
            }
            Ok(verifier.finish())
        });
        let mut piece = Piece::default();
        let walked = database.walk(&mut |place, row| {
            piece.add(place, row);
            // nobody takes it any more: something wrong was found
            Ok(piece.bytes.len() < PIECE || send.send(std::mem::take(&mut piece)).is_ok())
        });
        if walked.is_ok() {
            send.send(piece).ok();
        }
        drop(send);
        let stopped = |_| StoreError::Refused("the check of the trail stopped".into());
        let verified = checking.join().map_err(stopped)?;
        walked.and(verified)
    })
}

/// Rows on their way from reading to checking.
#[derive(Debug, Default)]
struct Piece {
    /// Canonical bytes, one row behind the other.
    bytes: Vec<u8>,
    rows: Vec<Read>,
    writers: Vec<String>,
}

/// A row of a piece.
#[derive(Debug)]
struct Read {
    id: i64,
    writer: usize,
    link: Link,
    /// Where its bytes end.
    end: usize,
    sealed: Option<(Dedup, Sealed<'static>)>,
}

impl Piece {
    fn add(&mut self, place: InChain<'_>, row: &Row<'_>) {
        row.put_canonical(&mut self.bytes);
        let writer = self.writers.iter().position(|writer| writer == place.writer).unwrap_or_else(|| {
            self.writers.push(place.writer.to_owned());
            self.writers.len().saturating_sub(1)
        });
        let sealed = row.detail.as_ref().map(|sealed| (row.dedup, sealed.clone().into_owned()));
        let link = Link { seq: place.seq, hash: place.hash };
        self.rows.push(Read { id: place.id, writer, link, end: self.bytes.len(), sealed });
    }
}

/// Goes through all rows in order and keeps where each chain stands.
#[derive(Debug)]
struct Verifier<'a> {
    keys: Option<&'a Keys>,
    checkpoint: HashMap<&'a str, Link>,
    chains: HashMap<String, Walking>,
    found: Verified,
}

/// A chain on the way through.
#[derive(Debug)]
struct Walking {
    at: Link,
    state: ChainState,
    key: ChainKey,
    /// The next place at which another key begins.
    next_epoch: Option<u64>,
}

impl<'a> Verifier<'a> {
    fn new(
        chains: Vec<ChainState>,
        keys: Option<&'a Keys>,
        against: Option<&'a Checkpoint>,
    ) -> Result<Verifier<'a>, StoreError> {
        let heads = against.map(|checkpoint| checkpoint.heads.as_slice()).unwrap_or_default();
        let checkpoint = heads.iter().map(|(writer, link)| (writer.as_str(), *link)).collect();
        let (chains_by_writer, found) = (HashMap::new(), Verified::default());
        let mut verifier = Verifier { keys, checkpoint, chains: chains_by_writer, found };
        for state in chains {
            verifier.begin(state)?;
        }
        Ok(verifier)
    }

    fn begin(&mut self, state: ChainState) -> Result<(), StoreError> {
        let mut at = start(&state.writer);
        if let Some(anchor) = &state.anchor {
            at = anchor.link;
            let good = match &anchor.key_id {
                Some(key_id) => {
                    anchor.mark == Some(anchor.mark_of(&state.writer, &chain_key(self.keys, key_id)?))
                }
                // a chain that was kept with a key is not shortened by somebody without one
                None => state.epochs.iter().all(|epoch| epoch.from > at.seq || epoch.key_id.is_none()),
            };
            if !good {
                self.fault(&state.writer, at.seq, None, FaultKind::Anchor);
            }
            let seen = self.checkpoint.get(state.writer.as_str());
            if seen.is_some_and(|seen| seen.seq == at.seq && seen.hash != at.hash) {
                self.fault(&state.writer, at.seq, None, FaultKind::Forked);
            }
        }
        let mut walking = Walking { at, state, key: ChainKey::plain(), next_epoch: None };
        walking.turn_to(at.seq.saturating_add(1), self.keys)?;
        self.chains.insert(walking.state.writer.clone(), walking);
        Ok(())
    }

    /// Looks at the rows of a piece; false once something is wrong.
    fn see_all(&mut self, piece: &Piece) -> Result<bool, StoreError> {
        let mut start = 0;
        for row in &piece.rows {
            let canonical = piece.bytes.get(start..row.end).unwrap_or_default();
            start = row.end;
            let writer = piece.writers.get(row.writer).map_or("", String::as_str);
            let place = InChain { id: row.id, writer, seq: row.link.seq, hash: row.link.hash };
            if !self.see(place, canonical, row.sealed.as_ref())? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Looks at the next row; false once something is wrong.
    fn see(
        &mut self,
        place: InChain<'_>,
        canonical: &[u8],
        sealed: Option<&(Dedup, Sealed<'static>)>,
    ) -> Result<bool, StoreError> {
        if self.found.fault.is_some() {
            return Ok(false);
        }
        let Some(chain) = self.chains.get_mut(place.writer) else {
            self.fault(place.writer, place.seq, Some(place.id), FaultKind::Stranger);
            return Ok(false);
        };
        let expected = chain.at.seq.saturating_add(1);
        let kind = match place.seq.cmp(&expected) {
            std::cmp::Ordering::Less => Some((place.seq, FaultKind::Misplaced)),
            std::cmp::Ordering::Greater => Some((expected, FaultKind::Missing)),
            std::cmp::Ordering::Equal => None,
        };
        if let Some((seq, kind)) = kind {
            self.fault(place.writer, seq, Some(place.id), kind);
            return Ok(false);
        }
        if chain.next_epoch.is_some_and(|next| next <= expected) {
            let was_keyed = chain.key.id().is_some();
            chain.turn_to(expected, self.keys)?;
            if was_keyed && chain.key.id().is_none() && self.found.key_lost.is_none() {
                self.found.key_lost = Some((place.writer.to_owned(), expected));
            }
        }
        chain.at = chain.at.next(&chain.key, canonical);
        self.found.rows = self.found.rows.saturating_add(1);
        if chain.key.id().is_none() {
            self.found.without_key = self.found.without_key.saturating_add(1);
        }
        let (at, mut fault) = (chain.at, None);
        let other = |known: &Link| known.seq == at.seq && known.hash != at.hash;
        if at.hash != place.hash {
            fault = Some(FaultKind::Changed);
        } else if other(&chain.state.head) || self.checkpoint.get(place.writer).is_some_and(other) {
            fault = Some(FaultKind::Forked);
        } else if let (Some(keys), Some((dedup, sealed))) = (self.keys, sealed) {
            match keys.open(Purpose::Detail, dedup, sealed) {
                Ok(_) => self.found.details = self.found.details.saturating_add(1),
                Err(StoreError::Tampered { .. }) => fault = Some(FaultKind::Detail),
                Err(other) => return Err(other),
            }
        }
        if let Some(kind) = fault {
            self.fault(place.writer, place.seq, Some(place.id), kind);
        }
        Ok(fault.is_none())
    }

    /// After the last row: nothing may be missing at the ends.
    fn finish(mut self) -> Verified {
        if self.found.fault.is_none() {
            let mut chains: Vec<&Walking> = self.chains.values().collect();
            chains.sort_by(|a, b| a.state.writer.cmp(&b.state.writer));
            let cut = chains.iter().find(|chain| chain.at.seq < chain.state.head.seq);
            let cut = cut.map(|chain| (chain.state.writer.clone(), chain.at.seq));
            let short = self.checkpoint.iter().find_map(|(writer, seen)| {
                let at = self.chains.get(*writer).map_or(0, |chain| chain.at.seq);
                (at < seen.seq).then(|| ((*writer).to_owned(), at))
            });
            if let Some((writer, seq)) = cut.or(short) {
                self.fault(&writer, seq, None, FaultKind::Cut);
            }
        }
        self.found
    }

    fn fault(&mut self, writer: &str, seq: u64, id: Option<i64>, kind: FaultKind) {
        self.found.fault.get_or_insert_with(|| Fault { writer: writer.to_owned(), seq, id, kind });
    }
}

impl Walking {
    /// Takes the key that is valid at a place.
    fn turn_to(&mut self, seq: u64, keys: Option<&Keys>) -> Result<(), StoreError> {
        let now = self.state.epochs.iter().filter(|epoch| epoch.from <= seq).max_by_key(|epoch| epoch.from);
        self.key = match now.and_then(|epoch| epoch.key_id.as_deref()) {
            Some(key_id) => chain_key(keys, key_id)?,
            None => ChainKey::plain(),
        };
        self.next_epoch = self.state.epochs.iter().map(|epoch| epoch.from).filter(|from| *from > seq).min();
        Ok(())
    }
}

fn chain_key(keys: Option<&Keys>, key_id: &str) -> Result<ChainKey, StoreError> {
    let keys = keys.ok_or(StoreError::NoKey("checking this trail"))?;
    keys.chain(key_id).ok_or_else(|| StoreError::WrongKey {
        wanted: key_id.to_owned(),
        held: format!("{} holds {}", keys.path().display(), keys.ids().collect::<Vec<_>>().join(", ")),
    })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { writer, seq, id, kind } = self;
        match kind {
            FaultKind::Changed => write!(f, "the row at place {seq} was changed")?,
            FaultKind::Missing => write!(f, "the row at place {seq} is missing or stands elsewhere")?,
            FaultKind::Misplaced => write!(f, "the row at place {seq} stands there a second time")?,
            FaultKind::Cut => write!(f, "the rows after place {seq} were cut off")?,
            FaultKind::Anchor => write!(f, "the rows up to place {seq} were taken out without the key")?,
            FaultKind::Forked => write!(f, "the trail is another than the checkpoint's at place {seq}")?,
            FaultKind::Detail => write!(f, "the sealed detail of the row at place {seq} was changed")?,
            FaultKind::Stranger => write!(f, "the row at place {seq} is in a chain that is not known")?,
        }
        write!(f, " (writer {writer}")?;
        match id {
            Some(id) => write!(f, ", row {id})"),
            None => f.write_str(")"),
        }
    }
}
