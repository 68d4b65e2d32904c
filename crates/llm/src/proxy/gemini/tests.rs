//! Streams built by hand for each rule.

use serde_json::{Value, json};

use super::GEMINI;
use crate::proxy::kit::{Body, Play, seen};
use crate::proxy::{Channel, ChannelKind, End, Middle};

fn chunk(id: &str, candidates: Value) -> Value {
    json!({ "candidates": candidates, "usageMetadata": { "promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15 },
        "modelVersion": "m", "responseId": id })
}

fn event(chunk: &Value) -> String {
    format!("data: {chunk}\r\n\r\n")
}

fn parts_of(id: &str, parts: Value, finish: Option<&str>) -> String {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0, "x_odd": 7 });
    if let Some(word) = finish {
        candidate["finishReason"] = word.into();
    }
    event(&chunk(id, json!([candidate])))
}

fn parts(parts: Value) -> String {
    parts_of("r1", parts, None)
}

/// As the provider writes most of them.
fn text(text: &str) -> String {
    let candidate = json!({ "content": { "parts": [{ "text": text }], "role": "model" }, "index": 0 });
    event(&chunk("r1", json!([candidate])))
}

fn call(id: &str, name: &str) -> Value {
    json!({ "functionCall": { "id": id, "name": name, "args": { "x": "secret" } }, "thoughtSignature": "s" })
}

fn end(word: &str) -> String {
    parts_of("r1", json!([{ "text": "" }]), Some(word))
}

fn play() -> Play {
    Play::new(&GEMINI)
}

fn data(stream: &str) -> Vec<Value> {
    let events = stream.split("\r\n\r\n").filter(|event| !event.is_empty());
    events.map(|event| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap()).collect()
}

#[track_caller]
fn check(stream: &[String], expected: &str) {
    let stream = stream.concat();
    assert_eq!(seen(&GEMINI, &stream).line(), expected, "{stream}");
    let mut play = play();
    play.read(&stream).write_all();
    assert_eq!(play.text(), stream);
}

#[test]
fn parts_are_read() {
    check(&[text("a"), text("b"), end("STOP")], "0=ab 0:stop");
    check(&[parts(json!([{"text": "t", "thought": true}, {"text": "a"}, {"text": "b"}]))], "0=ab 0~t");
    check(&[text("a"), parts(json!([{"text": "t", "thought": true}]))], "0=a 0~t");
    check(
        &[parts(json!([call("f1", "sh"), {"functionCall": {"name": "ls"}}])), end("STOP")],
        "0>sh({\"x\":\"secret\"})f1 0>ls({}) 0:tool_calls",
    );
    check(&[end("MAX_TOKENS")], "0:length");
    check(&[end("RECITATION")], "0:content_filter");
    check(&[event(&json!({"promptFeedback": {"blockReason": "SAFETY"}}))], "0:content_filter");
    check(&[event(&json!({"error": {"code": 503, "message": "no", "status": "UNAVAILABLE"}}))], "error:no");
    let two =
        json!([{"content": {"parts": [{"text": "b"}]}, "index": 1}, {"content": {"parts": [{"text": "a"}]}}]);
    check(&[event(&chunk("r1", two))], "0=a 1=b");
    check(
        &[event(
            &json!({"response": chunk("r1", json!([{"content": {"parts": [{"text": "a"}]}}])), "traceId": "t"}),
        )],
        "0=a",
    );
    let piecewise = parts(json!([{"functionCall": {"name": "sh", "willContinue": true}}]));
    assert!(play().try_read(piecewise.as_bytes()).is_err());
    assert!(play().try_read(b"data: x\n\n").is_err());
    let mut ended = play();
    ended.read(&text("a"));
    assert!(!ended.ended());
    ended.read(&end("STOP"));
    assert!(ended.ended());
    assert_eq!(ended.read.usage, Some((Some(10), Some(5))));
}

#[test]
fn what_is_not_understood_is_an_aside() {
    let mut play = play();
    let candidate = json!({"content": {"parts": [{"executableCode": {"code": "C"}}, {"codeExecutionResult": {"output": "O"}},
        {"inlineData": {"mimeType": "i", "data": "D"}}]}, "groundingMetadata": {"chunks": [{"title": "G"}]},
        "safetyRatings": [{"category": "c"}], "finishMessage": "F"});
    play.read(&event(&chunk("r1", json!([candidate]))));
    play.read(&event(&json!({"new": "N"})));
    let tokens = |token: &str| json!([{"content": {"parts": [{"text": "a"}]}, "logprobsResult": {"chosenCandidates": [{"token": token}]}}]);
    play.read(&event(&chunk("r1", tokens("a"))));
    play.read(&event(&chunk("r1", tokens("b"))));
    assert_eq!(play.read.asides, ["C", "O", "G", "F", "N", "b"]);
    assert_eq!(play.read.line(), "0=aa");
}

