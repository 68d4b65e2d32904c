//! Why a pattern was refused.

use std::fmt;

/// A pattern that cannot be used: what was found, what is allowed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PatternError {
    /// What was found and what is allowed, one sentence in lower case.
    pub reason: String,
    /// What to write instead, where we know it.
    pub hint: Option<String>,
    /// Byte offset in the source of what is wrong, where there is one place.
    pub at: Option<usize>,
}

impl PatternError {
    pub(super) fn new(at: usize, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None, at: Some(at) }
    }

    pub(super) fn anywhere(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), hint: None, at: None }
    }

    pub(super) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.reason)?;
        if let Some(at) = self.at {
            write!(out, " (at byte {at})")?;
        }
        if let Some(hint) = &self.hint {
            write!(out, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for PatternError {}
