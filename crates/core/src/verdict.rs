//! What hooks said, and what follows. A *decision* is one hook's, for the record; a *verdict* is the chain's, for
//! the agent.

use crate::effect::HookName;
use crate::handler::Why;
use crate::point::Point;
use crate::word::words;
use serde_json::Value;
use std::time::Duration;

words! {
    /// How one hook's run ended.
    pub enum Decision("decision") {
        /// It said: go on.
        Allow = "allow",
        /// It said: stop.
        Block = "block",
        /// It failed, or its answer was none.
        Error = "error",
        /// It did not answer in time.
        Timeout = "timeout",
    }
}

/// What a chain of hooks decided.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// Nobody stopped it.
    Allow,
    /// Somebody stopped it.
    Block(Block),
}

/// Who stopped it, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// The hook.
    pub by: HookName,
    /// For the model and the user; names the hook.
    pub reason: String,
    /// What lies behind it.
    pub cause: Cause,
}

impl Block {
    /// A block that a hook decided; model and user read its name with the reason.
    pub fn by_hook(hook: HookName, reason: &str) -> Block {
        let reason = Some(reason).filter(|reason| !reason.trim().is_empty()).unwrap_or("no reason given");
        Block { reason: format!("blocked by hook {hook}: {reason}"), by: hook, cause: Cause::Decision }
    }
}

words! {
    /// Why a chain ended in a block.
    pub enum Cause("cause") {
        /// A hook decided so.
        Decision = "decision",
        /// A hook did not answer in time.
        Timeout = "timeout",
        /// A hook failed.
        Error = "error",
        /// The chain's own time was used up, or it was nested too deep.
        Limit = "limit",
        /// The record could not be written.
        Record = "record",
    }
}

/// The result of asking a gate.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "a verdict that nobody looks at guards nothing"]
pub struct Ruling {
    /// Allow or block.
    pub verdict: Verdict,
    /// The changed members of the input, each whole; empty if nothing changed or the verdict is a block.
    pub updated: Vec<(String, Value)>,
    /// What ran, and what was odd.
    pub trace: Trace,
}

impl Ruling {
    /// Nobody was asked.
    pub fn allow() -> Ruling {
        Ruling { verdict: Verdict::Allow, updated: Vec::new(), trace: Trace::default() }
    }
}

/// The additions to an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Additions {
    /// To be joined to the answer, in order.
    pub append: Vec<String>,
    /// To be delivered as messages of their own, in order.
    pub send: Vec<String>,
    /// Set if a hook that may not be missing gave no answer: the response must not go out.
    pub withheld: Option<Block>,
    /// What ran, and what was odd.
    pub trace: Trace,
}

/// The way of one event through its hooks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// The hooks that ran, in order.
    pub ran: Vec<Ran>,
    /// What was odd but stopped nothing.
    pub warnings: Vec<Warning>,
}

/// One hook that ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    /// Which.
    pub hook: HookName,
    /// Where.
    pub point: Point,
    /// How it ended.
    pub decision: Decision,
    /// The kind of failure, of one that was late or failed.
    pub why: Option<Why>,
    /// How long it took.
    pub took: Duration,
    /// What it wrote to its console, for people who look for a fault.
    pub console: String,
    /// Why it said no, where it said so: a door whose host can still act on a watched event needs the words.
    pub reason: Option<String>,
}

/// Something odd.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// Which hook.
    pub hook: HookName,
    /// What kind.
    pub code: WarningCode,
    /// In words.
    pub text: String,
}

words! {
    /// The kinds of warning.
    pub enum WarningCode("warning") {
        /// A hook that may open did not answer in time, and opened.
        TimeoutAllowed = "timeout_allowed",
        /// A hook that may open failed, and opened.
        ErrorAllowed = "error_allowed",
        /// A block where nothing can be blocked.
        BlockIgnored = "block_ignored",
        /// A condition could not be answered; the hook ran.
        IfExprFailed = "if_expr_failed",
        /// A change by a hook that may not change anything.
        MutationStripped = "mutation_stripped",
        /// A change of a field that is not on the hook's list.
        MutationFieldDropped = "mutation_field_dropped",
        /// A change of something that is past.
        MutationIgnored = "mutation_ignored",
        /// A watching hook could not do its work now; it is tried again.
        Postponed = "postponed",
        /// A watching hook could not do its work and is not tried again by itself.
        DeadLetter = "dead_letter",
    }
}

impl Ruling {
    /// The block, if it is one.
    pub fn block(&self) -> Option<&Block> {
        match &self.verdict {
            Verdict::Allow => None,
            Verdict::Block(block) => Some(block),
        }
    }
}
