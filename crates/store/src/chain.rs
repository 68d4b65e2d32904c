//! The chain that makes a change of the trail visible.
//!
//! Each row's hash is made over the hash before it, its place and its canonical bytes; with a key nobody else can make
//! it. A chain belongs to a *writer*, the data directory that rows come from, and its places have no gaps. What the
//! chain cannot show by itself is that its end was cut off together with the head that the database keeps: for that,
//! a [`Checkpoint`] is stored elsewhere and compared later.

use crate::error::StoreError;
use crate::keys::{ChainKey, Keys, Purpose};
use crate::query::InChain;
use crate::row::{Hash, Row, from_hex, hex};
use std::collections::HashMap;
use std::fmt;

/// A place in a chain with its hash. Place 0 is before the first row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// The place.
    pub seq: u64,
    /// The hash there.
    pub hash: Hash,
}

/// Where a chain begins after retention took its beginning out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Anchor {
    /// The last link that was taken out.
    pub link: Link,
    /// The number of its row.
    pub last_id: i64,
    /// The key of the mark, if there is one.
    pub key_id: Option<String>,
    /// What only a holder of the key can make.
    pub mark: Option<Hash>,
}

/// From a place on, hashes are made with this key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Epoch {
    /// The first place.
    pub from: u64,
    /// The key's id; none: without a key.
    pub key_id: Option<String>,
}

/// What the database says about a chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainState {
    /// Whose it is.
    pub writer: String,
    /// Its last link.
    pub head: Link,
    /// Where it begins, if not at its first row.
    pub anchor: Option<Anchor>,
    /// Its keys, by place.
    pub epochs: Vec<Epoch>,
}

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

/// The ends of all chains at some moment, as a text to be kept where the trail's editor cannot reach.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Each writer's last link.
    pub heads: Vec<(String, Link)>,
}

/// The link before a chain's first row.
pub(crate) fn start(writer: &str) -> Link {
    Link { seq: 0, hash: ChainKey::plain().hash(&[b"hookgate chain 1", writer.as_bytes()]) }
}

impl Link {
    /// The link of the row that follows.
    pub(crate) fn next(&self, key: &ChainKey, canonical: &[u8]) -> Link {
        let seq = self.seq.saturating_add(1);
        Link { seq, hash: key.hash(&[&self.hash, &seq.to_le_bytes(), canonical]) }
    }
}

impl Anchor {
    /// The same with the mark of a key.
    pub(crate) fn marked(&self, writer: &str, key: &ChainKey) -> Anchor {
        let key_id = key.id().map(str::to_owned);
        let mark = key_id.is_some().then(|| self.mark_of(writer, key));
        Anchor { key_id, mark, ..self.clone() }
    }

    fn mark_of(&self, writer: &str, key: &ChainKey) -> Hash {
        key.hash(&[b"anchor", writer.as_bytes(), &self.link.seq.to_le_bytes(), &self.link.hash])
    }
}

/// Goes through all rows in order and keeps where each chain stands.
#[derive(Debug)]
pub(crate) struct Verifier<'a> {
    keys: Option<&'a Keys>,
    checkpoint: HashMap<&'a str, Link>,
    chains: HashMap<String, Walking>,
    canonical: Vec<u8>,
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
    pub(crate) fn new(
        chains: Vec<ChainState>,
        keys: Option<&'a Keys>,
        against: Option<&'a Checkpoint>,
    ) -> Result<Verifier<'a>, StoreError> {
        let heads = against.map(|checkpoint| checkpoint.heads.as_slice()).unwrap_or_default();
        let checkpoint = heads.iter().map(|(writer, link)| (writer.as_str(), *link)).collect();
        let (chains_by_writer, found) = (HashMap::new(), Verified::default());
        let mut verifier =
            Verifier { keys, checkpoint, chains: chains_by_writer, canonical: Vec::new(), found };
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

    /// Looks at the next row; false once something is wrong.
    pub(crate) fn see(&mut self, place: InChain<'_>, row: &Row<'_>) -> Result<bool, StoreError> {
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
        self.canonical.clear();
        row.put_canonical(&mut self.canonical);
        chain.at = chain.at.next(&chain.key, &self.canonical);
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
        } else if let (Some(keys), Some(sealed)) = (self.keys, &row.detail) {
            match keys.open(Purpose::Detail, &row.dedup, sealed) {
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
    pub(crate) fn finish(mut self) -> Verified {
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

impl Checkpoint {
    const HEADER: &str = "hookgate audit checkpoint 1";

    /// The checkpoint of these chains.
    pub(crate) fn of(chains: &[ChainState]) -> Checkpoint {
        Checkpoint { heads: chains.iter().map(|chain| (chain.writer.clone(), chain.head)).collect() }
    }

    /// Reads the text that `Display` writes.
    pub fn parse(text: &str) -> Result<Checkpoint, StoreError> {
        let bad = |what: &str| StoreError::Refused(format!("not a checkpoint: {what}"));
        let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        if lines.next() != Some(Checkpoint::HEADER) {
            return Err(bad(&format!("expected `{}` in the first line", Checkpoint::HEADER)));
        }
        let head = |line: &str| {
            let mut words = line.split_whitespace();
            let writer = words.next()?.to_owned();
            let seq = words.next()?.parse().ok()?;
            let hash = from_hex(words.next()?)?;
            words.next().is_none().then_some((writer, Link { seq, hash }))
        };
        let heads = lines.map(|line| {
            head(line).ok_or_else(|| bad(&format!("expected a writer, a number and a hash, found `{line}`")))
        });
        Ok(Checkpoint { heads: heads.collect::<Result<_, _>>()? })
    }
}

impl fmt::Display for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Checkpoint::HEADER)?;
        for (writer, link) in &self.heads {
            write!(f, "\n{writer} {} {}", link.seq, hex(&link.hash))?;
        }
        Ok(())
    }
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
