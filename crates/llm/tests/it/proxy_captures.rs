//! Every recorded answer passes byte for byte however it is cut, and reads from the middle as the provider's own SDK
//! read it.

use std::fs;
use std::path::{Path, PathBuf};

use hookgate_llm::proxy::{self, ChannelKind, Exchange, Middle, Note, Piece};
use hookgate_llm::{Finish, sse};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Captures that we rightly read otherwise than the SDK that asked.
const DIFFERENT: &[(&str, &str)] = &[
    ("py-openai_chat_q_reasoning_field", "that program looks for reasoning_content only"),
    ("py-openai_chat_q_no_tool_index", "that program uses the missing index as a key; we count"),
    ("py-openai_chat_q_two_choices", "that program mixes both choices; we keep them apart"),
    ("js-vercel_oaichat_stream_think_tool-2", "that program has no reasoning on this wire"),
    ("py-int_anthropic_tool_stop", HALF_INPUT),
    ("py-int_anthropic_tool_filter", HALF_INPUT),
    ("py-int_anthropic_tool_error_event", HALF_INPUT),
    ("py-int_anthropic_tool_done", HALF_INPUT),
    ("py-int_anthropic_tool_nothing", HALF_INPUT),
];
const HALF_INPUT: &str = "the SDK makes {} of half an input; we keep what was written";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures")
}

fn captures() -> Vec<Value> {
    let index: Value = serde_json::from_slice(&fs::read(folder().join("index.json")).unwrap()).unwrap();
    index["captures"].as_array().unwrap().clone()
}

fn body_of(capture: &Value) -> Vec<u8> {
    fs::read(folder().join(capture["response"].as_str().unwrap())).unwrap()
}

fn is_stream(capture: &Value) -> bool {
    capture["response"].as_str().unwrap().ends_with(".sse")
}

const WIRES: [&dyn Middle; 4] =
    [&proxy::OPENAI_CHAT, &proxy::OPENAI_RESPONSES, &proxy::ANTHROPIC, &proxy::GEMINI];

fn middle_of(capture: &Value) -> &'static dyn Middle {
    *WIRES.iter().find(|wire| capture["wire"] == wire.name()).unwrap()
}

/// What was read.
#[derive(Debug, Default, PartialEq)]
struct Read {
    text: String,
    reasoning: String,
    calls: Vec<proxy::Call>,
    finishes: Vec<String>,
    errors: Vec<String>,
    asides: Vec<String>,
    choices: usize,
    whole: bool,
}

impl Read {
    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text { channel, text } => {
                assert!(!text.is_empty());
                self.choices = self.choices.max(channel.choice as usize + 1);
                match channel.kind {
                    ChannelKind::Content if channel.choice == 0 => self.text.push_str(&text),
                    ChannelKind::Reasoning if channel.choice == 0 => self.reasoning.push_str(&text),
                    _ => {}
                }
            }
            Piece::CallEnd { call, .. } => self.calls.push(call),
            Piece::Finish { reason, .. } => self.finishes.push(reason.into_owned()),
            Piece::Error(text) => self.errors.push(text.into_owned()),
            Piece::Aside(text) => self.asides.push(text.into_owned()),
            Piece::Loose { text, .. } => self.asides.push(text.into_owned()),
            Piece::CallBegin { .. } | Piece::Closing { .. } | Piece::Done | Piece::Usage { .. } => {}
        }
    }
}

/// Reads and writes a stream: what was read, and what went out with what stands behind the last event.
fn pass<'a>(wire: &dyn Middle, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Read, Vec<u8>) {
    let mut exchange = wire.exchange(false);
    let (mut parser, mut read, mut out) = (sse::Parser::new(), Read::default(), Vec::new());
    let mut drain = |parser: &mut sse::Parser, out: &mut Vec<u8>| {
        while let Some(event) = parser.next_event().unwrap() {
            let note = exchange.read(&event, &mut |piece| read.take(piece)).unwrap();
            exchange.write(&event, note, &[], out);
        }
    };
    for piece in pieces {
        parser.push(piece);
        drain(&mut parser, &mut out);
    }
    parser.finish();
    drain(&mut parser, &mut out);
    out.extend_from_slice(parser.rest());
    read.whole = exchange.ended(&mut |piece| read.take(piece));
    (read, out)
}

