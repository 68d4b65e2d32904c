//! Choosing a turn and sending its pieces.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use serde_json::Value;
use tokio::time::{Instant, Sleep, sleep};

use super::script::{Chunk, Script, Turn};
use crate::{Delta, DeltaStream, Error, Finish, Message, Request, Role};

/// What a text may leave open: the last user message, the last tool result.
pub(super) const BLANKS: [&str; 2] = ["{prompt}", "{last_tool}"];

/// Characters of a call's arguments per piece.
const ARGUMENTS_PIECE: usize = 16;

/// The answer of this script to this request, the `n`th from 0.
///
/// # Errors
/// [`Error::Model`] when the script is over, or when the turn fails at once.
pub(super) fn open(script: &Script, request: &Request, n: usize) -> Result<DeltaStream, Error> {
    let turn = choose(script, request, n)?;
    let failure = turn.failure.as_ref();
    if let Some(failure) = failure.filter(|failure| failure.after.is_none()) {
        return Err(failed(failure.message.clone()));
    }
    let blanks = Blanks::of(request);
    let parts = parts(turn, request, &blanks);
    let calls = parts.iter().any(Part::is_call);
    let default = if calls { "tool_calls" } else { "stop" };
    Ok(Box::pin(Play {
        parts: parts.into_iter(),
        current: None,
        blanks,
        finish: Some(turn.finish.clone().unwrap_or_else(|| Finish::from_word(default))),
        until_failure: failure.and_then(|failure| failure.after),
        failure: failure.map(|failure| failure.message.clone()),
        over: false,
        pause: (turn.delay_ms > 0).then(|| Pause::new(Duration::from_millis(turn.delay_ms))),
    }))
}

fn failed(message: String) -> Error {
    Error::Model { message, retry: false }
}

fn choose<'a>(script: &'a Script, request: &Request, n: usize) -> Result<&'a Turn, Error> {
    let (turns, place): (Vec<&Turn>, usize) = if script.sequence {
        (script.turns.iter().collect(), n)
    } else {
        (list_for(script, &request.messages), rounds(&request.messages))
    };
    let last = if script.repeat_last { turns.last() } else { None };
    turns.get(place).or(last).copied().ok_or_else(|| {
        let n_turns = turns.len();
        failed(format!(
            "the script is over: it has {n_turns} turns here and this would be turn {}",
            place + 1
        ))
    })
}

/// The turns with the conditions that hold; those without conditions if none do.
fn list_for<'a>(script: &'a Script, messages: &[Message]) -> Vec<&'a Turn> {
    let mut prompts =
        messages.iter().rev().filter(|m| m.role == Role::User).map(|m| m.content.to_lowercase());
    let (last, before) = (prompts.next().unwrap_or_default(), prompts.next().unwrap_or_default());
    let holds = |turn: &&Turn| {
        let meets =
            |texts: &[String], prompt: &str| texts.is_empty() || texts.iter().any(|text| says(prompt, text));
        meets(&turn.when, &last) && meets(&turn.when_before, &before)
    };
    let conditions = |turn: &Turn| (turn.when.clone(), turn.when_before.clone());
    let conditional = script.turns.iter().filter(|turn| conditions(turn) != Default::default());
    let wanted = conditional.filter(holds).map(conditions).next().unwrap_or_default();
    script.turns.iter().filter(|turn| conditions(turn) == wanted).collect()
}

/// Whether `text` stands in `prompt`, beginning where a word begins.
fn says(prompt: &str, text: &str) -> bool {
    let inside = |at: usize| {
        prompt.get(..at).and_then(|before| before.chars().next_back()).is_some_and(char::is_alphanumeric)
    };
    let word = text.starts_with(char::is_alphanumeric);
    prompt.match_indices(text).any(|(at, _)| !word || !inside(at))
}

fn rounds(messages: &[Message]) -> usize {
    let since_user = messages.iter().rev().take_while(|message| message.role != Role::User);
    since_user.filter(|message| message.role == Role::Assistant && !message.tool_calls.is_empty()).count()
}

