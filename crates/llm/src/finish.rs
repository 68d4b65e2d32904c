//! Why an answer ended.

use serde::{Deserialize, Serialize};

/// Why an answer ended, read and as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// What the word means.
    pub reason: FinishReason,
    /// The provider's own word.
    pub raw: String,
}

/// What a finish means, whatever the provider calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model was done, or met a stop text.
    Stop,
    /// The token limit cut it.
    Length,
    /// It waits for tool results.
    ToolCalls,
    /// The provider withheld (part of) the answer, or the model refused.
    ContentFilter,
    /// A word this crate does not know; [`Finish::raw`] has it.
    Other,
}

/// Words of all wires. A new provider adds its own here; words never mean two things.
const WORDS: &[(&str, FinishReason)] = &[
    ("stop", FinishReason::Stop),
    ("end_turn", FinishReason::Stop),
    ("stop_sequence", FinishReason::Stop),
    ("eos", FinishReason::Stop),
    ("eos_token", FinishReason::Stop),
    ("length", FinishReason::Length),
    ("max_tokens", FinishReason::Length),
    ("model_length", FinishReason::Length),
    ("model_context_window_exceeded", FinishReason::Length),
    ("tool_calls", FinishReason::ToolCalls),
    ("tool_use", FinishReason::ToolCalls),
    ("function_call", FinishReason::ToolCalls),
    ("content_filter", FinishReason::ContentFilter),
    ("refusal", FinishReason::ContentFilter),
    ("STOP", FinishReason::Stop),
    ("MAX_TOKENS", FinishReason::Length),
    ("SAFETY", FinishReason::ContentFilter),
    ("RECITATION", FinishReason::ContentFilter),
    ("BLOCKLIST", FinishReason::ContentFilter),
    ("PROHIBITED_CONTENT", FinishReason::ContentFilter),
    ("SPII", FinishReason::ContentFilter),
    ("IMAGE_SAFETY", FinishReason::ContentFilter),
    ("LANGUAGE", FinishReason::ContentFilter),
];

impl Finish {
    /// Reads a provider's word; an unknown one is kept as [`FinishReason::Other`].
    pub fn from_word(word: impl Into<String>) -> Self {
        let raw = word.into();
        let known = WORDS.iter().find(|(name, _)| *name == raw).map(|(_, reason)| *reason);
        Finish { reason: known.unwrap_or(FinishReason::Other), raw }
    }

    /// `stop`, `length`, `tool_calls` or `content_filter`; the provider's own word for everything else.
    pub fn as_str(&self) -> &str {
        match self.reason {
            FinishReason::Other => &self.raw,
            known => known.as_str(),
        }
    }
}

impl FinishReason {
    /// `stop`, `length`, `tool_calls`, `content_filter` or `other`. [`Finish::as_str`] gives the provider's word
    /// instead of `other`.
    pub fn as_str(self) -> &'static str {
        match self {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::ToolCalls => "tool_calls",
            FinishReason::ContentFilter => "content_filter",
            FinishReason::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_words_are_read_and_unknown_ones_kept() {
        for (word, reason) in WORDS {
            assert_eq!(Finish::from_word(*word).reason, *reason);
        }
        let odd = Finish::from_word("pause_turn");
        assert_eq!((odd.reason, odd.as_str()), (FinishReason::Other, "pause_turn"));
        assert_eq!(Finish::from_word("end_turn").as_str(), "stop");
    }
}
