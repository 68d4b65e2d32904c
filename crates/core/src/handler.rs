//! What a lifecycle hook runs: as written, and the trait that the crates which can run it implement.

use crate::facts::Facts;
use crate::future::BoxFuture;
use crate::word::{Word, words};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A lifecycle hook's handler with its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct HandlerSpec {
    /// What to run.
    pub kind: HandlerKind,
    /// How long it may take.
    pub timeout: Duration,
    /// What a missing verdict counts as.
    pub on_timeout: Fallback,
    /// What a fault counts as; usually the same.
    pub on_error: Fallback,
    /// How its addition is delivered, at pre_response.
    pub mode: Mode,
    /// At pre_response: when rather no answer goes out than one without this hook's addition.
    pub withholds: Withholds,
}

/// When an answer is withheld because a hook at pre_response added nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Withholds {
    /// When the hook was late (a written `on_timeout: block`).
    pub late: bool,
    /// When it failed, or said block (a written `on_error: block`, or `on_timeout: block` without an `on_error`).
    pub failed: bool,
}

words! {
    /// What a hook without a verdict counts as.
    pub enum Fallback("outcome") {
        /// Stop it.
        Block = "block",
        /// Let it through, with a warning.
        Allow = "allow",
    }
}

words! {
    /// How an addition to an answer is delivered.
    pub enum Mode("mode") {
        /// Joined to the answer.
        Append = "append",
        /// As a message of its own.
        Send = "send",
    }
}

words! {
    /// The written types of handlers.
    pub enum HandlerType("handler type") {
        /// JavaScript in a sandbox.
        Script = "script",
        /// A local program.
        Command = "command",
        /// A POST to an endpoint.
        Http = "http",
        /// A question to a model.
        Prompt = "prompt",
    }
}

/// A handler with its fields.
#[derive(Debug, Clone, PartialEq)]
pub enum HandlerKind {
    /// JavaScript in a sandbox.
    Script {
        /// Where the text is.
        text: ScriptText,
        /// Memory limit in MiB.
        memory_mb: Option<u64>,
    },
    /// A local program.
    Command {
        /// What to start.
        start: CommandStart,
        /// Names of environment variables that it may see.
        env: Vec<String>,
        /// Its working directory.
        cwd: Option<String>,
    },
    /// A POST to an endpoint.
    Http {
        /// Where.
        url: HttpUrl,
        /// What is posted, with `{{paths}}` into the event; none: the event itself.
        body: Option<Value>,
        /// Further headers.
        headers: BTreeMap<String, String>,
        /// The environment variable that holds the signing secret.
        secret_env: Option<String>,
        /// May the address be private?
        allow_private: bool,
    },
    /// A question to a model.
    Prompt {
        /// The policy in words.
        prompt: String,
        /// Which model.
        model: Option<String>,
        /// How many questions a turn may cost.
        max_per_turn: Option<u64>,
    },
    /// Part of the program: no text can name it.
    Builtin,
}

/// Where a script's text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptText {
    /// In the definition.
    Inline(String),
    /// In a file beside the hook file.
    File(String),
}

/// Where an http handler posts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HttpUrl {
    /// As written.
    Written(String),
    /// In this environment variable, for an address that is a secret itself.
    Env(String),
}

/// What a command handler starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandStart {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A line for the shell.
    Shell(String),
}

impl HandlerSpec {
    /// The written type; none for a handler that is part of the program.
    pub fn written_type(&self) -> Option<HandlerType> {
        match self.kind {
            HandlerKind::Script { .. } => Some(HandlerType::Script),
            HandlerKind::Command { .. } => Some(HandlerType::Command),
            HandlerKind::Http { .. } => Some(HandlerType::Http),
            HandlerKind::Prompt { .. } => Some(HandlerType::Prompt),
            HandlerKind::Builtin => None,
        }
    }

    /// What a list calls it: the written type, or `builtin`.
    pub fn type_name(&self) -> &'static str {
        self.written_type().map_or("builtin", Word::as_str)
    }
}

/// Something that can be asked about an event. It is called for one event at a time, from many tasks at once.
///
/// The engine waits for at most [`Call::within`] and then drops the future; dropping it must end whatever was
/// started for the call.
pub trait Handler: Send + Sync + std::fmt::Debug {
    /// Asks.
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>>;
}

/// One question to a handler.
#[derive(Debug, Clone, Copy)]
pub struct Call<'a> {
    /// The event.
    pub facts: &'a Facts,
    /// The event as JSON text.
    pub json: &'a str,
    /// How long the engine waits.
    pub within: Duration,
    /// The hook's key, for breakers, caches and logs.
    pub hook: &'a Arc<str>,
}

/// What a handler said, in its own words: the dispatcher judges them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// The decision's word; none where the handler said nothing about it.
    pub decision: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// What it wants to change.
    pub updated_input: Option<Map<String, Value>>,
    /// Text for the answer, at pre_response, each with the mode it asks for (none: the hook's).
    pub additions: Vec<(Option<Mode>, String)>,
    /// What it wrote to its console.
    pub console: String,
    /// Tokens that it cost.
    pub tokens: Option<u64>,
}

/// Why a handler gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It took too long.
    #[error("no answer in time")]
    Timeout,
    /// It failed.
    #[error("{detail}")]
    Failed {
        /// What kind of failure, for the reason of a block: the model and the user read it.
        why: Why,
        /// What happened, for the record. May hold secrets: it is redacted before it is kept in the open.
        detail: String,
        /// The same call may do better later: nobody was reached, or somebody had no time.
        passing: bool,
    },
}

/// A kind of failure in words that can hold nothing from outside: text of this program, and at most a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Why {
    words: &'static str,
    number: Option<i64>,
}

impl Why {
    /// Words that end in a number, such as an exit code.
    pub const fn numbered(words: &'static str, number: i64) -> Why {
        Why { words, number: Some(number) }
    }
}

impl From<&'static str> for Why {
    fn from(words: &'static str) -> Why {
        Why { words, number: None }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            Some(number) => write!(f, "{} {number}", self.words),
            None => f.write_str(self.words),
        }
    }
}

impl Fault {
    /// A failure: of which kind, and what happened.
    pub fn failed(why: impl Into<Why>, detail: impl Into<String>) -> Fault {
        Fault::Failed { why: why.into(), detail: detail.into(), passing: false }
    }

    /// The same for one that may be over later.
    pub fn passing(why: impl Into<Why>, detail: impl Into<String>) -> Fault {
        Fault::Failed { why: why.into(), detail: detail.into(), passing: true }
    }
}

impl Answer {
    /// An answer with this decision word only.
    pub fn with_decision(word: &str) -> Answer {
        Answer { decision: Some(word.to_owned()), ..Answer::default() }
    }
}
