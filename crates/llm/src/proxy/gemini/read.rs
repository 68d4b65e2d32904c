//! What an event brings.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::chunk::{Counts, Plain, Spot, arguments, call, for_parts, inner, is_wrapped};
use super::{Candidate, GeminiCall, Generate};
use crate::error::excerpt;
use crate::finish::{Finish, FinishReason};
use crate::proxy::leaves::member_leaves;
use crate::proxy::{Call, Channel, ChannelKind, Note, Odd, Piece};
use crate::sse::Event;
use crate::wire::Failure;
use crate::wire::json::{self, is_something, list, text};

type Out<'o> = &'o mut dyn FnMut(Piece<'_>);

/// The members of the first chunk that our own chunks have too.
const HEAD: &[&str] = &["modelVersion", "responseId", "createTime"];

/// What an event is, as it is kept in a [`Note`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nothing has to be known of it.
    Pass,
    /// One text of one candidate.
    Text(u32),
    /// Anything else that is a chunk; the number under which its calls are kept.
    Chunk(u32),
    /// Half an event, of a stream that was cut.
    Half,
}

impl Kind {
    fn note(self) -> Note {
        let (kind, number) = match self {
            Kind::Pass => (0, 0),
            Kind::Text(candidate) => (1, candidate),
            Kind::Chunk(event) => (2, event),
            Kind::Half => (3, 0),
        };
        Note(kind | u64::from(number) << 8)
    }

    pub(super) fn of(note: Note) -> Kind {
        let number = u32::try_from(note.0 >> 8).unwrap_or_default();
        match note.0 & 0xFF {
            1 => Kind::Text(number),
            2 => Kind::Chunk(number),
            3 => Kind::Half,
            _ => Kind::Pass,
        }
    }
}

impl Generate {
    pub(super) fn read_event(&mut self, event: &Event<'_>, out: Out<'_>) -> Result<Note, Odd> {
        if self.head.is_some()
            && let Some(kind) = self.read_plain(&event.data, out)
        {
            return Ok(kind.note());
        }
        let data = &*event.data;
        let Some(mut value) = json::parse(data) else {
            return match &*event.event {
                _ if data.trim() == "[DONE]" => Ok(Kind::Pass.note()),
                _ if !event.closed => {
                    out(Piece::Aside(Cow::Borrowed(data)));
                    Ok(Kind::Half.note())
                }
                "error" => {
                    out(Piece::Error(Cow::Borrowed(data)));
                    Ok(Kind::Pass.note())
                }
                _ => Err(Odd(format!("an event is no JSON: `{}`", excerpt(data)))),
            };
        };
        if event.event == "error" || Failure::find(&value).is_some() {
            out(Piece::Error(Failure::from_body(data.as_bytes()).message.into()));
        }
        let mut numbers = Vec::new();
        self.read_chunk(&mut value, &mut numbers, out)?;
        if numbers.is_empty() {
            return Ok(Kind::Chunk(0).note());
        }
        self.n_events_with_calls = self.n_events_with_calls.wrapping_add(1).max(1);
        self.calls_of.push_back((self.n_events_with_calls, numbers));
        Ok(Kind::Chunk(self.n_events_with_calls).note())
    }

    /// Reads a chunk with one text; `None` when it is another one.
    fn read_plain(&mut self, data: &str, out: Out<'_>) -> Option<Kind> {
        let Plain { candidates: [plain], usage_metadata, .. } = serde_json::from_str(data).ok()?;
        let [part] = plain.content.parts;
        if part.text.0.is_empty() {
            return None;
        }
        let candidate = self.candidate_mut(plain.index)?;
        candidate.say(&part.text.0, part.thought, out);
        if let Some(counts) = usage_metadata {
            self.count(&counts, out);
        }
        Some(Kind::Text(plain.index))
    }