/// What the request says about the texts that a script leaves open.
#[derive(Debug)]
struct Blanks {
    values: [String; 2],
}

impl Blanks {
    fn of(request: &Request) -> Self {
        let last = |role| request.messages.iter().rev().find(|message| message.role == role);
        let text = |role| last(role).map_or("", |message| message.content.trim()).to_owned();
        Blanks { values: [text(Role::User), text(Role::Tool)] }
    }

    /// Fills in all blanks in one pass: what is filled in is not looked at again.
    fn fill(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        loop {
            let first = BLANKS
                .iter()
                .zip(&self.values)
                .filter_map(|(blank, value)| Some((rest.find(blank)?, blank, value)));
            let Some((at, blank, value)) = first.min_by_key(|(at, ..)| *at) else { break };
            out.push_str(rest.get(..at).unwrap_or_default());
            out.push_str(value);
            rest = rest.get(at + blank.len()..).unwrap_or_default();
        }
        out.push_str(rest);
        out
    }

    fn fill_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.fill(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_value(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.fill_value(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn parts(turn: &Turn, request: &Request, blanks: &Blanks) -> Vec<Part> {
    if !turn.chunks.is_empty() {
        return vec![Part::Chunks { chunks: turn.chunks.clone(), at: 0 }];
    }
    let text = |make, text: &str| Part::Text { make, text: blanks.fill(text), at: 0, words: turn.words };
    let mut out = vec![text(Delta::Reasoning, &turn.reasoning), text(Delta::Content, &turn.text)];
    let n_before: usize = request.messages.iter().map(|message| message.tool_calls.len()).sum();
    let offered = |name: &str| request.tools.iter().any(|tool| tool.name == name);
    for (index, call) in (0u32..).zip(turn.calls.iter().filter(|call| offered(&call.tool))) {
        let mut arguments = Value::Object(call.args.clone());
        blanks.fill_value(&mut arguments);
        let id = Some(format!("call_{}", n_before + 1 + index as usize));
        let name = Some(call.tool.clone());
        out.push(Part::One(Some(Delta::ToolCall { index, id, name, arguments: String::new() })));
        out.push(Part::Arguments { index, text: arguments.to_string(), at: 0 });
    }
    for call in turn.calls.iter().filter(|call| !offered(&call.tool)) {
        let gap = if turn.text.is_empty() { "" } else { "\n" };
        let excuse =
            format!("{gap}I would call the tool `{}` now, but this request does not offer it.", call.tool);
        out.insert(2, text(Delta::Content, &excuse));
    }
    out
}

/// Some pieces of an answer.
#[derive(Debug)]
enum Part {
    Text { make: fn(String) -> Delta, text: String, at: usize, words: usize },
    One(Option<Delta>),
    Arguments { index: u32, text: String, at: usize },
    Chunks { chunks: Arc<[Chunk]>, at: usize },
}

impl Part {
    fn is_call(&self) -> bool {
        let is_call = |delta: &Delta| matches!(delta, Delta::ToolCall { .. });
        match self {
            Part::Text { .. } => false,
            Part::One(delta) => delta.as_ref().is_some_and(is_call),
            Part::Arguments { .. } => true,
            Part::Chunks { chunks, .. } => chunks.iter().any(|chunk| is_call(&chunk.delta)),
        }
    }

    fn next(&mut self, blanks: &Blanks) -> Option<Delta> {
        match self {
            Part::Text { make, text, at, words } => {
                let rest = text.get(*at..).filter(|rest| !rest.is_empty())?;
                let piece = first_words(rest, *words);
                *at += piece.len();
                Some(make(piece.to_owned()))
            }
            Part::One(delta) => delta.take(),
            Part::Arguments { index, text, at } => {
                let rest = text.get(*at..).filter(|rest| !rest.is_empty())?;
                let end = rest.char_indices().nth(ARGUMENTS_PIECE).map_or(rest.len(), |(end, _)| end);
                let piece = rest.get(..end)?;
                *at += end;
                Some(Delta::ToolCall { index: *index, id: None, name: None, arguments: piece.to_owned() })
            }
            Part::Chunks { chunks, at } => {
                let chunk = chunks.get(*at)?;
                *at += 1;
                Some(match &chunk.delta {
                    Delta::Content(text) if chunk.has_blanks => Delta::Content(blanks.fill(text)),
                    Delta::Reasoning(text) if chunk.has_blanks => Delta::Reasoning(blanks.fill(text)),
                    delta => delta.clone(),
                })
            }
        }
    }
}

/// The first `n` words with the space before each; the space at the end belongs to the last word.
fn first_words(text: &str, n: usize) -> &str {
    let (mut words, mut in_word) = (0, false);
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if in_word && words == n && !text.get(at..).unwrap_or_default().trim_start().is_empty() {
                return text.get(..at).unwrap_or(text);
            }
            in_word = false;
        } else if !in_word {
            in_word = true;
            words += 1;
        }
    }
    text
}

/// An answer being played.
struct Play {
    parts: std::vec::IntoIter<Part>,
    current: Option<Part>,
    blanks: Blanks,
    /// Sent after the last piece, unless that was a finish.
    finish: Option<Finish>,
    until_failure: Option<usize>,
    failure: Option<String>,
    pause: Option<Pause>,
    over: bool,
}

impl Play {
    fn next_delta(&mut self) -> Option<Delta> {
        loop {
            if let Some(delta) = self.current.as_mut().and_then(|part| part.next(&self.blanks)) {
                return Some(delta);
            }
            self.current = self.parts.next();
            if self.current.is_none() {
                return self.finish.take().map(Delta::Finish);
            }
        }
    }

    /// The failure, if it is due now: after its number of pieces, or instead of a finish that comes earlier.
    fn failure_due(&mut self, last: bool) -> Option<Error> {
        let left = self.until_failure?;
        self.until_failure = Some(left.saturating_sub(1));
        if left == 0 || last { self.failure.take().map(failed) } else { None }
    }
}

impl Stream for Play {
    type Item = Result<Delta, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.over {
            return Poll::Ready(None);
        }
        if let Some(pause) = &mut self.pause {
            ready!(pause.poll(context));
        }
        let delta = self.next_delta();
        self.over = matches!(delta, None | Some(Delta::Finish(_)));
        let last = self.over;
        match self.failure_due(last) {
            Some(error) => {
                self.over = true;
                Poll::Ready(Some(Err(error)))
            }
            None => Poll::Ready(delta.map(Ok)),
        }
    }
}

/// The pause before each piece.
struct Pause {
    length: Duration,
    sleep: Pin<Box<Sleep>>,
    running: bool,
}

impl Pause {
    fn new(length: Duration) -> Self {
        Pause { length, sleep: Box::pin(sleep(length)), running: true }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !std::mem::replace(&mut self.running, true) {
            self.sleep.as_mut().reset(Instant::now() + self.length);
        }
        ready!(self.sleep.as_mut().poll(context));
        self.running = false;
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt};

