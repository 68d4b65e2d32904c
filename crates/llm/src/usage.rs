//! How many tokens an answer took.

use serde::{Deserialize, Serialize};

/// Token counts as far as the provider tells them.
///
/// A stream may report several times (at its head and at its end); a later report replaces the fields it has, see
/// [`Usage::merge`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request, those read from a cache included.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: Option<u64>,
    /// Tokens of the answer that were reasoning.
    pub reasoning_tokens: Option<u64>,
    /// Tokens of the request that came from the provider's cache.
    pub cached_tokens: Option<u64>,
    /// Tokens of the request that were written into the provider's cache.
    pub cache_write_tokens: Option<u64>,
}

impl Usage {
    /// Takes over every count that `later` has.
    pub fn merge(&mut self, later: Usage) {
        self.input_tokens = later.input_tokens.or(self.input_tokens);
        self.output_tokens = later.output_tokens.or(self.output_tokens);
        self.reasoning_tokens = later.reasoning_tokens.or(self.reasoning_tokens);
        self.cached_tokens = later.cached_tokens.or(self.cached_tokens);
        self.cache_write_tokens = later.cache_write_tokens.or(self.cache_write_tokens);
    }

    /// Whether the provider told nothing.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}