#[test]
fn streams_pass_byte_for_byte_however_they_are_cut() {
    let mut n_streams = 0;
    for capture in captures().iter().filter(|capture| is_stream(capture)) {
        n_streams += 1;
        let (name, body, wire) = (&capture["name"], body_of(capture), middle_of(capture));
        let (read, out) = pass(wire, [&body[..]]);
        assert!(out == body, "{name}:\n{}", String::from_utf8_lossy(&out));
        assert_eq!(pass(wire, body.chunks(1)), (read, body.clone()), "{name} byte by byte");
        // Some cuts; what each cut does to events and their bytes is tested with the parser.
        for at in (0..body.len()).step_by(1 + body.len() / 30) {
            let (before, after) = body.split_at(at);
            assert!(pass(wire, [before, after]).1 == body, "{name} cut at {at}");
        }
    }
    assert!(n_streams > 200, "{n_streams}");
}

/// Events that are read long before they are written pass unchanged too.
#[test]
fn what_is_held_passes_byte_for_byte() {
    for capture in captures().iter().filter(|capture| is_stream(capture)) {
        let (body, mut exchange) = (body_of(capture), middle_of(capture).exchange(false));
        let mut held: Vec<(Vec<u8>, Note)> = Vec::new();
        let mut parser = sse::Parser::new();
        parser.push(&body);
        parser.finish();
        while let Some(event) = parser.next_event().unwrap() {
            held.push((event.raw.to_vec(), exchange.read(&event, &mut |_| {}).unwrap()));
        }
        let mut out = Vec::new();
        for (raw, note) in held {
            let mut parser = sse::Parser::new();
            parser.push(&raw);
            parser.finish();
            let mut event = parser.next_event().unwrap().unwrap();
            event.raw = &raw;
            exchange.write(&event, note, &[], &mut out);
        }
        out.extend_from_slice(parser.rest());
        assert!(out == body, "{}:\n{}", capture["name"], String::from_utf8_lossy(&out));
    }
}

/// Every text of every answer becomes another one: nothing of what was said is left anywhere, and what went out reads
/// as the new texts.
#[test]
fn changed_texts_leave_nothing_behind() {
    let (mut n_words, mut left) = (0, Vec::new());
    for capture in captures().iter().filter(|capture| is_stream(capture)) {
        let (name, body, wire) = (&capture["name"], body_of(capture), middle_of(capture));
        let mut exchange = wire.exchange(false);
        let (mut parser, mut said, mut out, mut n_texts) = (sse::Parser::new(), String::new(), Vec::new(), 0);
        parser.push(&body);
        parser.finish();
        while let Some(event) = parser.next_event().unwrap() {
            let mut changes = Vec::new();
            let note = exchange.read(&event, &mut |piece| {
                if let Piece::Text { text, channel } = piece {
                    said.push_str(&text);
                    n_texts += usize::from(channel.kind == ChannelKind::Content && channel.choice == 0);
                    let nth = u32::try_from(changes.len()).unwrap();
                    changes.push(proxy::Change::Text { nth, text: "*".to_owned() });
                }
            });
            exchange.write(&event, note.unwrap(), &changes, &mut out);
        }
        let text = String::from_utf8(out).unwrap();
        let words = said.split(|c: char| !c.is_alphabetic()).filter(|word| word.chars().count() > 4);
        // Words that stand in names and ids of the wire too.
        let of_the_wire = [
            "script", "comma", "shell", "model", "token", "output", "stream", "answer", "index", "event",
            "created", "content", "reason", "details",
        ];
        for word in words.filter(|word| !of_the_wire.iter().any(|name| word.contains(name))) {
            n_words += 1;
            left.extend(text.contains(word).then(|| format!("{name}: {word}")));
        }
        assert_eq!(pass(wire, [text.as_bytes()]).0.text, "*".repeat(n_texts), "{name}");
    }
    assert!(left.is_empty(), "{left:#?}");
    assert!(n_words > 300, "{n_words}");
}

