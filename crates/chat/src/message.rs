//! One message of the history.

use hookgate_core::event::{Origin, Role};
use hookgate_llm::{Reasoning, ToolCall};
use serde::Serialize;

/// One message, as the history keeps it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChatMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
    /// Where it came from.
    pub origin: Origin,
    /// The calls that an assistant message asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// A tool message that tells of a failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The provider's own form of a reasoning message, to be sent back unchanged in a tool round.
    #[serde(skip)]
    pub reasoning: Vec<Reasoning>,
    /// The response it belongs to, so that this can be dropped whole; 0 for none.
    #[serde(skip)]
    pub(crate) response: u64,
    /// A user's message about which the gate has not been asked yet.
    #[serde(skip)]
    pub(crate) unasked: bool,
}

impl ChatMessage {
    /// A message with only a text.
    pub fn new(role: Role, content: impl Into<String>, origin: Origin) -> ChatMessage {
        ChatMessage {
            role,
            content: content.into(),
            origin,
            tool_calls: Vec::new(),
            tool_call_id: None,
            is_error: false,
            reasoning: Vec::new(),
            response: 0,
            unasked: role == Role::User && origin == Origin::User,
        }
    }

    /// The result of a tool call.
    pub(crate) fn tool_result(
        call: &ToolCall,
        content: String,
        is_error: bool,
        origin: Origin,
    ) -> ChatMessage {
        ChatMessage {
            tool_call_id: Some(call.id.clone()),
            is_error,
            ..ChatMessage::new(Role::Tool, content, origin)
        }
    }
}
