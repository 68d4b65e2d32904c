//! What came out for one call of an agent, and how it is said.

use serde_json::Value;

/// What the engine made of one event, before an agent's words are put to it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outcome {
    /// The ruling.
    pub word: Word,
    /// The changed input of the tool in the agent's own shape, whole.
    pub input: Option<Value>,
    /// The changed text: of the prompt, or of the answer.
    pub text: Option<String>,
    /// What the model is to be told, in order.
    pub context: Vec<String>,
}

/// The ruling of an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Word {
    /// Nobody objects. Not the same as consent: the agent's own checks go on.
    #[default]
    Nothing,
    /// No, and why. Where the thing has happened: the model is told. At the end of a turn: go on.
    Block(String),
    /// A person is to decide, and why.
    Ask(String),
}

/// What a hook process says to its agent.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Said {
    /// Standard output; nothing, or one document.
    pub stdout: String,
    /// Standard error; nothing, or the reason.
    pub stderr: String,
    /// The exit code.
    pub exit: u8,
}

impl Outcome {
    /// A block with this reason.
    pub fn block(reason: impl Into<String>) -> Outcome {
        Outcome { word: Word::Block(reason.into()), ..Outcome::default() }
    }

    /// Whether nothing needs to be said.
    pub fn is_silent(&self) -> bool {
        *self == Outcome::default()
    }

    /// The context as one text.
    pub(crate) fn joined_context(&self) -> Option<String> {
        (!self.context.is_empty()).then(|| self.context.join("\n\n"))
    }
}

impl Said {
    /// Nothing at all: no opinion.
    pub fn nothing() -> Said {
        Said::default()
    }

    /// One JSON document on a line and exit code 0.
    pub fn json(document: &Value) -> Said {
        Said { stdout: format!("{document}\n"), ..Said::default() }
    }

    /// Exit code 2 with the reason on standard error.
    pub fn refusal(reason: &str) -> Said {
        Said { stderr: reason.to_owned(), exit: 2, ..Said::default() }
    }
}
