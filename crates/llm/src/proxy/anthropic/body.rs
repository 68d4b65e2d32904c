//! Answers in one piece.

use serde_json::{Map, Value};

use super::read::others;
use super::write::change_block;
use super::{Block, Kind, Messages};
use crate::error::excerpt;
use crate::proxy::{Change, End, Odd, Piece};
use crate::wire::Failure;
use crate::wire::json::{is_something, list, text};

impl Messages {
    pub(super) fn read_whole(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd> {
        self.blocks.clear();
        self.n_calls = 0;
        if let Some(failure) = Failure::find(body) {
            out(Piece::Error(failure.message.into()));
            others(body, &["content", "usage"], out);
            // an error may stand beside an answer, which clients read all the same
            if !body.get("content").is_some_and(Value::is_array) {
                return Ok(());
            }
        }
        if !body.get("content").is_some_and(Value::is_array) {
            return Err(Odd(format!("it is no message: `{}`", excerpt(&body.to_string()))));
        }
        if self.head.is_none() {
            self.head = body.as_object().map(|members| {
                let head = ["id", "model"]
                    .into_iter()
                    .filter_map(|name| Some((name.to_owned(), members.get(name)?.clone())));
                head.collect::<Map<String, Value>>()
            });
        }
        for (index, block) in list(body, "content").iter().enumerate() {
            let at = self.begin(index as u64, block, out)?;
            self.stop_block(at, out);
        }
        others(body, &["content", "usage", "stop_reason", "stop_sequence"], out);
        self.read_usage(body, out);
        if let Some(word) = text(body, "stop_reason") {
            self.read_stop_reason(word, out);
        }
        self.done = true;
        out(Piece::Done);
        Ok(())
    }

    pub(super) fn write_whole(&mut self, mut body: Value, changes: &[Change], end: Option<End>) -> Value {
        let Some(Value::Array(content)) = body.get_mut("content") else { return body };
        let mut nth = 0;
        let mut states = self.blocks.iter();
        content.retain_mut(|block| {
            let dropped = states.next().is_some_and(|state| state.dropped);
            let changed = change_block(block, changes, &mut nth);
            // Providers refuse blocks without text.
            let emptied = changed && text(block, "type") == Some("text") && text(block, "text").is_none();
            !(dropped || emptied)
        });
        let mut all = self.client.before.clone();
        all.append(content);
        all.extend(self.client.after.iter().cloned());
        self.client.written =
            Some(all.iter().filter(|block| text(block, "type") != Some("tool_use")).cloned().collect());
        *content = all;
        let calls = content.iter().any(|block| text(block, "type") == Some("tool_use"));
        let word = match end {
            Some(End::Filtered) => Some("refusal"),
            Some(End::Stopped) => Some(if calls { "tool_use" } else { "end_turn" }),
            None if text(&body, "stop_reason") == Some("tool_use") && self.lost_its_calls() => {
                Some("end_turn")
            }
            None => None,
        };
        let Value::Object(members) = &mut body else { return body };
        if let Some(word) = word {
            members.insert("stop_reason".into(), word.into());
        }
        if self.spliced {
            members.extend(self.head.iter().flatten().map(|(name, value)| (name.clone(), value.clone())));
            if let Some(usage) = members.get_mut("usage").filter(|usage| is_something(usage)) {
                crate::proxy::usage::add(usage, &self.spent);
            }
        }
        body
    }

    /// Another answer follows: what this one said stands before it, without its calls.
    pub(super) fn keep_blocks(&mut self) {
        let after = std::mem::take(&mut self.client.after);
        if let Some(written) = self.client.written.take() {
            self.client.before = written;
            return;
        }
        let said = self.blocks.iter().filter(|block| !matches!(block.kind, Kind::Call(_)));
        self.client.before.extend(said.filter_map(Block::value));
        self.client.before.extend(after);
    }
}
