//! The written form of a script, and what it is lowered to.
//!
//! `*Text` types are what stands in the file, checked field by field; [`Script`] is what is left when everything has
//! a meaning.

use std::sync::Arc;

use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Delta, Finish};

const DEMO: &str = include_str!("demo.json");

/// A script whose every part has a meaning. See the [module](crate::scripted) for the format.
#[derive(Clone, Debug)]
pub struct Script {
    pub(super) turns: Vec<Turn>,
    pub(super) sequence: bool,
    pub(super) repeat_last: bool,
}

/// What one answer consists of.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    pub(super) when: Vec<String>,
    pub(super) when_before: Vec<String>,
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) calls: Vec<Call>,
    /// The exact pieces instead of reasoning, text and calls. Shared with the streams that play them.
    pub(super) chunks: Arc<[Chunk]>,
    pub(super) words: usize,
    pub(super) delay_ms: u64,
    pub(super) finish: Option<Finish>,
    pub(super) failure: Option<Failure>,
}

#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) tool: String,
    pub(super) args: Map<String, Value>,
}

#[derive(Clone, Debug)]
pub(super) struct Chunk {
    pub(super) delta: Delta,
    /// Its text has blanks to fill in.
    pub(super) has_blanks: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) message: String,
    /// After how many pieces; `None` before the answer begins.
    pub(super) after: Option<usize>,
}

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptError {
    /// It is no JSON, or has fields or types that the format does not know.
    #[error("script, line {line}, column {column}: {message}")]
    Text {
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong there, and what is allowed.
        message: String,
    },
    /// Its fields do not go together.
    #[error("script, {place}: {message}")]
    Meaning {
        /// Where, such as `turns[2].chunks[0]`.
        place: String,
        /// What is wrong there, and what to do.
        message: String,
    },
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScriptText {
    /// The turns; at least one.
    turns: Vec<TurnText>,
    /// How requests find their turn.
    #[serde(default)]
    order: OrderText,
    /// Whether the last turn answers everything past the end.
    repeat_last: Option<bool>,
}

#[derive(Clone, Copy, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OrderText {
    /// By the number of rounds of tool calls since the last user message.
    #[default]
    Rounds,
    /// By the number of requests so far.
    Sequence,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
struct TurnText {
    /// Plays only if one of these stands in the last user message.
    when: OneOrMany,
    /// Plays only if one of these stands in the user message before the last.
    when_before: OneOrMany,
    /// What it says. `{prompt}` and `{last_tool}` are filled in.
    text: String,
    /// What it thinks before it speaks; filled in like `text`.
    reasoning: String,
    /// The tools it calls after the text.
    tool_calls: Vec<CallText>,
    /// The exact pieces, instead of text, reasoning and calls.
    chunks: Option<Vec<ChunkText>>,
    /// Words per piece; 1 by default.
    words: Option<usize>,
    /// Pause before each piece in milliseconds.
    delay_ms: u64,
    /// The finish word.
    finish: Option<String>,
    /// Fails with this text.
    error: Option<String>,
    /// Fails after so many pieces instead of at once.
    after: Option<usize>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a text or a list of texts")]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl Default for OneOrMany {
    fn default() -> Self {
        OneOrMany::Many(Vec::new())
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallText {
    /// The tool's name.
    tool: String,
    /// Its arguments; their texts are filled in like `text`.
    #[serde(default)]
    args: Map<String, Value>,
}

// One flat struct instead of a tagged enum: the parser can then say where a wrong field stands.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ChunkText {
    /// What the piece is.
    r#type: ChunkType,
    /// The piece's text.
    text: Option<String>,
    /// Which tool call it belongs to.
    index: Option<u32>,
    /// The call's id.
    tool_call_id: Option<String>,
    /// The tool's name.
    name: Option<String>,
    /// The finish word.
    finish_reason: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum ChunkType {
    /// Text of the answer.
    Content,
    /// Text of the reasoning.
    Reasoning,
    /// A piece of a tool call.
    ToolCallDelta,
    /// The end.
    Finish,
}

impl Script {
    /// Reads a script. Pure and safe with any text.
    ///
    /// # Errors
    /// [`ScriptError`] with the place and what is allowed there.
    pub fn parse(json: &str) -> Result<Script, ScriptError> {
        let text =
            serde_json::from_str::<ScriptText>(json.trim_start_matches('\u{feff}')).map_err(|error| {
                let (line, column) = (error.line(), error.column());
                let message = error.to_string();
                let message = message.split(" at line ").next().unwrap_or_default().to_owned();
                ScriptError::Text { line, column, message }
            })?;
        text.lower()
    }

    /// A script of one turn that sends exactly these pieces, and then its finish if they have none.
    pub fn from_deltas(deltas: impl IntoIterator<Item = Delta>) -> Script {
        let chunks = deltas.into_iter().map(|delta| Chunk { delta, has_blanks: false }).collect();
        Script {
            turns: vec![Turn { chunks, words: 1, ..Turn::default() }],
            sequence: false,
            repeat_last: true,
        }
    }

    /// The JSON Schema of the format.
    pub fn schema() -> Value {
        schema_for!(ScriptText).to_value()
    }

    /// The demonstration; a script that says why if it cannot be read, which a test rules out.
    pub(super) fn demo() -> Script {
        Script::parse(DEMO).unwrap_or_else(|error| Script::from_deltas([Delta::Content(error.to_string())]))
    }
}

impl ScriptText {
    fn lower(self) -> Result<Script, ScriptError> {
        let sequence = self.order == OrderText::Sequence;
        if self.turns.is_empty() {
            return Err(wrong("turns", "is empty; a script needs at least one turn"));
        }
        let turns =
            self.turns.into_iter().enumerate().map(|(n, turn)| turn.lower(&format!("turns[{n}]"), sequence));
        Ok(Script {
            turns: turns.collect::<Result<_, _>>()?,
            sequence,
            repeat_last: self.repeat_last.unwrap_or(!sequence),
        })
    }
}

impl TurnText {
    fn lower(self, place: &str, sequence: bool) -> Result<Turn, ScriptError> {
        let (when, when_before) = (self.when.lower(place)?, self.when_before.lower(place)?);
        if sequence && !(when.is_empty() && when_before.is_empty()) {
            return Err(wrong(
                place,
                "has a condition, but order `sequence` plays turns one after the other",
            ));
        }
        let spoken = !(self.text.is_empty() && self.reasoning.is_empty() && self.tool_calls.is_empty());
        if self.chunks.is_some() && (spoken || self.words.is_some()) {
            return Err(wrong(
                place,
                "has `chunks` beside `text`, `reasoning`, `tool_calls` or `words`; use one or the other",
            ));
        }
        if self.words == Some(0) {
            return Err(wrong(place, "`words` is 0; expected at least 1"));
        }
        if self.after.is_some() && self.error.is_none() {
            return Err(wrong(place, "has `after` without `error`"));
        }
        let after = self.after;
        Ok(Turn {
            when,
            when_before,
            reasoning: self.reasoning,
            text: self.text,
            calls: self
                .tool_calls
                .into_iter()
                .map(|call| Call { tool: call.tool, args: call.args })
                .collect(),
            chunks: lower_chunks(self.chunks.unwrap_or_default(), place)?,
            words: self.words.unwrap_or(1),
            delay_ms: self.delay_ms,
            finish: self.finish.map(Finish::from_word),
            failure: self.error.map(|message| Failure { message, after }),
        })
    }
}

impl OneOrMany {
    fn lower(self, place: &str) -> Result<Vec<String>, ScriptError> {
        let texts = match self {
            OneOrMany::One(text) => vec![text],
            OneOrMany::Many(texts) => texts,
        };
        if texts.iter().any(|text| text.trim().is_empty()) {
            return Err(wrong(
                place,
                "has an empty condition, which every prompt would meet; leave it out instead",
            ));
        }
        Ok(texts.into_iter().map(|text| text.to_lowercase()).collect())
    }
}

fn lower_chunks(chunks: Vec<ChunkText>, place: &str) -> Result<Arc<[Chunk]>, ScriptError> {
    let last = chunks.len().saturating_sub(1);
    let lower = |(n, chunk): (usize, ChunkText)| {
        let place = format!("{place}.chunks[{n}]");
        if chunk.r#type == ChunkType::Finish && n != last {
            return Err(wrong(&place, "is a `finish`, but more chunks follow"));
        }
        chunk.lower(&place)
    };
    chunks.into_iter().enumerate().map(lower).collect()
}

impl ChunkText {
    fn lower(self, place: &str) -> Result<Chunk, ScriptError> {
        let call = self.index.is_some() || self.tool_call_id.is_some() || self.name.is_some();
        if call && self.r#type != ChunkType::ToolCallDelta {
            return Err(wrong(place, "`index`, `toolCallId` and `name` belong to type `tool_call_delta`"));
        }
        if self.finish_reason.is_some() && self.r#type != ChunkType::Finish {
            return Err(wrong(place, "`finishReason` belongs to type `finish`"));
        }
        if self.text.is_some() && self.r#type == ChunkType::Finish {
            return Err(wrong(place, "`text` does not belong to type `finish`"));
        }
        let text = self.text.unwrap_or_default();
        let filled = matches!(self.r#type, ChunkType::Content | ChunkType::Reasoning);
        let has_blanks = filled && super::play::BLANKS.iter().any(|blank| text.contains(blank));
        let delta = match self.r#type {
            ChunkType::Content => Delta::Content(text),
            ChunkType::Reasoning => Delta::Reasoning(text),
            ChunkType::ToolCallDelta => {
                let index = self.index.unwrap_or(0);
                Delta::ToolCall { index, id: self.tool_call_id, name: self.name, arguments: text }
            }
            ChunkType::Finish => {
                Delta::Finish(Finish::from_word(self.finish_reason.unwrap_or_else(|| "stop".into())))
            }
        };
        Ok(Chunk { delta, has_blanks })
    }
}