    use super::*;
    use crate::{Answer, Model, Scripted, ToolCall, ToolSpec};

    fn request(messages: Vec<Message>, tools: &[&str]) -> Request {
        let tool = |name: &&str| ToolSpec { name: name.to_string(), ..ToolSpec::default() };
        Request { messages, tools: tools.iter().map(tool).collect(), ..Request::default() }
    }

    /// Pieces as `text|text`, reasoning in parentheses, a call as `#index name arguments`, the finish as `.word`.
    fn play(model: &Scripted, request: &Request) -> String {
        let mut shown = Vec::new();
        let mut stream = match model.stream(request.clone()).now_or_never().unwrap() {
            Ok(stream) => stream,
            Err(error) => return format!("!{error}"),
        };
        while let Some(item) = stream.next().now_or_never().unwrap() {
            shown.push(match item {
                Ok(Delta::Content(text)) => text,
                Ok(Delta::Reasoning(text)) => format!("({text})"),
                Ok(Delta::ToolCall { index, name, arguments, .. }) => {
                    format!("#{index} {}{arguments}", name.unwrap_or_default())
                }
                Ok(Delta::Finish(finish)) => format!(".{}", finish.raw),
                Ok(other) => format!("{other:?}"),
                Err(error) => format!("!{error}"),
            });
        }
        shown.join("|")
    }

