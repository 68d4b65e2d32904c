//! Every recorded answer, however its bytes are cut, reads the same, and reads as the provider's own SDK read it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hookgate_llm::{Answer, Delta, Error, Provider, sse, wire};
use serde_json::Value;

/// Captures that we rightly read otherwise than the SDK that asked.
const DIFFERENT: &[(&str, &str)] = &[
    ("py-openai_chat_q_reasoning_field", "that program looks for reasoning_content only"),
    ("py-openai_chat_q_no_tool_index", "that program uses the missing index as a key; we count"),
    ("py-openai_chat_q_two_choices", "that program mixes both choices; we read choice 0"),
    ("py-int_anthropic_tool_stop", HALF_INPUT),
    ("py-int_anthropic_tool_filter", HALF_INPUT),
    ("py-int_anthropic_tool_error_event", HALF_INPUT),
    ("py-int_anthropic_tool_done", HALF_INPUT),
    ("py-int_openai_chat_nothing", NO_END),
    ("py-int_openai_chat_tool_nothing", NO_END),
    ("py-int_anthropic_nothing", NO_END),
    ("py-int_anthropic_tool_nothing", NO_END),
    ("js-vercel_compat_stream_error_mid", ERROR_IN_RESULT),
    ("js-vercel_oaichat_stream_think_tool-2", "that program has no reasoning on this wire"),
    ("js-vercel_oaichat_stream_error_mid", ERROR_IN_RESULT),
    ("js-vercel_ant_stream_error_mid", ERROR_IN_RESULT),
];
const HALF_INPUT: &str = "the SDK makes {} of half an input; we keep what was written";
const NO_END: &str = "the SDK takes a missing end for an end; we say that the answer was cut";
const ERROR_IN_RESULT: &str = "the SDK lists the error beside the text; we fail with it";

#[derive(Debug, PartialEq)]
struct Read {
    deltas: Vec<Delta>,
    error: Option<String>,
}

impl Read {
    fn answer(&self) -> Answer {
        let mut answer = Answer::default();
        self.deltas.iter().cloned().for_each(|delta| answer.push(delta));
        answer
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures")
}

/// The captures of the wires that the client speaks.
fn captures() -> Vec<Value> {
    let index: Value = serde_json::from_slice(&fs::read(folder().join("index.json")).unwrap()).unwrap();
    let mut captures = index["captures"].as_array().unwrap().clone();
    captures.retain(|capture| capture["wire"].as_str().unwrap().parse::<Provider>().is_ok());
    captures
}

fn wire_of(capture: &Value) -> &'static wire::Wire {
    let provider: Provider = capture["wire"].as_str().unwrap().parse().unwrap();
    provider.wire()
}

fn body_of(capture: &Value) -> Vec<u8> {
    fs::read(folder().join(capture["response"].as_str().unwrap())).unwrap()
}

fn is_stream(capture: &Value) -> bool {
    capture["response"].as_str().unwrap().ends_with(".sse")
}

fn read_stream<'a>(wire: &wire::Wire, pieces: impl IntoIterator<Item = &'a [u8]>) -> Read {
    let (mut parser, mut decoder, mut deltas) = (sse::Parser::new(), (wire.decoder)(), Vec::new());
    let mut drain = |parser: &mut sse::Parser, end: bool| -> Result<(), Error> {
        while let Some(event) = parser.next_event().unwrap() {
            decoder.event(&event, &mut deltas)?;
        }
        if end { decoder.finish(&mut deltas) } else { Ok(()) }
    };
    let mut result = Ok(());
    for piece in pieces {
        parser.push(piece);
        result = result.and_then(|()| drain(&mut parser, false));
    }
    parser.finish();
    let error = result.and_then(|()| drain(&mut parser, true)).err().map(|error| error.to_string());
    Read { deltas, error }
}

fn read_whole(capture: &Value) -> Read {
    let body = body_of(capture);
    if is_stream(capture) {
        return read_stream(wire_of(capture), [&body[..]]);
    }
    if capture["status"] != 200 {
        return Read { deltas: Vec::new(), error: Some(wire::Failure::from_body(&body).message) };
    }
    match wire_of(capture).decode_whole(&body) {
        Ok(deltas) => Read { deltas, error: None },
        Err(error) => Read { deltas: Vec::new(), error: Some(error.to_string()) },
    }
}

