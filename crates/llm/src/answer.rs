//! A whole answer, folded from its deltas.
//!
//! For callers that do not need the pieces: a prompt handler, a test, a summary at the end of a stream.

use futures_util::StreamExt;

use crate::{Delta, DeltaStream, Error, Finish, Message, Reasoning, Role, ToolCall, Usage};

/// What came of a request so far.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The assistant's message: text, reasoning, tool calls.
    pub message: Message,
    /// Why it ended; `None` while it has not.
    pub finish: Option<Finish>,
    /// Token counts as far as they were told.
    pub usage: Usage,
    /// What was not understood, as in [`Delta::Other`].
    pub other: Vec<String>,
    block_open: bool,
    /// The stream's index of each of `message.tool_calls`, ascending.
    indexes: Vec<u32>,
}

impl Default for Answer {
    fn default() -> Self {
        Answer {
            message: Message::new(Role::Assistant, ""),
            finish: None,
            usage: Usage::default(),
            other: Vec::new(),
            block_open: false,
            indexes: Vec::new(),
        }
    }
}

impl Answer {
    /// Reads a stream to its end.
    ///
    /// # Errors
    /// The first error of the stream; what came before it is lost. Fold with [`Answer::push`] to keep it.
    pub async fn collect(mut stream: DeltaStream) -> Result<Answer, Error> {
        let mut answer = Answer::default();
        while let Some(delta) = stream.next().await {
            answer.push(delta?);
        }
        Ok(answer)
    }

    /// Reads a stream to its end, unless the answer gets longer than this many bytes.
    ///
    /// # Errors
    /// As [`Answer::collect`], and [`Error::TooLarge`].
    pub async fn collect_at_most(mut stream: DeltaStream, bytes: usize) -> Result<Answer, Error> {
        let (mut answer, mut left) = (Answer::default(), bytes);
        while let Some(delta) = stream.next().await {
            let delta = delta?;
            left = left.checked_sub(size(&delta)).ok_or(Error::TooLarge { limit: bytes })?;
            answer.push(delta);
        }
        Ok(answer)
    }

    /// Adds one piece. `message` is up to date afterwards.
    pub fn push(&mut self, delta: Delta) {
        match delta {
            Delta::Content(text) => self.message.content.push_str(&text),
            Delta::Reasoning(text) => self.edit_block(|block| block.text.push_str(&text)),
            Delta::ReasoningSignature(mark) => self.close_block(mark),
            Delta::ToolCall { index, id, name, arguments } => self.call(index, id, name, &arguments),
            Delta::Usage(usage) => self.usage.merge(usage),
            Delta::Finish(finish) => self.finish = Some(finish),
            Delta::Other(text) => self.other.push(text),
        }
    }

    /// Edits the open block of reasoning, opening one if there is none.
    fn edit_block(&mut self, edit: impl FnOnce(&mut Reasoning)) {
        if !std::mem::replace(&mut self.block_open, true) {
            self.message.reasoning.push(Reasoning::default());
        }
        if let Some(block) = self.message.reasoning.last_mut() {
            edit(block);
        }
    }

    fn close_block(&mut self, mark: Reasoning) {
        if mark.redacted.is_some() {
            self.message.reasoning.push(mark);
        } else {
            self.edit_block(|block| block.signature = mark.signature);
        }
        self.block_open = false;
    }

    fn call(&mut self, index: u32, id: Option<String>, name: Option<String>, arguments: &str) {
        let at = self.indexes.partition_point(|known| *known < index);
        if self.indexes.get(at) != Some(&index) {
            self.indexes.insert(at, index);
            self.message.tool_calls.insert(at, ToolCall::default());
        }
        if let Some(call) = self.message.tool_calls.get_mut(at) {
            if let Some(id) = id {
                call.id = id;
            }
            call.name.push_str(name.as_deref().unwrap_or_default());
            call.arguments.push_str(arguments);
        }
    }
}

/// What a piece takes in memory, roughly; no piece takes nothing.
fn size(delta: &Delta) -> usize {
    let text = match delta {
        Delta::Content(text) | Delta::Reasoning(text) | Delta::Other(text) => text.len(),
        Delta::ReasoningSignature(mark) => [&mark.signature, &mark.redacted]
            .into_iter()
            .flatten()
            .fold(mark.text.len(), |sum, text| sum.saturating_add(text.len())),
        Delta::ToolCall { id, name, arguments, .. } => {
            [id, name].into_iter().flatten().fold(arguments.len(), |sum, text| sum.saturating_add(text.len()))
        }
        Delta::Usage(_) | Delta::Finish(_) => 0,
    };
    text.saturating_add(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: u32, id: Option<&str>, name: Option<&str>, arguments: &str) -> Delta {
        Delta::ToolCall {
            index,
            id: id.map(Into::into),
            name: name.map(Into::into),
            arguments: arguments.into(),
        }
    }

    #[test]
    fn pieces_become_one_message() {
        let mut answer = Answer::default();
        let signed = |text: &str| Reasoning { signature: Some(text.into()), ..Reasoning::default() };
        for delta in [
            Delta::Reasoning("a".into()),
            Delta::Reasoning("b".into()),
            Delta::ReasoningSignature(signed("s1")),
            Delta::ReasoningSignature(Reasoning { redacted: Some("r".into()), ..Reasoning::default() }),
            Delta::Reasoning("c".into()),
            Delta::Content("x".into()),
            call(1, Some("i1"), Some("two"), ""),
            call(0, None, Some("one"), "{"),
            call(1, None, None, "[]"),
            call(0, Some("i0"), None, "}"),
        ] {
            answer.push(delta);
        }
        let blocks: Vec<_> =
            answer.message.reasoning.iter().map(|b| (b.text.as_str(), b.signature.as_deref())).collect();
        assert_eq!(blocks, [("ab", Some("s1")), ("", None), ("c", None)]);
        let calls: Vec<_> = answer
            .message
            .tool_calls
            .iter()
            .map(|c| (c.id.as_str(), c.name.as_str(), c.arguments.as_str()))
            .collect();
        assert_eq!(calls, [("i0", "one", "{}"), ("i1", "two", "[]")]);
    }
}
