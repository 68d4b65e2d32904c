//! What a lifecycle hook runs, as written. The crates that run it know how; core only knows what was asked.

use crate::word::words;
use std::collections::BTreeMap;
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
        url: String,
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
}

/// Where a script's text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptText {
    /// In the definition.
    Inline(String),
    /// In a file beside the hook file.
    File(String),
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
    /// The written type.
    pub fn kind(&self) -> HandlerType {
        match self.kind {
            HandlerKind::Script { .. } => HandlerType::Script,
            HandlerKind::Command { .. } => HandlerType::Command,
            HandlerKind::Http { .. } => HandlerType::Http,
            HandlerKind::Prompt { .. } => HandlerType::Prompt,
        }
    }
}
