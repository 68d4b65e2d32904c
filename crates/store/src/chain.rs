//! The chain that makes a change of the trail visible.
//!
//! Each row's hash is made over the hash before it, its place and its canonical bytes; with a key nobody else can make
//! it. A chain belongs to a *writer*, the data directory that rows come from, and its places have no gaps. What the
//! chain cannot show by itself is that its end was cut off together with the head that the database keeps: for that,
//! a [`Checkpoint`] is stored elsewhere and compared later.

use crate::error::StoreError;
use crate::keys::ChainKey;
use crate::row::{Hash, from_hex, hex};
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

    pub(crate) fn mark_of(&self, writer: &str, key: &ChainKey) -> Hash {
        key.hash(&[b"anchor", writer.as_bytes(), &self.link.seq.to_le_bytes(), &self.link.hash])
    }
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
