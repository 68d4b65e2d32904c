//! The history as a request that every provider accepts.
//!
//! Providers refuse a tool result without its call, and a call whose results do not follow at once. So results
//! are moved behind their call, a call without a result gets one that says so, and a result without a call (a
//! hook's or an application's) gets a synthetic call of the tool `inject`.

use crate::message::ChatMessage;
use hookgate_core::event::Role;
use hookgate_llm::{Message, Reasoning, ToolCall};

/// The name of the synthetic tool that a queued tool message seems to come from.
pub(crate) const INJECTED_TOOL: &str = "inject";

/// Maps a history, with the system prompt in front.
pub(crate) fn messages(system: Option<&str>, history: &[ChatMessage]) -> Vec<Message> {
    let mut out: Vec<Message> = system.map(Message::system).into_iter().collect();
    let mut reasoning: Vec<Reasoning> = Vec::new();
    let mut placed: Vec<usize> = Vec::new();
    for (at, message) in history.iter().enumerate() {
        match message.role {
            Role::User => out.push(Message::user(&message.content)),
            Role::Reasoning if belongs_to_answer(history, at) => reasoning = thoughts(message),
            // thoughts that no answer follows are put as what the assistant said: every wire has a place for that
            Role::Reasoning => {
                out.push(Message::assistant(format!("<thinking>\n{}\n</thinking>", message.content)));
            }
            Role::Assistant => {
                let mut answer = Message::assistant_calls(&message.content, message.tool_calls.clone());
                answer.reasoning = std::mem::take(&mut reasoning);
                out.push(answer);
                for call in &message.tool_calls {
                    out.push(result_of(call, history, at, &mut placed));
                }
            }
            Role::Tool if placed.contains(&at) => {}
            Role::Tool => out.extend(injected(message, at)),
        }
    }
    out
}

fn belongs_to_answer(history: &[ChatMessage], at: usize) -> bool {
    let next = history.get(at.saturating_add(1));
    let this = history.get(at);
    next.zip(this).is_some_and(|(next, this)| {
        next.role == Role::Assistant && next.response == this.response && this.response != 0
    })
}

fn thoughts(message: &ChatMessage) -> Vec<Reasoning> {
    if message.reasoning.is_empty() {
        vec![Reasoning { text: message.content.clone(), ..Reasoning::default() }]
    } else {
        message.reasoning.clone()
    }
}

/// The result of a call, from wherever it stands behind it.
fn result_of(call: &ToolCall, history: &[ChatMessage], after: usize, placed: &mut Vec<usize>) -> Message {
    let found = history.iter().enumerate().skip(after).find(|(at, message)| {
        message.role == Role::Tool && message.tool_call_id.as_ref() == Some(&call.id) && !placed.contains(at)
    });
    match found {
        Some((at, message)) => {
            placed.push(at);
            let mut result = Message::tool(&call.id, &message.content);
            result.is_error = message.is_error;
            result
        }
        None => Message::tool_error(&call.id, "not run: no result is known"),
    }
}

fn injected(message: &ChatMessage, at: usize) -> [Message; 2] {
    let id = message.tool_call_id.clone().unwrap_or_else(|| format!("inject-{at}"));
    let call = ToolCall { id: id.clone(), name: INJECTED_TOOL.into(), arguments: "{}".into() };
    [Message::assistant_calls("", vec![call]), Message::tool(id, &message.content)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use hookgate_core::event::Origin;

    fn call(id: &str) -> ToolCall {
        ToolCall { id: id.into(), name: "t".into(), arguments: "{}".into() }
    }

    fn line(message: &Message) -> String {
        let calls: Vec<&str> = message.tool_calls.iter().map(|call| call.id.as_str()).collect();
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let thought: Vec<&str> = message.reasoning.iter().map(|r| r.text.as_str()).collect();
        format!("{}:{}{}{}{}", message.role.as_str(), message.content, calls.join("+"), id, thought.concat())
    }

    fn check(history: &[ChatMessage], want: &[&str]) {
        let got: Vec<String> = messages(None, history).iter().map(line).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn results_follow_their_call() {
        let mut asks = ChatMessage::new(Role::Assistant, "", Origin::Model);
        asks.tool_calls = vec![call("a"), call("b")];
        let result = ChatMessage::tool_result(&call("b"), "B".into(), false, Origin::Tool);
        let user = ChatMessage::new(Role::User, "meanwhile", Origin::User);
        check(
            &[asks, user, result],
            &["assistant:a+b", "tool:not run: no result is knowna", "tool:Bb", "user:meanwhile"],
        );
    }

    #[test]
    fn a_result_without_call_gets_one() {
        let mut lone = ChatMessage::new(Role::Tool, "x", Origin::Hook);
        lone.tool_call_id = Some("inject-1".into());
        check(&[lone], &["assistant:inject-1", "tool:xinject-1"]);
    }

    #[test]
    fn thoughts_go_with_their_answer_only() {
        let mut thought = ChatMessage::new(Role::Reasoning, "hm", Origin::Model);
        thought.response = 1;
        let mut answer = ChatMessage::new(Role::Assistant, "ok", Origin::Model);
        answer.response = 1;
        let lone = ChatMessage::new(Role::Reasoning, "queued", Origin::Hook);
        check(&[thought, answer, lone], &["assistant:okhm", "assistant:<thinking>\nqueued\n</thinking>"]);
    }
}