#[test]
fn bytes_one_by_one_read_as_the_whole() {
    for capture in captures().iter().filter(|capture| is_stream(capture)) {
        let (name, body, wire) = (&capture["name"], body_of(capture), wire_of(capture));
        assert_eq!(read_stream(wire, body.chunks(1)), read_stream(wire, [&body[..]]), "{name}");
    }
}

/// Decoders see events only, so cuts are tried on the parser alone. A cut inside an event can change that event and
/// the next one; the events before it are taken in first.
#[test]
fn a_cut_anywhere_gives_the_same_events() {
    for capture in captures().iter().filter(|capture| is_stream(capture)) {
        let (name, body) = (&capture["name"], body_of(capture));
        let (ends, whole) = boundaries(&body);
        for (n, end) in ends.iter().enumerate() {
            let start = if n == 0 { 0 } else { ends[n - 1] };
            let stop = *ends.get(n + 1).unwrap_or(end);
            let mut before = sse::Parser::new();
            assert_eq!(take(&mut before, &body[..start]), whole[..n], "{name}");
            for at in start..*end {
                let mut parser = before.clone();
                let mut events = take(&mut parser, &body[start..at]);
                events.extend(take(&mut parser, &body[at..stop]));
                assert_eq!(events, whole[n..whole.len().min(n + 2)], "{name} cut at {at}");
            }
        }
    }
}

type Plain = (String, String, bool);

/// Where each event is complete, and all events. The last one is there only if a blank line ends it.
fn boundaries(body: &[u8]) -> (Vec<usize>, Vec<Plain>) {
    let (mut parser, mut ends, mut events) = (sse::Parser::new(), Vec::new(), Vec::new());
    for (at, byte) in body.iter().enumerate() {
        let new = take(&mut parser, &[*byte]);
        ends.extend(new.iter().map(|_| at + 1));
        events.extend(new);
    }
    (ends, events)
}

fn take(parser: &mut sse::Parser, bytes: &[u8]) -> Vec<Plain> {
    parser.push(bytes);
    let mut events = Vec::new();
    while let Some(event) = parser.next_event().unwrap() {
        events.push((event.event.to_string(), event.data.to_string(), event.closed));
    }
    events
}

#[test]
fn answers_end_or_fail_and_nothing_is_unknown_but_what_is() {
    for capture in captures() {
        let (name, read) = (capture["name"].as_str().unwrap(), read_whole(&capture));
        let finishes = read.deltas.iter().filter(|delta| matches!(delta, Delta::Finish(_))).count();
        assert_eq!(finishes == 1, read.error.is_none(), "{name}: {read:?}");
        if read.error.is_some() {
            continue;
        }
        for call in read.answer().message.tool_calls {
            assert!(!call.id.is_empty() && !call.name.is_empty(), "{name}: {call:?}");
        }
        for other in read.answer().other {
            let kind = other.split(' ').next().unwrap();
            assert!(["timings", "prompt_filter_results", "logprobs"].contains(&kind), "{name}: {other}");
        }
    }
}

#[test]
fn errors_are_read() {
    for capture in captures().iter().filter(|capture| capture["status"] != 200) {
        let failure = wire::Failure::from_body(&body_of(capture));
        let name = capture["name"].as_str().unwrap();
        assert!(failure.message.len() > 5 && !failure.message.starts_with('{'), "{name}: {failure:?}");
        assert!(failure.kind.is_some(), "{name}: {failure:?}");
        if let Some(message) = capture["client_saw"]["message"].as_str() {
            assert!(message.contains(&failure.message), "{name}: {message}");
        }
    }
}

#[test]
fn answers_read_as_the_sdk_read_them() {
    let all = captures();
    let mut different = Vec::new();
    for capture in &all {
        let name = capture["name"].as_str().unwrap();
        let saw = &capture["client_saw"];
        let read = read_whole(capture);
        let problem = if saw.get("exception").is_some() {
            read.error.is_none().then(|| format!("it raised {}, we did not", saw["exception"]))
        } else if let Some(saw) = saw.get("ok") {
            compare(saw, &read, &rounds(&all, name))
        } else {
            None
        };
        if let Some(problem) = problem {
            different.push((name.to_owned(), problem));
        }
    }
    let got: Vec<&str> = different.iter().map(|(name, _)| name.as_str()).collect();
    let expected: Vec<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    assert_eq!(got, expected, "{different:#?}");
}

