//! Where one text stands that arrives in pieces.
//!
//! What is promised:
//!
//! - Each match is reported once, with the piece that makes it certain. Matches are the ones of JavaScript's
//!   `matchAll` over the whole text, so they do not overlap; one that grows with later pieces is not reported again.
//! - At most one hit a pattern and piece: further matches in the same piece count as seen. (In a piece of many blocks
//!   they are not even looked for, except in its last part.)
//! - Memory is bounded, whatever the length of the text. A match that is longer than [`WINDOW`] is reported once, with
//!   the part of it that was kept.
//! - A pattern that can match empty text is reported with each piece in which it matches anything, and with the end of
//!   the text when no piece had it.

use std::sync::Arc;

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::Cache;

use super::automaton::{Ahead, look_ahead, start};
use super::shard::{Shard, Stamp};
use super::stream_set::{Core, StreamSet};
use super::tail::Tail;
use super::track::{News, Track};

/// How many bytes of the text so far are surely kept to look for the beginning of a match.
pub const WINDOW: usize = 4 << 10;
/// Longer pieces are taken in blocks of this size.
const BLOCK: usize = 4 << 10;

/// A new match in a text that arrives in pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Index of the pattern in its set.
    pub pattern: usize,
    /// The matched text as far as it has arrived, at most [`WINDOW`] bytes.
    pub matched: String,
}

/// A place in one text that arrives in pieces, for one response and channel.
#[derive(Debug)]
pub struct StreamCursor {
    core: Arc<Core>,
    shard: usize,
    /// The automaton's state, good for one life of its cache.
    state: Option<(LazyStateID, Stamp)>,
    tail: Tail,
    /// Where the patterns began to look.
    origin: u64,
    /// The patterns that were ever touched, in ascending order.
    tracks: Vec<(usize, Track)>,
    touched: Touched,
    reported: Bits,
}

impl StreamCursor {
    pub(super) fn new(set: &StreamSet) -> Self {
        Self {
            core: Arc::clone(&set.core),
            shard: set.core.shards.assign(),
            state: None,
            tail: Tail::default(),
            origin: 0,
            tracks: Vec::new(),
            touched: Touched::default(),
            reported: Bits::default(),
        }
    }

    /// Takes the next piece of the text; new matches are added to `hits`, in the order of their patterns.
    ///
    /// With a set other than before (definitions were loaded again), its patterns look from this piece on.
    pub fn push(&mut self, set: &StreamSet, piece: &str, hits: &mut Vec<Hit>) {
        self.follow(set);
        if set.is_empty() {
            return;
        }
        let first = hits.len();
        let mut rest = piece;
        while !rest.is_empty() {
            let (block, later) = split(rest);
            self.scan(&set.core, block);
            self.advance(&set.core, When { at_end: false, far: later.len() > BLOCK }, hits);
            rest = later;
        }
        self.close(first, hits);
    }

    /// Takes the end of the text, which decides `$` and the last `\b`. After it the cursor is at the beginning of a
    /// new text.
    pub fn finish(&mut self, set: &StreamSet, hits: &mut Vec<Hit>) {
        let first = hits.len();
        self.end(set, hits);
        self.restart(first, hits);
    }

    fn end(&mut self, set: &StreamSet, hits: &mut Vec<Hit>) {
        self.follow(set);
        if !set.is_empty() {
            self.tail.push("");
            self.scan_end(&set.core);
            self.advance(&set.core, When { at_end: true, far: false }, hits);
        }
    }

    fn restart(&mut self, first: usize, hits: &mut [Hit]) {
        self.close(first, hits);
        self.state = None;
        self.tail = Tail::default();
        self.origin = 0;
        self.tracks.clear();
    }

    /// Goes over to another set. Its patterns see the kept text only as what stands before.
    fn follow(&mut self, set: &StreamSet) {
        if Arc::ptr_eq(&self.core, &set.core) {
            return;
        }
        self.core = Arc::clone(&set.core);
        self.shard = set.core.shards.assign();
        self.state = None;
        self.origin = self.tail.end();
        self.tracks.clear();
    }

    /// Steps the set's automaton over a block and notes which patterns have a match that ends in it.
    fn scan(&mut self, core: &Core, block: &str) {
        let mut shard = core.shards.lock(self.shard);
        let state = self.resume(core, &mut shard);
        let start = self.tail.end();
        self.tail.push(block);
        let Some(state) = state else { return };
        let touched = &mut self.touched;
        let state = step(core, &mut shard.cache, state, block.as_bytes(), |pattern, n| {
            touched.add(pattern, start + n)
        });
        let Some(state) = state else {
            self.state = None;
            return;
        };
        let stamp = shard.stamp();
        self.state = Some((state, stamp));
        self.look_ahead(core, &mut shard, state);
    }

    /// Notes the patterns whose match at the end of the text so far is certain: the automaton itself tells a match
    /// one byte late.
    fn look_ahead(&mut self, core: &Core, shard: &mut Shard, state: LazyStateID) {
        let (dfa, end, touched) = (&core.shards.dfa, self.tail.end(), &mut self.touched);
        let first = look_ahead(dfa, &mut shard.cache, state, |pattern| touched.add(pattern, end));
        if !matches!(first, Ahead::Cleared) {
            return;
        }
        // After starting over there is room, unless the cache is absurdly small; then the match is told a byte late.
        let Some(state) = self.resume(core, shard) else { return };
        self.state = Some((state, shard.stamp()));
        let touched = &mut self.touched;
        look_ahead(dfa, &mut shard.cache, state, |pattern| touched.add(pattern, end));
    }

