//! The conversation's state: messages, queue, and what the hooks remember. Guarded by one short lock.

use crate::message::ChatMessage;
use hookgate_core::event::{Origin, Role};
use hookgate_core::session::Session;
use hookgate_llm::ToolCall;
use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// Everything of one conversation that changes.
#[derive(Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) history: Vec<ChatMessage>,
    pub(crate) queue: VecDeque<ChatMessage>,
    pub(crate) session: Session,
    last_injected: u128,
    last_response: u64,
}

impl Conversation {
    /// A number for the next response; never 0.
    pub(crate) fn next_response(&mut self) -> u64 {
        self.last_response = self.last_response.saturating_add(1);
        self.last_response
    }

    /// An id for a tool message that answers no call: `inject-` and the time in milliseconds, made unique.
    pub(crate) fn injected_id(&mut self) -> String {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis());
        self.last_injected = now.max(self.last_injected.saturating_add(1));
        format!("inject-{}", self.last_injected)
    }

    /// Makes a message from outside the model; a tool message gets an id of its own.
    pub(crate) fn compose(&mut self, role: Role, content: String, origin: Origin) -> ChatMessage {
        let mut message = ChatMessage::new(role, content, origin);
        if role == Role::Tool {
            message.tool_call_id = Some(self.injected_id());
        }
        message
    }

    /// The first message of the history about which the gate has not been asked. It stays where it is: should the
    /// asking be cancelled, nothing is lost.
    pub(crate) fn unasked(&mut self) -> Option<&mut ChatMessage> {
        self.history.iter_mut().find(|message| message.unasked)
    }

    /// Takes that message out.
    pub(crate) fn refuse_unasked(&mut self) {
        if let Some(at) = self.history.iter().position(|message| message.unasked) {
            self.history.remove(at);
        }
    }

    /// Adds text to the answer of a response.
    pub(crate) fn append_to(&mut self, response: u64, text: &str) {
        let answers = self.history.iter_mut().rev();
        if let Some(answer) =
            answers.into_iter().find(|m| m.response == response && m.role == Role::Assistant)
        {
            answer.content.push_str(text);
        }
    }

    /// Takes a response's messages out again.
    pub(crate) fn drop_response(&mut self, response: u64) {
        self.history.retain(|message| message.response != response);
        self.session.end_response();
    }

    /// Gives every call of a response that has no result one that says why.
    pub(crate) fn settle_calls(&mut self, response: u64, why: &str) {
        let answered = |history: &[ChatMessage], call: &ToolCall| {
            history.iter().any(|m| m.response == response && m.tool_call_id.as_ref() == Some(&call.id))
        };
        let open: Vec<ToolCall> = self
            .history
            .iter()
            .filter(|message| message.response == response)
            .flat_map(|message| &message.tool_calls)
            .filter(|call| !answered(&self.history, call))
            .cloned()
            .collect();
        for call in open {
            let result = ChatMessage::tool_result(&call, format!("not run: {why}"), true, Origin::System);
            self.history.push(ChatMessage { response, ..result });
        }
    }
}