fn read(capture: &Value) -> Read {
    let (body, wire) = (body_of(capture), middle_of(capture));
    if is_stream(capture) {
        return pass(wire, [&body[..]]).0;
    }
    let value = proxy::read_json(&body).unwrap();
    let mut exchange = wire.exchange(true);
    let mut read = Read { whole: true, ..Read::default() };
    exchange.read_body(&value, &mut |piece| read.take(piece)).unwrap();
    assert_eq!(exchange.write_body(value.clone(), &[], None), value, "{}", capture["name"]);
    read
}

#[test]
fn answers_read_as_the_sdk_read_them() {
    let all = captures();
    let mut different = Vec::new();
    let mut n_compared = 0;
    for capture in &all {
        let name = capture["name"].as_str().unwrap();
        let (saw, read) = (&capture["client_saw"], read(capture));
        let problem = if saw.get("exception").is_some() {
            (read.errors.is_empty() && read.whole)
                .then(|| format!("it raised {}, we did not", saw["exception"]))
        } else if let Some(saw) = saw.get("ok") {
            n_compared += 1;
            compare(saw, &read, &rounds(&all, name))
        } else {
            None
        };
        different.extend(problem.map(|problem| (name.to_owned(), problem)));
    }
    assert!(n_compared > 90, "{n_compared}");
    let mut got: Vec<&str> = different.iter().map(|(name, _)| name.as_str()).collect();
    let mut expected: Vec<&str> = DIFFERENT.iter().map(|(name, _)| *name).collect();
    got.sort_unstable();
    expected.sort_unstable();
    assert_eq!(got, expected, "{different:#?}");
}

/// All answers of the conversation that this capture ends: `x-1`, `x-2` and so on.
fn rounds(all: &[Value], name: &str) -> Vec<Read> {
    let Some((base, last)) = name.rsplit_once('-') else { return Vec::new() };
    let Ok(last) = last.parse::<usize>() else { return Vec::new() };
    let find = |n: usize| all.iter().find(|capture| capture["name"] == format!("{base}-{n}"));
    (1..=last).filter_map(find).map(read).collect()
}

/// What differs between what the SDK saw and what we read.
fn compare(saw: &Value, read: &Read, rounds: &[Read]) -> Option<String> {
    let mut differences = Vec::new();
    let mut check = |what: &str, saw: Value, ours: Value| {
        if saw != ours {
            differences.push(format!("{what}: it saw `{saw}`, we `{ours}`"));
        }
    };
    let joined = |of: fn(&Read) -> &str| rounds.iter().map(of).collect::<String>();
    let streamed_rounds = saw.get("parts").is_some() && !rounds.is_empty();
    if let Some(content) = saw.get("content") {
        check("content", content.clone(), blocks(read));
    } else if let Some(last) = saw.get("final").filter(|_| saw.get("by_previous_id").is_none()) {
        check("final", last.clone(), read.text.as_str().into());
    } else if let Some(text) = saw.get("text") {
        let ours = if streamed_rounds { joined(|read| &read.text) } else { read.text.clone() };
        check("text", text.clone(), ours.into());
    }
    if let Some(thoughts) = saw.get("reasoning").or_else(|| saw.get("thought")) {
        let ours = if streamed_rounds { joined(|read| &read.reasoning) } else { read.reasoning.clone() };
        check("reasoning", thoughts.clone(), ours.into());
    }
    if let Some(calls) = saw.get("calls").filter(|_| saw.get("final").is_none()) {
        check("calls", as_list(calls), calls_of(read, calls));
    }
    let failed = saw["status"] == "failed" || saw.get("errs").is_some_and(|errors| errors != &json!([]));
    check(
        "failed",
        failed.into(),
        (!read.errors.is_empty() && saw.get("status") != Some(&Value::Null)).into(),
    );
    if let Some(word) = saw.get("finish").or_else(|| saw.get("stop")).filter(|_| !failed) {
        let neutral = |word: &str| match Finish::from_word(word.replace('-', "_")).as_str() {
            // Gemini has no word of its own for calls.
            "stop" if !read.calls.is_empty() && word == "STOP" => "tool_calls".to_owned(),
            word => word.to_owned(),
        };
        let saw = word.as_str().map(neutral);
        check("finish", saw.into(), read.finishes.last().cloned().into());
    }
    if let Some(status) = saw.get("status").filter(|_| !failed) {
        let ours = read.finishes.last().map(|word| match word.as_str() {
            "stop" | "tool_calls" => "completed",
            _ => "incomplete",
        });
        check("status", status.clone(), ours.into());
    }
    (!differences.is_empty()).then(|| differences.join("; "))
}