    fn check(script: &str, prompt: &str, expected: &str) {
        let model = Scripted::parse(script).unwrap();
        assert_eq!(play(&model, &request(vec![Message::user(prompt)], &["exec"])), expected, "{script}");
    }

    #[test]
    fn turns_are_cut_into_pieces() {
        check(r#"{"turns":[{"text":"one two  three "}]}"#, "", "one| two|  three |.stop");
        check(r#"{"turns":[{"text":"a b c d e","words":2,"finish":"length"}]}"#, "", "a b| c d| e|.length");
        check(r#"{"turns":[{"reasoning":"why so","text":"é"}]}"#, "", "(why)|( so)|é|.stop");
        check(r#"{"turns":[{}]}"#, "", ".stop");
        check(
            r#"{"turns":[{"tool_calls":[{"tool":"exec","args":{"command":"echo one two"}}]}]}"#,
            "",
            "#0 exec|#0 {\"command\":\"echo|#0  one two\"}|.tool_calls",
        );
        check(
            r#"{"turns":[{"text":"ok","tool_calls":[{"tool":"rm"}],"words":99}]}"#,
            "",
            "ok|\nI would call the tool `rm` now, but this request does not offer it.|.stop",
        );
    }

    #[test]
    fn chunks_are_sent_as_they_are() {
        check(
            r#"{"turns":[{"chunks":[{"type":"content","text":"a b"},{"type":"reasoning","text":"{prompt}"},
                {"type":"tool_call_delta","index":1,"name":"x","text":"{prompt}"},{"type":"finish","finishReason":"odd"}]}]}"#,
            "P",
            "a b|(P)|#1 x{prompt}|.odd",
        );
        check(r#"{"turns":[{"chunks":[{"type":"tool_call_delta","name":"x"}]}]}"#, "", "#0 x|.tool_calls");
        let whole = Scripted::new(Script::from_deltas([Delta::Content("{prompt}".into())]));
        assert_eq!(play(&whole, &request(vec![], &[])), "{prompt}|.stop");
    }

    #[test]
    fn blanks_are_filled_in_once() {
        check(
            r#"{"turns":[{"text":"<{prompt}{prompt}>{other}{last_tool}","words":9}]}"#,
            "{prompt}",
            "<{prompt}{prompt}>{other}|.stop",
        );
        check(
            r#"{"turns":[{"tool_calls":[{"tool":"exec","args":{"a":["{prompt}"]}}]}]}"#,
            "\"",
            "#0 exec|#0 {\"a\":[\"\\\"\"]}|.tool_calls",
        );
    }

    #[test]
    fn failures_come_at_once_or_later() {
        check(r#"{"turns":[{"text":"a b","error":"no"}]}"#, "", "!no");
        check(r#"{"turns":[{"text":"a b","error":"no","after":0}]}"#, "", "!no");
        check(r#"{"turns":[{"text":"a b","error":"no","after":1}]}"#, "", "a|!no");
        check(r#"{"turns":[{"text":"a b","error":"no","after":9}]}"#, "", "a| b|!no");
    }

    #[test]
    fn rounds_follow_the_conversation_and_sequences_the_requests() {
        let script =
            r#"{"turns":[{"tool_calls":[{"tool":"exec"}]},{"text":"{last_tool}"}],"repeat_last":false}"#;
        let model = Scripted::parse(script).unwrap();
        let call = || ToolCall { id: "call_1".into(), name: "exec".into(), arguments: "{}".into() };
        let round = || [Message::assistant_calls("", vec![call()]), Message::tool("call_1", " out\n")];
        let mut messages = vec![Message::user("x")];
        assert_eq!(play(&model, &request(messages.clone(), &["exec"])), "#0 exec|#0 {}|.tool_calls");
        messages.extend(round());
        assert_eq!(play(&model, &request(messages.clone(), &["exec"])), "out|.stop");
        messages.extend(round());
        let over = "!the script is over: it has 2 turns here and this would be turn 3";
        assert_eq!(play(&model, &request(messages.clone(), &["exec"])), over);
        messages.push(Message::user("again"));
        assert_eq!(play(&model, &request(messages, &["exec"])), "#0 exec|#0 {}|.tool_calls");

        let model = Scripted::parse(r#"{"order":"sequence","turns":[{"text":"a"},{"text":"b"}]}"#).unwrap();
        let ask = |model: &Scripted| play(model, &request(vec![], &[]));
        assert_eq!((ask(&model), ask(&model.clone())), ("a|.stop".into(), "b|.stop".into()));
        assert_eq!(ask(&model), over);
    }

    #[test]
    fn ids_differ_between_rounds() {
        let model = Scripted::parse(r#"{"turns":[{"tool_calls":[{"tool":"a"},{"tool":"a"}]}]}"#).unwrap();
        let mut messages = vec![Message::user("x")];
        for expected in [["call_1", "call_2"], ["call_3", "call_4"]] {
            let stream = model.stream(request(messages.clone(), &["a"])).now_or_never().unwrap().unwrap();
            let answer = Answer::collect(stream).now_or_never().unwrap().unwrap();
            assert_eq!(
                answer.message.tool_calls.iter().map(|call| call.id.as_str()).collect::<Vec<_>>(),
                expected
            );
            messages.push(answer.message);
        }
    }

    #[test]
    fn conditions_choose_a_list() {
        assert!(says("please run it", "run") && says("running", "run") && !says("a trunk", "run"));
        assert!(says("prune and run", "run") && says("x-y", "-y"));
        let script =
            r#"{"turns":[{"text":"else"},{"when":"One","text":"1"},{"when_before":["one"],"text":"then"}]}"#;
        let model = Scripted::parse(script).unwrap();
        let ask = |prompts: &[&str]| {
            play(&model, &request(prompts.iter().map(|p| Message::user(*p)).collect(), &[]))
        };
        assert_eq!(ask(&["ONE"]), "1|.stop");
        assert_eq!(ask(&["two"]), "else|.stop");
        assert_eq!(ask(&["one", "two"]), "then|.stop");
        assert_eq!(ask(&["one", "two", "two"]), "else|.stop");
    }

    #[tokio::test(start_paused = true)]
    async fn the_demo_shows_what_rules_can_be_about() {
        let demo = Scripted::demo();
        let ask = async |prompts: &[&str]| {
            let messages = prompts.iter().map(|prompt| Message::user(*prompt)).collect();
            let mut stream = demo.stream(request(messages, &["exec"])).await.unwrap();
            let (mut answer, mut pieces) = (Answer::default(), 0);
            while let Some(delta) = stream.next().await {
                answer.push(delta.unwrap());
                pieces += 1;
            }
            assert!(pieces > 3, "{prompts:?}");
            answer.message
        };
        assert!(ask(&["hello"]).await.content.starts_with("Hello! You said: hello."));
        assert!(ask(&["tell me a secret"]).await.content.contains("api_key=sk-demo-0000"));
        assert!(!ask(&["think hard"]).await.reasoning.is_empty());
        let calls = ask(&["run it"]).await.tool_calls;
        assert_eq!(calls[0].arguments, r#"{"command":"echo hello from a tool"}"#);
        assert_eq!(ask(&["say you are unsure"]).await.content, "I don't know.");
        assert!(ask(&["say you don't know", "please try again"]).await.content.contains("better answer"));
    }

    #[tokio::test(start_paused = true)]
    async fn delays_come_before_each_piece() {
        let model = Scripted::parse(r#"{"turns":[{"text":"a b","delay_ms":100}]}"#).unwrap();
        let start = Instant::now();
        let stream = model.stream(Request::default()).await.unwrap();
        assert_eq!(stream.count().await, 3);
        assert_eq!(start.elapsed().as_millis() / 10, 30);
    }
}
