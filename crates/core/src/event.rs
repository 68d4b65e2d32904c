//! One occurrence of a point, as hooks see it. Events borrow from the caller: looking at one copies nothing.
//!
//! This file sees no other part of the engine; everything may see this file.

use crate::word::words;
use serde_json::Value;

words! {
    /// Who speaks in a message.
    pub enum Role("role") {
        /// The user.
        User = "user",
        /// The model's answer.
        Assistant = "assistant",
        /// The result of a tool.
        Tool = "tool",
        /// The model's thoughts.
        Reasoning = "reasoning",
    }
}

words! {
    /// Where a message came from.
    pub enum Origin("origin") {
        /// The user, or the application in the user's name.
        User = "user",
        /// The model.
        Model = "model",
        /// A tool that ran.
        Tool = "tool",
        /// A hook's `queue-message`. Chat hooks do not see such messages.
        Hook = "hook",
        /// Hookgate itself, such as the result of a call that was not run.
        System = "system",
    }
}

words! {
    /// The kind of a piece of a streamed answer.
    pub enum ChunkKind("chunk type") {
        /// Text of the answer.
        Content = "content",
        /// Text of the model's thoughts.
        Reasoning = "reasoning",
        /// A piece of a tool call's arguments.
        ToolCallDelta = "tool_call_delta",
        /// The end of the answer.
        Finish = "finish",
    }
}

words! {
    /// The moment of a tool's run at which a JSON hook listens.
    pub enum ToolMoment("event") {
        /// Before the tool runs.
        Before = "before",
        /// After it gave a result.
        After = "after",
        /// After it failed.
        Error = "error",
    }
}

/// A message that enters the history.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: &'a str,
    /// Where it came from.
    pub origin: Origin,
}

/// A piece of a streamed answer.
#[derive(Debug, Clone, Copy)]
pub enum Chunk<'a> {
    /// Text of the answer.
    Content(&'a str),
    /// Text of the model's thoughts.
    Reasoning(&'a str),
    /// A piece of a tool call.
    ToolCallDelta {
        /// Which call of this answer the piece belongs to, from 0.
        index: u32,
        /// The call's id, if it is known by now.
        id: Option<&'a str>,
        /// The piece of the arguments' JSON text.
        text: &'a str,
    },
    /// The end of the answer.
    Finish {
        /// Why it ended, in the provider-neutral word: `stop`, `length`, `tool_calls`, `content_filter`, or
        /// the provider's own.
        reason: &'a str,
    },
}

impl<'a> Chunk<'a> {
    /// The kind, as a hook's `chunks` names it.
    pub fn kind(&self) -> ChunkKind {
        match self {
            Chunk::Content(_) => ChunkKind::Content,
            Chunk::Reasoning(_) => ChunkKind::Reasoning,
            Chunk::ToolCallDelta { .. } => ChunkKind::ToolCallDelta,
            Chunk::Finish { .. } => ChunkKind::Finish,
        }
    }

    /// The text; a finish has none.
    pub fn text(&self) -> Option<&'a str> {
        match self {
            Chunk::Content(text) | Chunk::Reasoning(text) | Chunk::ToolCallDelta { text, .. } => Some(text),
            Chunk::Finish { .. } => None,
        }
    }
}

/// A moment of a tool's run.
#[derive(Debug, Clone, Copy)]
pub struct ToolRun<'a> {
    /// The tool's name.
    pub name: &'a str,
    /// The arguments: the parsed value, or the raw text as a string where it was not JSON.
    pub args: &'a Value,
    /// How far it got.
    pub outcome: ToolOutcome<'a>,
}

/// How far a tool's run got.
#[derive(Debug, Clone, Copy)]
pub enum ToolOutcome<'a> {
    /// It is about to run.
    Before,
    /// It gave this result.
    Result(&'a Value),
    /// It failed with this text.
    Error(&'a str),
}

impl ToolRun<'_> {
    /// The moment, as a hook's `event` names it.
    pub fn moment(&self) -> ToolMoment {
        match self.outcome {
            ToolOutcome::Before => ToolMoment::Before,
            ToolOutcome::Result(_) => ToolMoment::After,
            ToolOutcome::Error(_) => ToolMoment::Error,
        }
    }
}

/// An event that is only watched: there is no verdict to wait for.
#[derive(Debug, Clone, Copy)]
pub enum WatchEvent<'a> {
    /// A message entered the history.
    Message(Message<'a>),
    /// A piece of the answer arrived.
    Chunk(Chunk<'a>),
    /// A tool is about to run, ran, or failed.
    Tool(ToolRun<'a>),
}
