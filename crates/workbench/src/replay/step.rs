//! What happened in a session, step by step, whoever wrote it down.

use hookgate_agents::call::Call;
use hookgate_core::event::{Origin, Role};
use serde_json::Value;

/// One step, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Told {
    /// The line, from 1.
    pub line: u64,
    /// The sub-agent that it happened in; none: the user's own agent.
    pub agent: Option<String>,
    /// When, as the history writes it.
    pub time: Option<String>,
    /// What.
    pub step: Step,
}

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Another session begins; the one before is over.
    Begin {
        /// Its id, if the history has one.
        session: Option<String>,
    },
    /// The user wrote this.
    Prompt(String),
    /// A piece of the answer that is arriving.
    Piece {
        /// Of the model's thoughts, not of the answer.
        is_thought: bool,
        /// The text.
        text: String,
    },
    /// The answer that is arriving asks for a tool.
    Call {
        /// The call's id.
        id: String,
        /// The call.
        call: Box<Call>,
    },
    /// The answer is whole.
    AnswerEnd,
    /// The answer was dropped: nothing of it became history.
    Void,
    /// A tool gave something.
    Result {
        /// The call's id.
        id: String,
        /// What it gave.
        outcome: Outcome,
    },
    /// A message that is none of the above entered the history, or a tool's result as the model reads it.
    Message {
        /// Who speaks.
        role: Role,
        /// Where it came from.
        origin: Origin,
        /// The text.
        text: String,
    },
}

/// What a tool gave.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// A result.
    Output(Value),
    /// A failure.
    Error(String),
}