fn wrong(place: &str, message: &str) -> ScriptError {
    ScriptError::Meaning { place: place.into(), message: message.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(Script::parse(json).map(|_| ()).map_err(|e| e.to_string()), Err(expected.to_owned()));
    }

    #[test]
    fn errors_name_the_place_and_what_is_allowed() {
        check("", "script, line 1, column 0: EOF while parsing a value");
        check(
            "{\"turns\": [\n  {\"txt\": \"a\"}]}",
            "script, line 2, column 8: unknown field `txt`, expected one of `when`, `when_before`, `text`, `reasoning`, \
             `tool_calls`, `chunks`, `words`, `delay_ms`, `finish`, `error`, `after`",
        );
        check(
            r#"{"turns": [{"chunks": [{"type": "contents"}]}]}"#,
            "script, line 1, column 42: unknown variant `contents`, expected one of `content`, `reasoning`, \
             `tool_call_delta`, `finish`",
        );
        check(
            r#"{"turns": [{"text": "a", "text": "b"}]}"#,
            "script, line 1, column 31: duplicate field `text`",
        );
        check(r#"{"turns": []}"#, "script, turns: is empty; a script needs at least one turn");
        check(r#"{"turns": [{}, {"after": 1}]}"#, "script, turns[1]: has `after` without `error`");
        check(r#"{"turns": [{"words": 0}]}"#, "script, turns[0]: `words` is 0; expected at least 1");
        check(
            r#"{"turns": [{"chunks": [{"type": "content", "finishReason": "stop"}]}]}"#,
            "script, turns[0].chunks[0]: `finishReason` belongs to type `finish`",
        );
        check(
            r#"{"turns": [{"chunks": [{"type": "finish"}, {"type": "content", "text": "a"}]}]}"#,
            "script, turns[0].chunks[0]: is a `finish`, but more chunks follow",
        );
        check(
            r#"{"order": "sequence", "turns": [{"when": "a"}]}"#,
            "script, turns[0]: has a condition, but order `sequence` plays turns one after the other",
        );
    }

    #[test]
    fn the_schema_and_the_parser_agree() {
        let schema = jsonschema::validator_for(&Script::schema()).unwrap();
        let check = |json: &str, fits: bool| {
            assert_eq!(schema.is_valid(&serde_json::from_str(json).unwrap()), fits, "{json}");
            assert_eq!(Script::parse(json).is_ok(), fits, "{json}");
        };
        check(DEMO, true);
        check(r#"{"turns": [{"when": ["a"], "text": "b"}], "repeat_last": false}"#, true);
        check(r#"{"turns": [{"chunks": [{"type": "tool_call_delta", "toolCallId": "x"}]}]}"#, true);
        check(r#"{"turns": [{"txt": "a"}]}"#, false);
        check(r#"{"turns": [{"delay_ms": -1}]}"#, false);
        check(r#"{"turns": [{"tool_calls": [{"args": {}}]}]}"#, false);
    }
}
