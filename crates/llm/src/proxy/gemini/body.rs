//! Answers in one piece: one chunk, or a JSON array of them.

use serde_json::Value;

use super::Generate;
use super::chunk::{call, inner, is_wrapped};
use super::read::index_of;
use super::write::{Edit, change_parts, parts_of, set_parts, word};
use crate::error::excerpt;
use crate::proxy::{Change, End, Odd, Piece};
use crate::wire::Failure;

impl Generate {
    pub(super) fn read_whole(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd> {
        self.candidates.clear();
        self.calls_of.clear();
        let mut numbers = Vec::new();
        for chunk in chunks(body) {
            if let Some(failure) = Failure::find(chunk) {
                out(Piece::Error(failure.message.into()));
            }
            let answer = is_wrapped(chunk)
                || Failure::find(chunk).is_some()
                || ["candidates", "promptFeedback", "usageMetadata"]
                    .iter()
                    .any(|name| chunk.get(*name).is_some());
            if !answer {
                return Err(Odd(format!(
                    "it is no answer of generateContent: `{}`",
                    excerpt(&chunk.to_string())
                )));
            }
            self.read_chunk(&mut chunk.clone(), &mut numbers, out)?;
        }
        self.calls_of.push_back((0, numbers));
        out(Piece::Done);
        Ok(())
    }

    pub(super) fn write_whole(&mut self, mut body: Value, changes: &[Change], end: Option<End>) -> Value {
        let numbers = self.calls_of.front().map(|(_, numbers)| numbers.clone()).unwrap_or_default();
        let mut edit = Edit::new(changes, numbers);
        let chunks = match &mut body {
            Value::Array(chunks) => chunks.as_mut_slice(),
            body => std::slice::from_mut(body),
        };
        for seen in &mut self.client.candidates {
            seen.written = Some(Vec::new());
        }
        let last = chunks.iter().rposition(has_candidates);
        let first = chunks.iter().position(has_candidates);
        for (at, chunk) in chunks.iter_mut().enumerate() {
            let chunk = inner(chunk);
            for candidate in chunk.get_mut("candidates").and_then(Value::as_array_mut).into_iter().flatten() {
                let (is_first, is_last) = (Some(at) == first, Some(at) == last);
                self.write_whole_candidate(candidate, &mut edit, is_first, is_last, end.as_ref());
            }
            if self.spliced {
                self.belong_to_first(chunk);
            }
        }
        body
    }

    fn write_whole_candidate(
        &mut self,
        candidate: &mut Value,
        edit: &mut Edit<'_>,
        is_first: bool,
        is_last: bool,
        end: Option<&End>,
    ) {
        let Ok(index) = index_of(candidate) else { return };
        let Some(state) = self.candidates.iter_mut().find(|state| state.index == index) else { return };
        let emptied = change_parts(candidate, state, edit);
        let seen = self.client.candidate(index);
        let mut parts = Vec::new();
        if is_first {
            parts.extend(seen.before.iter().cloned());
        }
        let n_before = parts.len();
        parts.extend(parts_of(candidate).iter().cloned());
        if is_last {
            parts.extend(seen.after.iter().cloned());
        }
        let added = parts.len() > parts_of(candidate).len() || n_before > 0;
        let kept = parts.iter().filter(|part| call(part).is_none()).cloned();
        seen.written.get_or_insert_default().extend(kept);
        if emptied || added {
            if parts.is_empty() {
                parts.push(serde_json::json!({ "text": "" }));
            }
            set_parts(candidate, parts);
        }
        if let (Some(end), true, Value::Object(members)) = (end, is_last, candidate) {
            members.insert("finishReason".into(), word(end).into());
        }
    }
}

fn chunks(body: &Value) -> &[Value] {
    match body {
        Value::Array(chunks) => chunks,
        body => std::slice::from_ref(body),
    }
}

fn has_candidates(chunk: &Value) -> bool {
    let chunk = if is_wrapped(chunk) { chunk.get("response").unwrap_or(chunk) } else { chunk };
    !crate::wire::json::list(chunk, "candidates").is_empty()
}
