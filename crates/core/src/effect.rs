//! What a firing hook asks of the door. Core only says it; the door does it.

use crate::event::Role;
use crate::word::words;
use std::sync::Arc;

words! {
    /// The level of a log line.
    pub enum Level("level") {
        /// Plain.
        Log = "log",
        /// Needs attention.
        Warn = "warn",
        /// Plain.
        Info = "info",
        /// Only shown when asked for.
        Debug = "debug",
    }
}

/// One wish of one firing hook, in the order in which it was made.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// The hook that made it.
    pub hook: HookName,
    /// What it asks for.
    pub kind: EffectKind,
}

/// A hook as people name it: its label, or the place it was written at.
pub type HookName = Arc<str>;

/// What is asked for.
#[derive(Debug, Clone, PartialEq)]
pub enum EffectKind {
    /// Nothing: it says that the hook fired, before all it asks for.
    Fired,
    /// Print this line.
    Log {
        /// At this level.
        level: Level,
        /// The line; may hold line breaks.
        text: String,
    },
    /// Put this message into the queue; it joins the next request with `origin: hook`.
    Queue {
        /// Who speaks in it.
        role: Role,
        /// Its text.
        content: String,
    },
    /// Drop the current response.
    Interrupt {
        /// Then ask again.
        resend: bool,
    },
    /// Ask again once the current response is complete.
    Resend,
    /// Let the matched text not reach the reader: this stands in its place. Which text that is, the door asks the
    /// session ([`Session::take_redactions`](crate::session::Session::take_redactions)); a door that has shown the
    /// text already can only drop the response.
    Redact {
        /// What stands in its place.
        with: String,
    },
    /// Do not run the tool; only before one runs.
    Block {
        /// For the model and the user.
        reason: String,
    },
}