/// Anthropic's blocks.
fn blocks(read: &Read) -> Value {
    let thought = Some(&read.reasoning)
        .filter(|text| !text.is_empty())
        .map(|text| json!({ "type": "thinking", "thinking": text, "signature": "c2NyaXB0ZWQ=" }));
    let text = Some(&read.text).filter(|text| !text.is_empty());
    let text = text.map(|text| json!({ "type": "text", "text": text }));
    let calls = read.calls.iter().map(|call| {
        let input: Value = serde_json::from_str(&call.arguments).unwrap_or(call.arguments.clone().into());
        json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input })
    });
    thought.into_iter().chain(text).chain(calls).collect()
}

fn as_list(calls: &Value) -> Value {
    match calls {
        Value::Object(calls) => calls.iter().map(|(index, call)| json!([index, call])).collect(),
        calls => calls.clone(),
    }
}

/// Our calls in the shape that the SDK's program wrote them in.
fn calls_of(read: &Read, like: &Value) -> Value {
    let one = |(n, call): (usize, &proxy::Call)| {
        let parsed: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        match like {
            Value::Object(_) => {
                json!([n.to_string(), { "id": call.id, "name": call.name, "args": call.arguments }])
            }
            like if like[0].is_array() => json!([call.name, parsed]),
            _ => json!({ "id": call.id, "name": call.name, "args": parsed }),
        }
    };
    read.calls.iter().enumerate().map(one).collect()
}

#[test]
fn recorded_answers_have_nothing_that_is_not_understood() {
    let mut asides: Vec<(String, Vec<String>)> = Vec::new();
    for capture in captures() {
        let read = read(&capture);
        // what an error says is shown to hooks too
        if !read.asides.is_empty() && read.errors.is_empty() {
            asides.push((capture["name"].as_str().unwrap().to_owned(), read.asides));
        }
    }
    let names: Vec<&str> = asides.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, NOT_UNDERSTOOD, "{asides:#?}");
}

const NOT_UNDERSTOOD: [&str; 0] = [];

#[test]
fn recorded_requests_are_read() {
    let mut n_results = 0;
    for capture in captures() {
        let text = fs::read(folder().join(capture["request"].as_str().unwrap())).unwrap();
        let request: Value = serde_json::from_slice(&text).unwrap();
        let (name, path, body) = (&capture["name"], request["path"].as_str().unwrap(), &request["body"]);
        let wire = match proxy::route(request["method"].as_str().unwrap(), path) {
            proxy::Route::Judged(wire) => wire,
            other => panic!("{name}: {path} is {other:?}"),
        };
        assert_eq!(capture["wire"], wire.name(), "{name}");
        let asked = wire.asked(path, body).unwrap_or_else(|odd| panic!("{name}: {odd}"));
        assert!(!asked.model.is_empty() && !asked.messages.is_empty(), "{name}");
        if capture["status"] == 200 {
            assert_eq!(asked.stream, is_stream(&capture), "{name}");
        }
        n_results +=
            asked.messages.iter().filter(|said| matches!(said.what, proxy::What::Result { .. })).count();
        assert_eq!(proxy::has_duplicate_keys(&text), None, "{name}");
    }
    assert!(n_results > 50, "{n_results}");
}