#[test]
fn texts_change_and_unknown_members_stay() {
    let mut play = play();
    let tokens = json!([{"content": {"parts": [{"text": "secret"}]}, "logprobsResult": {"chosenCandidates": [{"token": "secret"}]}}]);
    play.read(
        &[
            text("a secret"),
            parts(json!([{"text": "secret", "y": 1.0}, call("f1", "sh")])),
            event(&chunk("r1", tokens)),
            end("STOP"),
        ]
        .concat(),
    );
    play.replace("secret", "*");
    assert!(!play.text().contains("secret"), "{}", play.text());
    assert_eq!(play.client().line(), "0=a *** 0>sh({\"x\":\"*\"})f1 0:tool_calls");
    assert!(play.text().contains("\"x_odd\":7") && play.text().contains("\"y\":1.0"));
    let mut gone = super::tests::play();
    gone.read(
        &[text("a"), text("secret"), parts_of("r1", json!([{"text": "secret"}]), Some("STOP"))].concat(),
    )
    .replace("secret", "");
    assert_eq!(gone.client().line(), "0=a 0:stop");
    assert_eq!(data(gone.text()).len(), 2);
    assert_eq!(data(gone.text())[1]["candidates"][0]["content"]["parts"], json!([{"text": ""}]));
}

#[test]
fn dropped_calls_go_with_their_part() {
    let stream = [
        parts(json!([{"text": "a"}, call("f1", "rm"), call("f2", "ls")])),
        parts(json!([call("f3", "rm")])),
        end("STOP"),
    ]
    .concat();
    let mut some = play();
    some.read(&stream).drop_call(0, 0).drop_call(0, 2).write_all();
    assert_eq!(some.client().line(), "0=a 0>ls({\"x\":\"secret\"})f2 0:tool_calls");
    assert_eq!(data(some.text()).len(), 2);
    let mut all = play();
    all.read(&stream).drop_call(0, 0).drop_call(0, 1).drop_call(0, 2).write_all();
    assert_eq!(all.client().line(), "0=a 0:stop");
}

#[test]
fn own_text_and_ends_are_regular() {
    let stream = [text("a"), text("b"), end("STOP")].concat();
    for n in 0..3 {
        let mut play = play();
        play.read(&stream).write(n).say(0, "<!>").write_all();
        let read = play.client();
        let (before, after) = read.text(0, ChannelKind::Content).split_once("<!>").unwrap();
        assert_eq!((before.len(), format!("{before}{after}").as_str()), (n, "ab"));
        assert!(!play.text().replace("\r\n", "").contains('\n') && !play.text().contains("\n:"));
        let mut filtered = super::tests::play();
        filtered.read(&stream).write(n).end(End::Filtered).write_all();
        let last = data(filtered.text()).pop().unwrap();
        assert_eq!(last["candidates"][0]["finishReason"], "SAFETY");
        assert_eq!(
            (&last["usageMetadata"]["totalTokenCount"], &last["responseId"]),
            (&json!(15), &json!("r1"))
        );
        assert!(filtered.client().line().ends_with("0:content_filter"));
    }
    let mut nothing = play();
    nothing.say(0, "no").end(End::Stopped);
    assert_eq!(nothing.client().line(), "0=no 0:stop");
    let mut over = play();
    over.read(&stream).write_all().end(End::Filtered);
    assert_eq!(over.text(), stream);
    let mut failed = play();
    failed.read(&stream).write(1).fail("gone");
    assert_eq!(failed.client().line(), "0=a error:gone");
}

