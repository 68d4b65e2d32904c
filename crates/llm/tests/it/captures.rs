//! Every recorded answer, however its bytes are cut, reads the same, and reads as the provider's own SDK read it.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hookgate_llm::{Answer, Delta, Error, Provider, sse, wire};
use serde_json::Value;

/// Two-piece cuts are tried at every position of files up to this size, and at some positions of larger ones.
const EVERY_CUT: usize = 8 * 1024;

/// Captures that we rightly read otherwise than the SDK that asked.
const DIFFERENT: &[(&str, &str)] = &[];

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

fn captures() -> Vec<Value> {
    let index: Value = serde_json::from_slice(&fs::read(folder().join("index.json")).unwrap()).unwrap();
    index["captures"].as_array().unwrap().clone()
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
fn cuts_change_nothing() {
    for capture in captures().iter().filter(|capture| is_stream(capture)) {
        let (name, body, wire) = (&capture["name"], body_of(capture), wire_of(capture));
        let whole = read_stream(wire, [&body[..]]);
        assert_eq!(read_stream(wire, body.chunks(1)), whole, "{name} byte by byte");
        let step = body.len().div_ceil(EVERY_CUT).pow(4);
        for at in (0..body.len()).step_by(step) {
            assert_eq!(read_stream(wire, [&body[..at], &body[at..]]), whole, "{name} cut at {at}");
        }
    }
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
        check("content", content.to_string(), anthropic_content(&answer).to_string());
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
    let sorted = |value: Value| {
        serde_json::to_value(serde_json::from_value::<BTreeMap<String, Value>>(value).unwrap())
    };
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
    thoughts.chain(text).chain(calls).map(|block| sorted(block).unwrap()).collect()
}
