//! All patterns of a channel over texts that arrive in pieces.

use std::sync::Arc;

use super::automaton::{SET_CACHE, of_set, start};
use super::cursor::StreamCursor;
use super::shard::{SHARDS, Shards};
use super::{Pattern, PatternError};

/// English prose, code and JSON, for warming up.
pub(super) const ORDINARY_TEXT: &str = "The quick brown fox jumps over the lazy dog. Let's look at the code: it reads \
    the configuration file, then builds a list of routes and returns them, sorted by cost (about 1,234 of 56,789).\n\n\
    ```rust\nlet total = items.iter().map(|x| x.price * x.qty).sum::<u64>(); // caf\u{e9} \u{2014} done\n```\n\
    {\"command\": \"ls -la /usr/local/bin\", \"timeout_ms\": 2000, \"path\": null}\nI think we should check the following \
    before we continue: 1. the user's account; 2. which files were changed & why? See https://example.com/a?b=c#d!";

/// Patterns that are looked for together in texts that arrive in pieces. Cheap to clone, shared by all streams.
#[derive(Clone, Debug)]
pub struct StreamSet {
    pub(super) core: Arc<Core>,
}

#[derive(Debug)]
pub(super) struct Core {
    pub(super) shards: Shards,
    pub(super) patterns: Vec<Pattern>,
}

impl StreamSet {
    /// Joins patterns; their places in the list are their indexes.
    ///
    /// # Errors
    ///
    /// When the patterns together are too large.
    pub fn new(patterns: &[&Pattern]) -> Result<Self, PatternError> {
        Self::with_limits(patterns, SHARDS, SET_CACHE)
    }

    pub(super) fn with_limits(
        patterns: &[&Pattern],
        shards: usize,
        cache: usize,
    ) -> Result<Self, PatternError> {
        let shards = Shards::new(of_set(patterns, cache)?, shards);
        let patterns = patterns.iter().map(|&pattern| pattern.clone()).collect();
        Ok(Self { core: Arc::new(Core { shards, patterns }) })
    }

    /// How many patterns the set has.
    pub fn len(&self) -> usize {
        self.core.patterns.len()
    }

    /// Whether the set has no patterns.
    pub fn is_empty(&self) -> bool {
        self.core.patterns.is_empty()
    }

    /// A cursor at the beginning of a text.
    pub fn cursor(&self) -> StreamCursor {
        StreamCursor::new(self)
    }

    /// Fills the caches with the states that ordinary text needs, so that the first real text need not. Takes some
    /// milliseconds with a thousand patterns: call it in the background after loading definitions.
    pub fn warm(&self) {
        let dfa = &self.core.shards.dfa;
        self.core.shards.warm(|shard| {
            let Some(mut state) = start(dfa, &mut shard.cache, None) else { return };
            for &byte in ORDINARY_TEXT.as_bytes() {
                let Ok(next) = dfa.next_state(&mut shard.cache, state, byte) else { return };
                state = next;
            }
        });
    }
}
