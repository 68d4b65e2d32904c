//! All patterns of a point over a whole text.

use std::sync::Arc;

use super::automaton::{SET_CACHE, of_set, start};
use super::shard::{SHARDS, Shard, Shards};
use super::{Pattern, PatternError};

/// Patterns that are looked for together, in one pass over a whole text. Cheap to clone.
#[derive(Clone, Debug)]
pub struct TextSet(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    shards: Shards,
    patterns: Vec<Pattern>,
}

impl TextSet {
    /// Joins patterns; their places in the list are their indexes.
    ///
    /// # Errors
    ///
    /// When the patterns together are too large.
    pub fn new(patterns: &[&Pattern]) -> Result<Self, PatternError> {
        let dfa = of_set(patterns, SET_CACHE)?;
        let patterns = patterns.iter().map(|&pattern| pattern.clone()).collect();
        Ok(Self(Arc::new(Inner { shards: Shards::new(dfa, SHARDS), patterns })))
    }

    /// How many patterns the set has.
    pub fn len(&self) -> usize {
        self.0.patterns.len()
    }

    /// Whether the set has no patterns.
    pub fn is_empty(&self) -> bool {
        self.0.patterns.is_empty()
    }

    /// The indexes of the patterns that match somewhere in the text, ascending. What was in `hits` is dropped first.
    pub fn matches_into(&self, text: &str, hits: &mut Vec<usize>) {
        hits.clear();
        if self.is_empty() {
            return;
        }
        if self.pass(&mut self.0.shards.lock_any(), text, hits).is_none() {
            hits.extend(0..self.len());
            hits.retain(|&index| self.pattern_matches(index, text));
        }
        hits.sort_unstable();
        hits.dedup();
        hits.retain(|&index| !self.may_split_characters(index) || self.pattern_matches(index, text));
    }

    /// Fills the caches with the states that ordinary text needs, so that the first real text need not.
    pub fn warm(&self) {
        let mut hits = Vec::new();
        self.0.shards.warm(|shard| {
            self.pass(shard, super::stream_set::ORDINARY_TEXT, &mut hits);
        });
    }

    fn pass(&self, shard: &mut Shard, text: &str, hits: &mut Vec<usize>) -> Option<()> {
        let (dfa, cache) = (&self.0.shards.dfa, &mut shard.cache);
        let mut state = start(dfa, cache, None)?;
        let mut last = None;
        for &byte in text.as_bytes() {
            state = dfa.next_state(cache, state, byte).ok()?;
            if !state.is_tagged() {
                continue;
            }
            if state.is_match() {
                // A text often stays in one matching state: `key.*` matches at each further byte.
                let here = Some((state, cache.clear_count()));
                if last != here {
                    last = here;
                    let found = (0..dfa.match_len(cache, state))
                        .map(|n| dfa.match_pattern(cache, state, n).as_usize());
                    hits.extend(found);
                    self.thin(hits);
                }
            } else if state.is_dead() {
                return Some(());
            }
        }
        state = dfa.next_eoi_state(cache, state).ok()?;
        if state.is_match() {
            hits.extend(
                (0..dfa.match_len(cache, state)).map(|n| dfa.match_pattern(cache, state, n).as_usize()),
            );
        }
        Some(())
    }

    /// Keeps the list of hits short in a text with many.
    fn thin(&self, hits: &mut Vec<usize>) {
        if hits.len() > self.len() * 2 + 64 {
            hits.sort_unstable();
            hits.dedup();
        }
    }

    fn pattern_matches(&self, index: usize, text: &str) -> bool {
        self.0.patterns.get(index).is_some_and(|pattern| pattern.find(text).is_some())
    }

    fn may_split_characters(&self, index: usize) -> bool {
        self.0.patterns.get(index).is_some_and(Pattern::may_split_characters)
    }
}