#[test]
fn another_answer_continues_the_first() {
    let mut play = play();
    play.read(
        &[text("Let "), text("me. "), parts_of("r1", json!([call("f1", "rm")]), Some("STOP"))].concat(),
    )
    .write(2);
    assert_eq!(
        play.exchange.echo(),
        [json!({"role": "model", "parts": [{"text": "Let me. "}, call("f1", "rm")]})]
    );
    play.next_answer();
    play.read(
        &[text("No.").replace("r1", "r2"), parts_of("r2", json!([call("f2", "ls")]), Some("STOP"))].concat(),
    )
    .write_all();
    assert_eq!(
        play.read.line(),
        "0=Let me. No. 0>rm({\"x\":\"secret\"})f1 0>ls({\"x\":\"secret\"})f2 0:tool_calls 0:tool_calls"
    );
    assert_eq!(play.client().line(), "0=Let me. No. 0>ls({\"x\":\"secret\"})f2 0:tool_calls");
    let last = data(play.text()).pop().unwrap();
    assert_eq!((&last["usageMetadata"]["totalTokenCount"], &last["responseId"]), (&json!(30), &json!("r1")));
}

#[test]
fn last_words_beside_a_call_and_the_end_stay() {
    let at_once = parts_of("r1", json!([{"text": "a "}, call("f1", "rm")]), Some("STOP"));
    let next = [text("b").replace("r1", "r2"), end("STOP").replace("r1", "r2")].concat();
    let mut again = play();
    again.read(&at_once).drop_call(0, 0).write_open().next_answer();
    again.read(&next).write_all();
    assert_eq!(again.client().line(), "0=a b 0:stop");
    assert!(again.text().contains("\"x_odd\":7"));
    let mut filtered = play();
    filtered.read(&at_once).drop_call(0, 0).write_open().end(End::Filtered);
    assert_eq!(filtered.client().line(), "0=a  0:content_filter");
    // what says nothing but the end does not go out
    for only in [end("STOP"), event(&json!({"promptFeedback": {"blockReason": "SAFETY"}}))] {
        let mut nothing = play();
        nothing.read(&only).write_open();
        assert_eq!(nothing.text(), "");
    }
}

#[test]
fn bodies_are_read_and_written_like_streams() {
    let answer = |id: &str, parts: Value| {
        chunk(
            id,
            json!([{ "content": { "parts": parts, "role": "model" }, "finishReason": "STOP", "index": 0 }]),
        )
    };
    let first = answer("r1", json!([{"text": "a secret"}, call("f1", "rm"), call("f2", "ls")]));
    let mut one = Body::new(&GEMINI);
    one.read(&first);
    assert_eq!(
        one.read.line(),
        "0=a secret 0>rm({\"x\":\"secret\"})f1 0>ls({\"x\":\"secret\"})f2 0:tool_calls !"
    );
    assert_eq!(one.replace(first.clone(), "nothing", "", None), first);
    one.exchange.drop_call(Channel { choice: 0, kind: ChannelKind::Call(0) });
    let written = one.say("said").replace(first.clone(), "secret", "*", None);
    let mut call = call("f2", "ls");
    call["functionCall"]["args"]["x"] = "*".into();
    assert_eq!(
        written["candidates"][0]["content"]["parts"],
        json!([{"text": "a *"}, call, {"text": "said"}])
    );
    assert_eq!(
        one.replace(first.clone(), "", "", Some(End::Filtered))["candidates"][0]["finishReason"],
        "SAFETY"
    );
    let second = answer("r2", json!([{"text": "No."}]));
    let mut woven = Body::new(&GEMINI);
    woven.read(&first).exchange.next_answer();
    let written = woven.read(&second).replace(second.clone(), "nothing", "", None);
    assert_eq!(written["candidates"][0]["content"]["parts"], json!([{"text": "a secret"}, {"text": "No."}]));
    assert_eq!(
        (&written["responseId"], &written["usageMetadata"]["totalTokenCount"]),
        (&json!("r1"), &json!(30))
    );
    assert!(GEMINI.exchange(true).read_body(&json!({"x": 1}), &mut |_| {}).is_err());
}

#[test]
fn a_stream_that_is_an_array_is_a_body() {
    let stream = [text("a secret"), text(" b"), end("STOP")].concat();
    let body = Value::Array(data(&stream));
    let mut array = Body::new(&GEMINI);
    array.read(&body);
    assert_eq!(array.read.line(), "0=a secret b 0:stop !");
    assert_eq!(array.replace(body.clone(), "nothing", "", None), body);
    let written = array.say("!").replace(body, "secret", "*", Some(End::Filtered));
    let mut again = Body::new(&GEMINI);
    again.read(&written);
    assert_eq!(again.read.line(), "0=a * b! 0:content_filter !");
}
