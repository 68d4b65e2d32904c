//! What `hookgate chat --json` prints (docs/chat-events.md), one run or several after each other.
//!
//! The log has the chunks as they came, so hooks see the same pieces again. A chunk on which a hook interrupted stands
//! in no log, and neither does the call that a hook stopped reach `post_tool_use` here, as it did not then.

use super::Reader;
use super::text::{arguments, take, take_text};
use crate::replay::step::{Outcome, Step, Told};
use hookgate_agents::call::Call;
use hookgate_core::event::{Origin, Role};
use hookgate_core::word::Word;
use serde_json::Value;
use std::collections::VecDeque;

#[derive(Default)]
pub(super) struct ChatLog {
    begun: bool,
    /// Pieces of the answer came, of the thoughts, of the text.
    pieces: (bool, bool),
    /// Calls of the last answer without a result: name and id.
    open: VecDeque<(String, String)>,
    /// The failure that comes next is a block: the tool did not run.
    stopped: bool,
    n_calls: u64,
}

impl Reader for ChatLog {
    fn line(&mut self, number: u64, mut line: Value, told: &mut Vec<Told>) -> Result<(), String> {
        let kind = take_text(&mut line, "type").ok_or("it has no `type`")?;
        let mut tell = |step| told.push(Told { line: number, agent: None, time: None, step });
        if !self.begun {
            *self = ChatLog { begun: true, ..ChatLog::default() };
            tell(Step::Begin { session: None });
        }
        match kind.as_str() {
            "message" => self.message(take(&mut line, "message"), &mut tell)?,
            "chunk" => self.chunk(&mut line, &mut tell),
            "tool" => self.tool(&mut line, &mut tell)?,
            "request" | "interrupt" => {
                self.pieces = (false, false);
                tell(Step::Void);
            }
            "blocked" => {
                let what = take_text(&mut line, "what").unwrap_or_default();
                self.stopped = !matches!(what.as_str(), "prompt" | "response");
            }
            "end" => self.begun = false,
            _ => {}
        }
        Ok(())
    }
}

impl ChatLog {
    fn message(&mut self, mut message: Value, tell: &mut dyn FnMut(Step)) -> Result<(), String> {
        let word = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        let role = Role::from_word(word("role")).ok_or("its message has no role")?;
        let origin = Origin::from_word(word("origin")).ok_or("its message has no origin")?;
        let text = take_text(&mut message, "content").unwrap_or_default();
        match (role, origin) {
            (Role::User, Origin::User) => tell(Step::Prompt(text)),
            (Role::Reasoning, Origin::Model) => {
                if !self.pieces.0 && !text.is_empty() {
                    tell(Step::Piece { is_thought: true, text });
                }
            }
            (Role::Assistant, Origin::Model) => {
                if !self.pieces.1 && !text.is_empty() {
                    tell(Step::Piece { is_thought: false, text });
                }
                self.calls(take(&mut message, "tool_calls"), tell);
                self.pieces = (false, false);
                tell(Step::AnswerEnd);
            }
            _ => tell(Step::Message { role, origin, text }),
        }
        Ok(())
    }

    fn calls(&mut self, calls: Value, tell: &mut dyn FnMut(Step)) {
        let Value::Array(calls) = calls else { return };
        self.open.clear();
        for mut call in calls {
            let Some(name) = take_text(&mut call, "name") else { continue };
            let input = arguments(take(&mut call, "arguments"));
            // ids of providers may come again in the next answer
            self.n_calls = self.n_calls.saturating_add(1);
            let id = self.n_calls.to_string();
            self.open.push_back((name.clone(), id.clone()));
            tell(Step::Call { id, call: Box::new(Call::plain(name, input)) });
        }
    }

    fn chunk(&mut self, line: &mut Value, tell: &mut dyn FnMut(Step)) {
        let is_thought = match line.get("chunk").and_then(Value::as_str) {
            Some("content") => false,
            Some("reasoning") => true,
            _ => return,
        };
        if is_thought {
            self.pieces.0 = true;
        } else {
            self.pieces.1 = true;
        }
        if let Some(text) = take_text(line, "text") {
            tell(Step::Piece { is_thought, text });
        }
    }

    fn tool(&mut self, line: &mut Value, tell: &mut dyn FnMut(Step)) -> Result<(), String> {
        let moment = take_text(line, "event").ok_or("it has no `event`")?;
        let outcome = match moment.as_str() {
            "after" => Outcome::Output(take(line, "result")),
            "error" => Outcome::Error(take_text(line, "error").unwrap_or_default()),
            _ => return Ok(()),
        };
        let name = take_text(line, "name").unwrap_or_default();
        let place = self.open.iter().position(|(open, _)| *open == name);
        let call = place.and_then(|place| self.open.remove(place));
        if std::mem::take(&mut self.stopped) {
            return Ok(());
        }
        let (_, id) = call.ok_or_else(|| format!("no answer before it calls `{name}`"))?;
        tell(Step::Result { id, outcome });
        Ok(())
    }
}
