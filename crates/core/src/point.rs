//! The places in an agent's turn where hooks may listen, and what each place lets them do.

use crate::word::words;

words! {
    /// A place in the turn. The names are those of hook files, audit rows and logs.
    pub enum Point("point") {
        /// A session begins; once.
        SessionStart = "session_start",
        /// What the user wrote is about to enter the conversation.
        UserPromptSubmit = "user_prompt_submit",
        /// A message was added to the history (JSON hooks with target `chat`).
        Message = "message",
        /// A piece of the answer arrived (JSON hooks with target `stream`).
        Chunk = "chunk",
        /// A tool is about to run.
        PreToolUse = "pre_tool_use",
        /// A tool ran and gave a result.
        PostToolUse = "post_tool_use",
        /// A tool ran and failed, or could not run.
        ToolError = "tool_error",
        /// The answer is complete and about to be delivered.
        PreResponse = "pre_response",
        /// The turn is over.
        Stop = "stop",
        /// The session is over; once.
        SessionEnd = "session_end",
        /// A sub-agent is about to start.
        SubagentStart = "subagent_start",
        /// A sub-agent ended.
        SubagentStop = "subagent_stop",
    }
}

/// What the caller of a point waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Waits for a verdict; the first block ends the chain.
    Gate,
    /// Waits and collects additions to the answer.
    Shape,
    /// Never waits for a handler.
    Watch,
}

impl Point {
    /// The stage of this point (DESIGN: three stages, three calls).
    pub fn stage(self) -> Stage {
        match self {
            Point::UserPromptSubmit | Point::PreToolUse | Point::SubagentStart => Stage::Gate,
            Point::PreResponse => Stage::Shape,
            Point::SessionStart
            | Point::Message
            | Point::Chunk
            | Point::PostToolUse
            | Point::ToolError
            | Point::Stop
            | Point::SessionEnd
            | Point::SubagentStop => Stage::Watch,
        }
    }
}
