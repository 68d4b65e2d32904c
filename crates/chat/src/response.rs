//! One answer as it arrives: the pieces put together.

use crate::message::ChatMessage;
use hookgate_core::event::{Chunk, Origin, Role};
use hookgate_llm::{Delta, Finish, FinishReason, Reasoning, ToolCall, Usage};
use std::collections::BTreeMap;

/// What has arrived of an answer.
#[derive(Debug, Default)]
pub(crate) struct Response {
    content: String,
    reasoning: String,
    signed: Vec<Reasoning>,
    calls: BTreeMap<u32, ToolCall>,
    finish: Option<Finish>,
    usage: Option<Usage>,
}

/// A complete answer.
#[derive(Debug)]
pub(crate) struct Complete {
    /// The reasoning message, if any, then the answer.
    pub(crate) messages: Vec<ChatMessage>,
    /// The calls to run.
    pub(crate) calls: Vec<ToolCall>,
    pub(crate) finish: Finish,
    pub(crate) usage: Option<Usage>,
}

impl Response {
    /// The delta as hooks see it; none for what is no chunk.
    pub(crate) fn chunk(delta: &Delta) -> Option<Chunk<'_>> {
        match delta {
            Delta::Content(text) => Some(Chunk::Content(text)),
            Delta::Reasoning(text) => Some(Chunk::Reasoning(text)),
            Delta::ToolCall { index, id, arguments, .. } => {
                Some(Chunk::ToolCallDelta { index: *index, id: id.as_deref(), text: arguments })
            }
            Delta::Finish(finish) => Some(Chunk::Finish { reason: finish.as_str() }),
            Delta::ReasoningSignature(_) | Delta::Usage(_) | Delta::Other(_) => None,
        }
    }

    /// Adds a piece.
    pub(crate) fn add(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => append(&mut self.content, text),
            Delta::Reasoning(text) => append(&mut self.reasoning, text),
            Delta::ReasoningSignature(block) => self.sign(block),
            Delta::ToolCall { index, id, name, arguments } => {
                let call = self.calls.entry(index).or_default();
                if let Some(id) = id
                    && call.id.is_empty()
                {
                    call.id = id;
                }
                append(&mut call.name, name.unwrap_or_default());
                append(&mut call.arguments, arguments);
            }
            Delta::Usage(usage) => self.usage.get_or_insert_default().merge(usage),
            Delta::Finish(finish) => self.finish = Some(finish),
            Delta::Other(_) => {}
        }
    }

    /// True once the end of the answer has been seen.
    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// The answer as messages of the history; none if its end never came.
    pub(crate) fn complete(mut self, response: u64) -> Option<Complete> {
        let finish = self.finish.take()?;
        let calls = self.finished_calls(response);
        let mut messages = Vec::new();
        if !self.reasoning.is_empty() || !self.signed.is_empty() {
            let mut thoughts = ChatMessage::new(Role::Reasoning, self.reasoning, Origin::Model);
            thoughts.reasoning = self.signed;
            messages.push(thoughts);
        }
        let mut answer = ChatMessage::new(Role::Assistant, self.content, Origin::Model);
        answer.tool_calls.clone_from(&calls);
        messages.push(answer);
        messages.iter_mut().for_each(|message| message.response = response);
        // a call in an answer that ran into a limit may be cut: its arguments are not what the model meant
        let runs = matches!(finish.reason, FinishReason::ToolCalls | FinishReason::Stop);
        let calls = if runs { calls } else { Vec::new() };
        Some(Complete { messages, calls, finish, usage: self.usage })
    }

    /// The calls in order. One without an id gets one, and an id that occurs twice is made unique: results are
    /// matched by it.
    fn finished_calls(&mut self, response: u64) -> Vec<ToolCall> {
        let mut calls: Vec<ToolCall> = Vec::new();
        for (index, mut call) in std::mem::take(&mut self.calls) {
            if call.id.is_empty() || calls.iter().any(|earlier| earlier.id == call.id) {
                call.id = format!("call-{response}-{index}");
            }
            calls.push(call);
        }
        calls
    }

    /// Keeps a provider's signature with the text that it signs: all that came since the last one.
    fn sign(&mut self, block: Reasoning) {
        let before: usize = self.signed.iter().map(|block| block.text.len()).sum();
        let text = if block.redacted.is_some() {
            String::new()
        } else {
            self.reasoning.get(before..).unwrap_or_default().to_owned()
        };
        self.signed.push(Reasoning { text, ..block });
    }
}

/// Appends, taking the text over where there is none yet.
fn append(to: &mut String, text: String) {
    if to.is_empty() { *to = text } else { to.push_str(&text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anthropic tells the tokens of the request at the head of a stream, those of the answer at its end.
    #[test]
    fn later_token_counts_add_to_earlier_ones() {
        let mut response = Response::default();
        response.add(Delta::Usage(Usage { input_tokens: Some(5), ..Usage::default() }));
        response.add(Delta::Usage(Usage { output_tokens: Some(7), ..Usage::default() }));
        let usage = response.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(5), Some(7)));
    }
}