    /// Steps over the end of the text.
    fn scan_end(&mut self, core: &Core) {
        let mut shard = core.shards.lock(self.shard);
        let Some(state) = self.resume(core, &mut shard) else { return };
        let (dfa, cache, end) = (&core.shards.dfa, &mut shard.cache, self.tail.end());
        if let Ok(state) = dfa.next_eoi_state(cache, state)
            && state.is_match()
        {
            for n in 0..dfa.match_len(cache, state) {
                self.touched.add(dfa.match_pattern(cache, state, n).as_usize(), end);
            }
        }
    }

    /// The state at the end of the text so far; found again from the kept text when the cache was started over.
    fn resume(&self, core: &Core, shard: &mut Shard) -> Option<LazyStateID> {
        match self.state {
            Some((state, stamp)) if stamp == shard.stamp() => Some(state),
            _ => {
                let floor = self.tail.floor();
                let state = start(&core.shards.dfa, &mut shard.cache, self.tail.before(floor))?;
                step(core, &mut shard.cache, state, self.tail.bytes(floor), |_, _| {})
            }
        }
    }

    /// Lets the patterns that were touched, and those with a match under way, see the newest block.
    fn advance(&mut self, core: &Core, when: When, hits: &mut Vec<Hit>) {
        if self.touched.list.is_empty() && self.tracks.is_empty() {
            return;
        }
        let origin = self.origin;
        for (pattern, _) in &self.touched.list {
            if let Err(place) = self.tracks.binary_search_by_key(pattern, |(pattern, _)| *pattern) {
                self.tracks.insert(place, (*pattern, Track::new(origin)));
            }
        }
        let mut touched = std::mem::take(&mut self.touched);
        for (index, track) in &mut self.tracks {
            let hit = touched.place(*index);
            if hit.is_none() && !track.is_running() {
                continue;
            }
            let Some(pattern) = core.patterns.get(*index) else { continue };
            let skim = when.far && self.reported.contains(*index);
            let news =
                News { tail: &self.tail, hit, at_end: when.at_end, empty: pattern.can_match_empty(), skim };
            let new = pattern.engine().and_then(|engine| track.advance(engine, &news));
            if let Some(matched) = new
                && self.reported.insert(*index)
            {
                hits.push(Hit { pattern: *index, matched });
            }
        }
        touched.clear();
        self.touched = touched;
    }

    /// Ends a push: its hits go in order.
    fn close(&mut self, first: usize, hits: &mut [Hit]) {
        let Some(new) = hits.get_mut(first..).filter(|new| !new.is_empty()) else { return };
        new.sort_by_key(|hit| hit.pattern);
        self.reported.clear();
    }

    /// Finishes, and tells how many matches each pattern had, reported or not.
    #[cfg(test)]
    pub(super) fn finish_counting(&mut self, set: &StreamSet, hits: &mut Vec<Hit>) -> Vec<u64> {
        let first = hits.len();
        self.end(set, hits);
        let mut found = vec![0; set.len()];
        self.tracks.iter().for_each(|(index, track)| found[*index] = track.found());
        self.restart(first, hits);
        found
    }
}

/// Where a block stands.
#[derive(Clone, Copy)]
struct When {
    /// The text ends with it.
    at_end: bool,
    /// More than one block of the same piece follows.
    far: bool,
}

/// Steps over bytes. `seen` gets each pattern that matches, and how many bytes before the match's end.
fn step(
    core: &Core,
    cache: &mut Cache,
    mut state: LazyStateID,
    bytes: &[u8],
    mut seen: impl FnMut(usize, u64),
) -> Option<LazyStateID> {
    let dfa = &core.shards.dfa;
    let mut last = None;
    for (n, &byte) in bytes.iter().enumerate() {
        state = dfa.next_state(cache, state, byte).ok()?;
        if state.is_tagged() && state.is_match() {
            // A text often stays in one matching state: `key.*` matches at each further byte.
            let here = Some((state, cache.clear_count()));
            if last != here {
                last = here;
                for k in 0..dfa.match_len(cache, state) {
                    seen(dfa.match_pattern(cache, state, k).as_usize(), n as u64);
                }
            }
        }
    }
    Some(state)
}

/// A block of a piece, and the rest.
fn split(piece: &str) -> (&str, &str) {
    let mut end = piece.len().min(BLOCK);
    while !piece.is_char_boundary(end) {
        end -= 1;
    }
    piece.split_at(end)
}

/// The patterns that were seen in a block, each with its first place.
#[derive(Debug, Default)]
struct Touched {
    list: Vec<(usize, u64)>,
    seen: Bits,
}

impl Touched {
    fn add(&mut self, pattern: usize, at: u64) {
        if self.seen.insert(pattern) {
            self.list.push((pattern, at));
        }
    }

    fn place(&self, pattern: usize) -> Option<u64> {
        if !self.seen.contains(pattern) {
            return None;
        }
        self.list.iter().find(|(index, _)| *index == pattern).map(|(_, at)| *at)
    }

    fn clear(&mut self) {
        self.list.clear();
        self.seen.clear();
    }
}

/// A set of small numbers.
#[derive(Debug, Default)]
struct Bits(Vec<u64>);

impl Bits {
    /// True when the number was not in it.
    fn insert(&mut self, n: usize) -> bool {
        if self.0.len() <= n / 64 {
            self.0.resize(n / 64 + 1, 0);
        }
        let bit = 1 << (n % 64);
        let Some(word) = self.0.get_mut(n / 64) else { return false };
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn contains(&self, n: usize) -> bool {
        self.0.get(n / 64).is_some_and(|word| word & (1 << (n % 64)) != 0)
    }

    fn clear(&mut self) {
        self.0.fill(0);
    }
}
