//! Answers in one piece.

use serde_json::{Map, Value, json};

use super::read::{asks_for_calls, index_of};
use super::write::{Edit, change_texts, set};
use super::{Chat, Seen};
use crate::error::excerpt;
use crate::proxy::{Change, End, Odd, Piece};
use crate::wire::Failure;
use crate::wire::json::{list, text};

impl Chat {
    pub(super) fn read_whole(&mut self, body: &Value, out: &mut dyn FnMut(Piece<'_>)) -> Result<(), Odd> {
        self.choices.clear();
        self.calls_of.clear();
        if let Some(failure) = Failure::find(body) {
            out(Piece::Error(failure.message.into()));
        } else if list(body, "choices").is_empty() {
            return Err(Odd(format!("it is no chat completion: `{}`", excerpt(&body.to_string()))));
        }
        let mut numbers = Vec::new();
        self.read_chunk(&mut body.clone(), true, &mut numbers, out)?;
        self.calls_of.push_back((0, numbers));
        let answer = text(body, "id").unwrap_or_default();
        self.choices.iter_mut().for_each(|choice| choice.end_calls(answer, out));
        self.done = true;
        out(Piece::Done);
        Ok(())
    }

    pub(super) fn write_whole(&mut self, mut body: Value, changes: &[Change], end: Option<End>) -> Value {
        let numbers = self.calls_of.front().map(|(_, numbers)| numbers.clone()).unwrap_or_default();
        let mut edit = Edit::new(changes, numbers);
        for choice in body.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
            self.write_whole_choice(choice, &mut edit, end.as_ref());
        }
        if self.spliced {
            self.belong_to_first(&mut body);
        }
        body
    }

    fn write_whole_choice(&mut self, choice: &mut Value, edit: &mut Edit<'_>, end: Option<&End>) {
        let Ok(index) = index_of(choice) else { return };
        let seen = self.client.choice(index);
        let Some(state) = self.choices.iter_mut().find(|state| state.index == index) else { return };
        change_texts(choice, state, seen, edit);
        let lost = state.lost_its_calls();
        let calls = !state.calls.is_empty() && !lost;
        match end {
            Some(End::Filtered) => set(choice, "finish_reason", "content_filter".into()),
            Some(End::Stopped) => {
                set(choice, "finish_reason", if calls { "tool_calls" } else { "stop" }.into());
            }
            None if lost && text(choice, "finish_reason").is_some_and(asks_for_calls) => {
                set(choice, "finish_reason", "stop".into());
            }
            None => {}
        }
        if let Some(Value::Object(message)) = choice.get_mut("message") {
            join(message, seen, state.reasoning_field);
        }
    }
}

/// Adds what was said before the last answer and behind it.
fn join(message: &mut Map<String, Value>, seen: &mut Seen, reasoning_field: &str) {
    let (before, after) = (seen.before.as_str(), seen.after.as_str());
    if !(before.is_empty() && after.is_empty()) {
        if let Some(Value::Array(parts)) = message.get_mut("content") {
            let part = |text: &str| json!({ "type": "text", "text": text });
            if !before.is_empty() {
                parts.insert(0, part(before));
            }
            if !after.is_empty() {
                parts.push(part(after));
            }
        } else {
            let own = message.get("content").and_then(Value::as_str).unwrap_or_default();
            let all = format!("{before}{own}{after}");
            message.insert("content".into(), all.into());
        }
    }
    if !seen.reasoning_before.is_empty() {
        let field = if reasoning_field.is_empty() { "reasoning_content" } else { reasoning_field };
        let own = message.get(field).and_then(Value::as_str).unwrap_or_default();
        let all = format!("{}{own}", seen.reasoning_before);
        message.insert(field.into(), all.into());
    }
    let said = |name: &str| message.get(name).map(texts).unwrap_or_default();
    let reasoning = ["reasoning_content", "reasoning"].map(said).into_iter().find(|text| !text.is_empty());
    seen.written = Some((said("content"), reasoning.unwrap_or_default()));
}

fn texts(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| text(part, "text")).collect(),
        _ => String::new(),
    }
}