/// All answers of the conversation that this capture ends: `x-1`, `x-2` and so on.
fn rounds(all: &[Value], name: &str) -> Vec<Answer> {
    let Some((base, last)) = name.rsplit_once('-') else { return Vec::new() };
    let Ok(last) = last.parse::<usize>() else { return Vec::new() };
    let find = |n: usize| all.iter().find(|capture| capture["name"] == format!("{base}-{n}"));
    (1..=last).filter_map(find).map(|capture| read_whole(capture).answer()).collect()
}

/// What differs between what the SDK saw and what we read.
fn compare(saw: &Value, read: &Read, rounds: &[Answer]) -> Option<String> {
    if let Some(error) = &read.error {
        return Some(format!("we fail: {error}"));
    }
    let answer = read.answer();
    let finish = answer.finish.as_ref().map(|finish| finish.raw.clone()).unwrap_or_default();
    let text = &answer.message.content;
    let reasoning: String = answer.message.reasoning.iter().map(|block| block.text.as_str()).collect();
    let mut differences = Vec::new();
    let mut check = |what: &str, saw: String, ours: String| {
        if saw != ours {
            differences.push(format!("{what}: it saw `{saw}`, we `{ours}`"));
        }
    };
    let string = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    if let Some(content) = saw.get("content") {
        if *content != anthropic_content(&answer) {
            check("content", content.to_string(), anthropic_content(&answer).to_string());
        }
        check("stop", string(&saw["stop"]), finish);
    } else if saw.get("ran").is_some() || saw.get("final").is_some() {
        let texts: Vec<&str> = rounds.iter().map(|answer| answer.message.content.as_str()).collect();
        let joined = if saw.get("parts").is_some() { texts.concat() } else { text.clone() };
        let key = if saw.get("final").is_some() { "final" } else { "text" };
        check(key, string(&saw[key]), joined);
        if saw.get("parts").is_some() {
            let blocks = rounds.iter().flat_map(|answer| &answer.message.reasoning);
            check("reasoning", string(&saw["reasoning"]), blocks.map(|block| block.text.as_str()).collect());
        }
    } else {
        check("text", string(&saw["text"]), text.clone());
        check("finish", string(saw.get("finish").unwrap_or(&saw["stop"])), finish);
        if let Some(calls) = saw.get("calls") {
            check("reasoning", string(&saw["reasoning"]), reasoning);
            check("calls", calls.to_string(), openai_calls(&answer).to_string());
        }
        if let Some(used) = saw["usage"].as_object() {
            check("input", used["prompt_tokens"].to_string(), answer.usage.input_tokens.unwrap().to_string());
            check(
                "output",
                used["completion_tokens"].to_string(),
                answer.usage.output_tokens.unwrap().to_string(),
            );
        }
    }
    (!differences.is_empty()).then(|| differences.join("; "))
}

fn openai_calls(answer: &Answer) -> Value {
    let calls = answer.message.tool_calls.iter().enumerate();
    let call = |(n, call): (usize, &hookgate_llm::ToolCall)| {
        (n.to_string(), serde_json::json!({ "id": call.id, "name": call.name, "args": call.arguments }))
    };
    serde_json::to_value(calls.map(call).collect::<BTreeMap<_, _>>()).unwrap()
}

fn anthropic_content(answer: &Answer) -> Value {
    let message = &answer.message;
    let thoughts = message.reasoning.iter().map(|block| {
        serde_json::json!({ "type": "thinking", "thinking": block.text, "signature": block.signature })
    });
    let text = Some(&message.content).filter(|text| !text.is_empty());
    let text = text.map(|text| serde_json::json!({ "type": "text", "text": text }));
    let calls = message.tool_calls.iter().map(|call| {
        let input: Value =
            serde_json::from_str(&call.arguments).unwrap_or_else(|_| call.arguments.clone().into());
        serde_json::json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
    });
    thoughts.chain(text).chain(calls).collect()
}