    fn count(&mut self, counts: &Counts, out: Out<'_>) {
        let written = match (counts.candidates_token_count, counts.thoughts_token_count) {
            (None, None) => None,
            (said, thought) => Some(said.unwrap_or(0).saturating_add(thought.unwrap_or(0))),
        };
        out(Piece::Usage { input: counts.prompt_token_count, output: written });
        let counts = [
            ("promptTokenCount", counts.prompt_token_count),
            ("candidatesTokenCount", counts.candidates_token_count),
            ("thoughtsTokenCount", counts.thoughts_token_count),
            ("cachedContentTokenCount", counts.cached_content_token_count),
            ("toolUsePromptTokenCount", counts.tool_use_prompt_token_count),
            ("totalTokenCount", counts.total_token_count),
        ];
        match &mut self.usage {
            Value::Object(usage) => {
                for (name, count) in counts {
                    if let Some(count) = count {
                        match usage.get_mut(name) {
                            Some(known) => *known = count.into(),
                            None => drop(usage.insert(name.into(), count.into())),
                        }
                    }
                }
            }
            usage => {
                let known =
                    counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into())));
                *usage = Value::Object(known.collect());
            }
        }
    }

    /// Reads a chunk, or a whole answer. The numbers of its calls go into `numbers`.
    pub(super) fn read_chunk(
        &mut self,
        chunk: &mut Value,
        numbers: &mut Vec<u32>,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        self.wrapped |= is_wrapped(chunk);
        if self.wrapped {
            for (name, value) in chunk.as_object().into_iter().flatten() {
                if name != "response" && name != "traceId" {
                    aside(name, value, out);
                }
            }
        }
        let chunk = inner(chunk);
        let Value::Object(members) = chunk else {
            aside("chunk", chunk, out);
            return Ok(());
        };
        self.keep_head(members);
        for (name, value) in members.iter_mut() {
            match (name.as_str(), value) {
                ("candidates", Value::Array(candidates)) => {
                    for candidate in candidates {
                        self.read_candidate(candidate, numbers, out)?;
                    }
                }
                ("usageMetadata", usage) => {
                    if let Ok(counts) = serde_json::from_value(usage.clone()) {
                        self.count(&counts, out);
                    }
                }
                ("promptFeedback", feedback) => self.read_feedback(feedback, out),
                ("modelVersion" | "responseId" | "createTime", _) => {}
                (name, value) => aside(name, value, out),
            }
        }
        Ok(())
    }

    fn keep_head(&mut self, members: &Map<String, Value>) {
        if self.head.is_none() {
            let known =
                HEAD.iter().filter_map(|name| Some(((*name).to_owned(), members.get(*name)?.clone())));
            self.head = Some(known.collect());
        }
    }

    /// A prompt that is blocked gets no candidate.
    fn read_feedback(&mut self, feedback: &Value, out: Out<'_>) {
        if text(feedback, "blockReason").is_some() && !std::mem::replace(&mut self.blocked, true) {
            out(Piece::Finish { choice: 0, reason: "content_filter".into() });
        }
        if let Some(message) = text(feedback, "blockReasonMessage") {
            out(Piece::Aside(Cow::Borrowed(message)));
        }
    }

    fn read_candidate(
        &mut self,
        candidate: &mut Value,
        numbers: &mut Vec<u32>,
        out: Out<'_>,
    ) -> Result<(), Odd> {
        let index = index_of(candidate)?;
        let Some(state) = self.candidate_mut(index) else { return Ok(()) };
        let (mut result, mut said) = (Ok(()), String::new());
        for_parts(candidate, &mut |spot, name, value| match spot {
            Spot::Content | Spot::Reasoning => {
                let words = value.as_str().unwrap_or_default();
                said.push_str(words);
                state.tell(words, spot == Spot::Reasoning, out);
            }
            Spot::Call => match state.read_call(value, out) {
                Ok(number) => numbers.push(number),
                Err(odd) => result = Err(odd),
            },
            Spot::Other => aside(name, value, out),
        });
        result?;
        state.keep_parts(candidate);
        for (name, value) in candidate.as_object().into_iter().flatten() {
            match name.as_str() {
                "content" | "index" | "finishReason" | "safetyRatings" | "avgLogprobs" | "tokenCount" => {}
                "logprobsResult" if tokens(value).as_deref() == Some(&said) => {}
                name => aside(name, value, out),
            }
        }
        let word = text(candidate, "finishReason").filter(|word| *word != "FINISH_REASON_UNSPECIFIED");
        if let Some(word) = word.filter(|word| state.finish != **word) {
            word.clone_into(&mut state.finish);
            let finish = Finish::from_word(word);
            let calls = finish.reason == FinishReason::Stop && !state.calls.is_empty();
            let reason = if calls { "tool_calls" } else { finish.as_str() };
            out(Piece::Finish { choice: index, reason: reason.to_owned().into() });
        }
        Ok(())
    }
}