fn try_everything(bytes: &[u8]) {
    for wire in WIRES {
        let mut exchange = wire.exchange(false);
        let (mut parser, mut out) = (sse::Parser::new(), Vec::new());
        parser.push(bytes);
        parser.finish();
        let mut n = 0;
        while let Some(event) = parser.next_event().unwrap() {
            n += 1;
            let mut channels = Vec::new();
            let read = exchange.read(&event, &mut |piece| {
                if let Piece::CallBegin { channel, .. } = piece {
                    channels.push(channel);
                }
            });
            let Ok(note) = read else { break };
            if n % 3 == 0 {
                channels.into_iter().for_each(|channel| exchange.drop_call(channel));
            }
            match n % 7 {
                0 => {}
                1 => exchange.say(n % 2, "said", &mut out),
                2 => {
                    let text = if n % 4 == 0 { "new".to_owned() } else { String::new() };
                    let change = proxy::Change::Text { nth: 0, text };
                    exchange.write(&event, note, &[change], &mut out);
                }
                6 if n % 2 == 0 => exchange.next_answer(),
                _ => exchange.write(&event, note, &[], &mut out),
            }
        }
        exchange.ended(&mut |_| {});
        exchange.echo();
        exchange.end(proxy::End::Stopped, &mut out);
        exchange.fail("failed", &mut out);
        reads_again(&out);
        try_body(wire.exchange(true), bytes);
        let _ = proxy::read_json(bytes).map(|body| wire.asked("/v1beta/models/m:generateContent", &body));
    }
    let _ = proxy::has_duplicate_keys(bytes);
    let _ = proxy::route("POST", &String::from_utf8_lossy(bytes));
}

/// What goes out of our own making is well-formed. (What passes is as it came.)
fn reads_again(out: &[u8]) {
    let mut parser = sse::Parser::new();
    parser.push(out);
    parser.finish();
    let mut last = String::new();
    while let Some(event) = parser.next_event().unwrap() {
        assert!(event.closed);
        last = event.data.into_owned();
    }
    assert!(last.contains("failed"), "{last}");
}

fn try_body(mut exchange: Box<dyn Exchange>, bytes: &[u8]) {
    let Some(body) = proxy::read_json(bytes) else { return };
    if exchange.read_body(&body, &mut |_| {}).is_ok() {
        exchange.say(0, "said", &mut Vec::new());
        exchange.write_body(body.clone(), &[proxy::Change::Text { nth: 0, text: "x".into() }], None);
        exchange.next_answer();
        let _ = exchange.read_body(&body, &mut |_| {});
        exchange.write_body(body, &[], Some(proxy::End::Filtered));
    }
}

fn recorded() -> Vec<Vec<u8>> {
    let names = [
        "openai-chat/py-openai_chat_interleave.response.sse",
        "openai-chat/py-openai_chat_nonstream_tool-1.response.json",
        "openai-responses/py-openai_resp_think_tool.response.sse",
        "openai-responses/py-openai_resp_nonstream_tool-1.response.json",
        "anthropic-messages/py-anthropic_think_tool.response.sse",
        "anthropic-messages/js-vercel_ant_generate-1.response.json",
        "gemini-generate/py-genai_think.response.sse",
        "gemini-generate/py-genai_parallel.response.sse",
        "gemini-generate/py-genai_nonstream.response.json",
    ];
    names.iter().map(|name| fs::read(folder().join(name)).unwrap()).collect()
}

proptest! {
    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        try_everything(&bytes);
    }

    #[test]
    fn changed_recordings(
        mut bytes in prop::sample::select(recorded()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        length in any::<prop::sample::Index>(),
    ) {
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        try_everything(&bytes);
        bytes.truncate(length.index(bytes.len()));
        try_everything(&bytes);
    }

    #[test]
    fn values_of_other_types(
        field in prop::sample::select(vec![
            "choices", "index", "delta", "content", "tool_calls", "function", "name", "arguments", "id", "usage",
            "finish_reason", "content_block", "type", "partial_json", "message", "error", "stop_reason", "input",
            "item", "item_id", "output_index", "content_index", "part", "response", "output", "summary", "status",
            "sequence_number", "candidates", "parts", "functionCall", "args", "usageMetadata", "thought", "text",
        ]),
        value in prop::sample::select(vec!["null", "0", "-1", "18446744073709551615", "\"\"", "[]", "{}", "[null]", "true", "1.5"]),
        recording in prop::sample::select(recorded()),
    ) {
        let text = String::from_utf8(recording).unwrap();
        for space in ["", " "] {
            let found = format!("\"{field}\":{space}");
            let changed = text.replace(&found, &format!("{found}{value}, \"was_{field}\": "));
            try_everything(changed.as_bytes());
        }
    }
}
