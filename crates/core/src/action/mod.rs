//! What JSON hooks can do. One file an action, one line in [`ActionKinds::standard`].
//!
//! An action is cheap and pure: it looks at the event and says which effects it wants. A library user adds
//! an own one with [`ActionKinds::with`].

mod block;
mod interrupt;
mod log;
mod queue_message;
mod queue_resend;
mod redact;
mod text;

pub(crate) use redact::REDACTED;
pub use text::ActionText;

use crate::define::Fields;
use crate::dispatch::Firing;
use crate::effect::Effect;
use crate::wish::Wish;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One entry of a hook's `actions`, read and checked.
pub trait Action: Send + Sync + fmt::Debug {
    /// Says what it wants done about this firing.
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>);

    /// Whether it keeps the matched text from the reader, so that a door that can must hold back what may become a
    /// match.
    fn holds(&self) -> bool {
        false
    }

    /// What it wishes of the door, for whoever compares hooks with what a door can do; none: nothing, or nothing that
    /// has a word here.
    fn wish(&self) -> Option<Wish> {
        None
    }
}

/// Reads an action's fields. Faults are noted on the fields; then the result does not matter.
pub type ReadAction = dyn Fn(&Fields<'_>) -> Option<Box<dyn Action>> + Send + Sync;

/// The actions that hook files may name.
#[derive(Clone)]
pub struct ActionKinds {
    kinds: BTreeMap<String, Kind>,
}

/// An action that may be named.
#[derive(Clone)]
pub(crate) struct Kind {
    pub(crate) read: Arc<ReadAction>,
    pub(crate) fits: Fits,
}

/// Where an action means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fits {
    /// In any hook.
    Anywhere,
    /// Only before a tool runs: it stops it.
    BeforeATool,
    /// Only where a pattern is found in a stream, by a hook that may change the answer.
    MatchInAStream,
}

impl ActionKinds {
    /// The actions of the JSON-hooks text.
    pub fn standard() -> ActionKinds {
        let mut kinds = ActionKinds { kinds: BTreeMap::new() };
        kinds = log::register(kinds);
        kinds = kinds.with("interrupt", interrupt::read);
        kinds = kinds.with("queue-message", queue_message::read);
        kinds = kinds.with("queue-resend", queue_resend::read);
        kinds = kinds.with_stopping("block", block::read);
        kinds.add("redact", Kind { read: Arc::new(redact::read), fits: Fits::MatchInAStream })
    }

    /// The same with one more (or another for the same name). `read` asks the fields for what it needs; a
    /// field that it does not ask for is reported as unknown.
    pub fn with(
        self,
        name: &str,
        read: impl Fn(&Fields<'_>) -> Option<Box<dyn Action>> + Send + Sync + 'static,
    ) -> ActionKinds {
        self.add(name, Kind { read: Arc::new(read), fits: Fits::Anywhere })
    }

    /// The same with one that stops a tool ([`EffectKind::Block`](crate::effect::EffectKind::Block)): hooks on
    /// anything but `tool` with `event: before` may not name it.
    pub fn with_stopping(
        self,
        name: &str,
        read: impl Fn(&Fields<'_>) -> Option<Box<dyn Action>> + Send + Sync + 'static,
    ) -> ActionKinds {
        self.add(name, Kind { read: Arc::new(read), fits: Fits::BeforeATool })
    }

    fn add(mut self, name: &str, kind: Kind) -> ActionKinds {
        self.kinds.insert(name.to_owned(), kind);
        self
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Kind> {
        self.kinds.get(name)
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }
}

impl Default for ActionKinds {
    fn default() -> Self {
        ActionKinds::standard()
    }
}

impl fmt::Debug for ActionKinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kinds.keys()).finish()
    }
}