/// A missing index counts as 0.
pub(super) fn index_of(candidate: &Value) -> Result<u32, Odd> {
    match candidate.get("index") {
        None | Some(Value::Null) => Ok(0),
        Some(index) => {
            let index = index.as_u64().and_then(|index| u32::try_from(index).ok());
            index.ok_or_else(|| Odd("a candidate's index is no small number".into()))
        }
    }
}

/// The text that the tokens of `logprobsResult` make.
fn tokens(logprobs: &Value) -> Option<String> {
    list(logprobs, "chosenCandidates").iter().map(|token| token.get("token")?.as_str()).collect()
}

fn aside(name: &str, value: &Value, out: Out<'_>) {
    if let Some(text) = member_leaves(name, value) {
        out(Piece::Aside(text.into()));
    }
}

impl Candidate {
    fn channel(&self, kind: ChannelKind) -> Channel {
        Channel { choice: self.index, kind }
    }

    fn tell(&self, words: &str, thought: bool, out: Out<'_>) {
        let kind = if thought { ChannelKind::Reasoning } else { ChannelKind::Content };
        out(Piece::Text { channel: self.channel(kind), text: Cow::Borrowed(words) });
    }

    /// Reads a text, and keeps it as a part.
    fn say(&mut self, words: &str, thought: bool, out: Out<'_>) {
        self.tell(words, thought, out);
        if !self.extend_last(words, thought) {
            let mut part = json!({ "text": words });
            if let (true, Value::Object(members)) = (thought, &mut part) {
                members.insert("thought".into(), true.into());
            }
            self.parts.push(part);
        }
    }

    /// Adds to the last part if it is of the same kind and has no signature, which would be for what it has.
    fn extend_last(&mut self, words: &str, thought: bool) -> bool {
        let Some(Value::Object(last)) = self.parts.last_mut() else { return false };
        let plain = last.keys().all(|name| name == "text" || name == "thought");
        let same = last.get("thought").is_some_and(|is| is == &Value::Bool(true)) == thought;
        match last.get_mut("text") {
            Some(Value::String(text)) if plain && same => {
                text.push_str(words);
                true
            }
            _ => false,
        }
    }

    fn keep_parts(&mut self, candidate: &Value) {
        let content = candidate.get("content").unwrap_or(&Value::Null);
        for part in list(content, "parts") {
            let plain =
                part.as_object().is_some_and(|p| p.keys().all(|name| name == "text" || name == "thought"));
            let thought = part.get("thought") == Some(&Value::Bool(true));
            match text(part, "text") {
                Some(words) if plain && self.extend_last(words, thought) => {}
                None if plain => {}
                _ => self.parts.push(part.clone()),
            }
        }
    }

    fn read_call(&mut self, part: &Value, out: Out<'_>) -> Result<u32, Odd> {
        let call = call(part).unwrap_or(&Value::Null);
        if ["partialArgs", "willContinue"].iter().any(|name| call.get(*name).is_some_and(is_something)) {
            return Err(Odd("a call whose arguments come in pieces is not understood on this wire".into()));
        }
        let n = u32::try_from(self.calls.len()).unwrap_or(u32::MAX);
        let number = self.first_call.saturating_add(n);
        self.calls.push(GeminiCall::default());
        let channel = self.channel(ChannelKind::Call(number));
        let of = |name| text(call, name).unwrap_or_default();
        out(Piece::CallBegin { channel, id: of("id").into(), name: of("name").into() });
        let mut arguments = arguments(call);
        if arguments.is_empty() {
            arguments.push_str("{}");
        } else {
            out(Piece::Text { channel, text: Cow::Borrowed(&arguments) });
        }
        let others = call.as_object().into_iter().flatten();
        for (name, value) in others.filter(|(name, _)| !matches!(name.as_str(), "name" | "args")) {
            aside(name, value, out);
        }
        let others = part.as_object().into_iter().flatten();
        for (name, value) in
            others.filter(|(name, _)| !matches!(name.as_str(), "functionCall" | "function_call"))
        {
            aside(name, value, out);
        }
        let call = Call { id: of("id").to_owned(), name: of("name").to_owned(), arguments };
        out(Piece::CallEnd { channel, call });
        Ok(number)
    }
}
