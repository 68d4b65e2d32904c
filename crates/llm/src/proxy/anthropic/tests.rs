//! Streams built by hand for each rule.

use serde_json::{Value, json};

use super::ANTHROPIC;
use crate::proxy::kit::{Body, Play, seen};
use crate::proxy::{Channel, ChannelKind, End, Middle};
use crate::{Answer, sse};

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

fn start(id: &str) -> String {
    let usage =
        json!({"input_tokens": 10, "cache_read_input_tokens": 2, "output_tokens": 1, "service_tier": "s"});
    event(
        &json!({"type": "message_start", "message": {"id": id, "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage}}),
    )
}

fn block(index: u32, block: &Value) -> String {
    event(&json!({"type": "content_block_start", "index": index, "content_block": block, "x_odd": 7}))
}

fn delta(index: u32, delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

fn text(index: u32, text: &str) -> String {
    delta(index, &json!({"type": "text_delta", "text": text}))
}

fn stop(index: u32) -> String {
    event(&json!({"type": "content_block_stop", "index": index}))
}

fn texts(index: u32, pieces: &[&str]) -> String {
    let pieces: String = pieces.iter().map(|piece| text(index, piece)).collect();
    block(index, &json!({"type": "text", "text": ""})) + &pieces + &stop(index)
}

fn thoughts(index: u32, piece: &str) -> String {
    block(index, &json!({"type": "thinking", "thinking": "", "signature": ""}))
        + &delta(index, &json!({"type": "thinking_delta", "thinking": piece}))
        + &delta(index, &json!({"type": "signature_delta", "signature": "sig"}))
        + &stop(index)
}

fn call(index: u32, id: &str, name: &str, pieces: &[&str]) -> String {
    let piece = |piece: &&str| delta(index, &json!({"type": "input_json_delta", "partial_json": piece}));
    let pieces: String = pieces.iter().map(piece).collect();
    block(index, &json!({"type": "tool_use", "id": id, "name": name, "input": {}})) + &pieces + &stop(index)
}

fn ending(word: &str) -> String {
    event(
        &json!({"type": "message_delta", "delta": {"stop_reason": word, "stop_sequence": null}, "usage": {"output_tokens": 7}}),
    ) + &event(&json!({"type": "message_stop"}))
}

fn ping() -> String {
    event(&json!({"type": "ping"}))
}

fn play() -> Play {
    Play::new(&ANTHROPIC)
}

fn client(stream: &str) -> Answer {
    let (mut parser, mut decoder) = (sse::Parser::new(), (crate::wire::anthropic::WIRE.decoder)());
    let (mut deltas, mut answer) = (Vec::new(), Answer::default());
    parser.push(stream.as_bytes());
    parser.finish();
    while let Some(event) = parser.next_event().unwrap() {
        decoder.event(&event, &mut deltas).unwrap();
    }
    decoder.finish(&mut deltas).unwrap();
    deltas.into_iter().for_each(|delta| answer.push(delta));
    answer
}

/// The SDKs put blocks into a list by their index: it must count from 0 without a gap, blocks begin, go on and stop in
/// order, and the message is begun and ended once.
fn accepted(stream: &str) {
    let mut parser = sse::Parser::new();
    parser.push(stream.as_bytes());
    parser.finish();
    let (mut n_blocks, mut open, mut seen) = (0, Vec::new(), Vec::new());
    while let Some(event) = parser.next_event().unwrap() {
        let value: Value = serde_json::from_str(&event.data).unwrap();
        let kind = value["type"].as_str().unwrap();
        assert_eq!(event.event, kind);
        match kind {
            "content_block_start" => {
                assert_eq!(value["index"], n_blocks, "{stream}");
                n_blocks += 1;
                open.push(value["index"].clone());
            }
            "content_block_delta" => assert!(open.contains(&value["index"]), "{stream}"),
            "content_block_stop" => {
                assert!(open.contains(&value["index"]), "{stream}");
                open.retain(|index| *index != value["index"]);
            }
            "ping" => {}
            other => seen.push(other.to_owned()),
        }
    }
    assert!(open.is_empty(), "{stream}");
    assert_eq!(seen, ["message_start", "message_delta", "message_stop"], "{stream}");
}

/// The stream reads like this, and goes out unchanged.
#[track_caller]
fn check(stream: &[String], expected: &str) {
    let stream = stream.concat();
    assert_eq!(seen(&ANTHROPIC, &stream).line(), expected, "{stream}");
    let mut play = play();
    play.read(&stream).write_all();
    assert_eq!(play.text(), stream);
}

#[test]
fn blocks_are_read() {
    let all = [
        start("m1"),
        thoughts(0, "t"),
        ping(),
        texts(1, &["a", "b"]),
        call(2, "u1", "sh", &["", "{\"x\"", ":1}"]),
        ending("tool_use"),
    ];
    check(&all, "0=ab 0~t 0>sh({\"x\":1})u1 0:tool_calls !");
    check(&[block(0, &json!({"type": "text", "text": "a"})), text(0, "b")], "0=ab");
    check(&[call(0, "u1", "sh", &[])], "0>sh({})u1");
    let whole = json!({"type": "tool_use", "id": "u1", "name": "sh", "input": {"x": 1}});
    check(&[block(0, &whole), stop(0)], "0>sh({\"x\":1})u1");
    check(&[block(0, &whole)], "0>sh({\"x\":1})u1");
    check(&[ending("refusal")], "0:content_filter !");
    check(&["event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"no\"}}\n\n".into()], "error:no");
    check(&[text(3, "lost")], "0=lost");
    let late =
        [call(0, "u1", "sh", &["1"]), delta(0, &json!({"type": "input_json_delta", "partial_json": "2"}))]
            .concat();
    assert!(play().try_read(late.as_bytes()).is_err());
    assert!(play().try_read(b"data: x\n\n").is_err());
}

#[test]
fn what_the_provider_runs_and_what_is_not_understood_is_an_aside() {
    let mut play = play();
    let search = json!({"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}});
    let found = json!({"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "web_search_result", "title": "T", "encrypted_content": "E"}]});
    play.read(
        &[
            start("m1"),
            block(0, &search),
            delta(0, &json!({"type": "input_json_delta", "partial_json": "{\"query\":\"q\"}"})),
            stop(0),
            block(1, &found),
            delta(
                2,
                &json!({"type": "citations_delta", "citation": {"type": "char_location", "cited_text": "C"}}),
            ),
            delta(2, &json!({"type": "new_delta", "words": "N"})),
            event(&json!({"type": "new_event", "words": "W"})),
            block(3, &json!({"type": "redacted_thinking", "data": "D"})),
        ]
        .concat(),
    );
    assert_eq!(play.read.asides, ["web_search", "{\"query\":\"q\"}", "T", "C", "N", "W"]);
    assert_eq!(play.read.line(), "");
}

#[test]
fn texts_change_and_unknown_members_stay() {
    let mut play = play();
    play.read(
        &[
            start("m1"),
            block(0, &json!({"type": "text", "text": "secret", "y": 1.0})),
            text(0, " a"),
            text(0, " secret"),
            text(0, "secret"),
            stop(0),
            ending("end_turn"),
        ]
        .concat(),
    );
    play.write_with(usize::MAX, &|text| match text {
        "secret" => Some(String::new()),
        text => text.contains("secret").then(|| text.replace("secret", "*")),
    });
    assert_eq!(client(play.text()).message.content, " a *");
    assert!(play.text().contains("\"x_odd\":7") && play.text().contains("\"y\":1.0"), "{}", play.text());
    assert!(!play.text().contains("secret"));
    accepted(play.text());
    let mut input = super::tests::play();
    input
        .read(&[call(0, "u1", "sh", &["{\"x\":", "\"secret\"}"]), thoughts(1, "secret")].concat())
        .replace("secret", "*");
    assert_eq!(input.client().line(), "0~* 0>sh({\"x\":\"*\"})u1");
}

#[test]
fn dropped_calls_leave_no_gap() {
    let stream = [
        start("m1"),
        texts(0, &["a"]),
        call(1, "u1", "sh", &["1"]),
        call(2, "u2", "ls", &["2"]),
        texts(3, &["b"]),
        ending("tool_use"),
    ]
    .concat();
    let mut first = play();
    first.read(&stream).drop_call(0, 0).write_all();
    assert_eq!(first.client().line(), "0=ab 0>ls(2)u2 0:tool_calls !");
    accepted(first.text());
    let mut both = play();
    both.read(&stream).drop_call(0, 0).drop_call(0, 1).write_all();
    assert_eq!(both.client().line(), "0=ab 0:stop !");
    accepted(both.text());
    assert_eq!(client(both.text()).message.content, "ab");
}

#[test]
fn two_blocks_of_one_index_go_out_apart() {
    let mut play = play();
    play.read(
        &[start("m1"), call(0, "u1", "sh", &["1"]), call(0, "u2", "rm", &["2"]), ending("tool_use")].concat(),
    )
    .write_all();
    assert_eq!(play.client().line(), "0>sh(1)u1 0>rm(2)u2 0:tool_calls !");
    accepted(play.text());
}

#[test]
fn own_text_stands_where_the_client_is() {
    let stream = [
        start("m1"),
        thoughts(0, "t"),
        texts(1, &["a", "b"]),
        call(2, "u1", "sh", &["1"]),
        ending("tool_use"),
    ]
    .concat();
    // Before everything, in an open block, behind one, before the end.
    for n in 0..14 {
        let mut play = play();
        play.read(&stream).write(n).say(0, "<!>").write_all();
        accepted(play.text());
        let read = play.client();
        let (before, after) = read.text(0, ChannelKind::Content).split_once("<!>").expect("said once");
        assert_eq!(format!("{before}{after}"), "ab");
        assert_eq!(before.len(), n.saturating_sub(6).min(2), "{n}");
        assert!(read.line().ends_with("0~t 0>sh(1)u1 0:tool_calls !"), "{}", read.line());
    }
    let mut nothing = play();
    nothing.say(0, "no").end(End::Filtered);
    assert_eq!(nothing.client().line(), "0=no 0:content_filter !");
    accepted(nothing.text());
}

#[test]
fn ends_are_regular() {
    let stream =
        [start("m1"), texts(0, &["a", "b"]), call(1, "u1", "sh", &["1"]), ending("tool_use")].concat();
    for n in 0..10 {
        let mut play = play();
        play.read(&stream).write(n).end(End::Filtered);
        accepted(play.text());
        if n < 9 {
            assert!(play.client().line().ends_with("0:content_filter !"), "{n}: {}", play.client().line());
        }
    }
    let mut stopped = play();
    stopped.read(&stream).write(8).end(End::Stopped).write_all();
    assert_eq!(stopped.client().line(), "0=ab 0>sh(1)u1 0:tool_calls !");
    let mut short = play();
    short.read(&stream).write(3).end(End::Stopped);
    assert_eq!(short.client().line(), "0=a 0:stop !");
    let mut failed = play();
    failed.read(&stream).write(3).fail("gone");
    assert_eq!(failed.client().line(), "0=a error:gone");
}

#[test]
fn another_answer_continues_the_first() {
    for n in [0, 1, 2, 3, 4, 5] {
        let mut play = play();
        play.read(
            &[start("m1"), texts(0, &["Let ", "me. "]), call(1, "u1", "rm", &["{}"]), ending("tool_use")]
                .concat(),
        );
        play.write(n);
        assert_eq!(
            play.exchange.echo(),
            [json!({"role": "assistant", "content": [{"type": "text", "text": "Let me. "},
            {"type": "tool_use", "id": "u1", "name": "rm", "input": {}}]})]
        );
        play.next_answer();
        play.read(
            &[
                start("m2"),
                thoughts(0, "t"),
                texts(1, &["No."]),
                call(2, "u2", "ls", &["{}"]),
                ending("tool_use"),
            ]
            .concat(),
        );
        play.write_all();
        accepted(play.text());
        let read = play.client();
        let said = ["", "", "", "Let ", "Let me. ", "Let me. "][n];
        assert_eq!(read.line(), format!("0={said}No. 0~t 0>ls({{}})u2 0:tool_calls !"));
        assert!(play.text().contains("\"m1\"") && !play.text().contains("\"m2\""));
        assert!(play.text().contains("\"output_tokens\":14"), "{}", play.text());
        assert!(play.text().contains("\"usage\":{\"input_tokens\":20"), "{}", play.text());
    }
}

#[test]
fn echoes_have_signatures() {
    let mut play = play();
    play.read(
        &[
            start("m1"),
            thoughts(0, "t"),
            block(1, &json!({"type": "redacted_thinking", "data": "D"})),
            stop(1),
            texts(2, &[]),
            call(3, "u1", "sh", &["{\"x\":1}"]),
        ]
        .concat(),
    );
    assert_eq!(
        play.exchange.echo()[0]["content"],
        json!([
            {"type": "thinking", "thinking": "t", "signature": "sig"},
            {"type": "redacted_thinking", "data": "D"},
            {"type": "tool_use", "id": "u1", "name": "sh", "input": {"x": 1}},
        ])
    );
}

fn body(id: &str, content: Value, word: &str) -> Value {
    json!({"id": id, "type": "message", "role": "assistant", "model": "m", "content": content, "stop_reason": word,
        "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 5}, "odd": 1})
}

#[test]
fn bodies_are_read_and_written_like_streams() {
    let tool = |id: &str| json!({"type": "tool_use", "id": id, "name": "sh", "input": {"x": "secret"}});
    let answer =
        body("m1", json!([{"type": "text", "text": "a secret"}, tool("u1"), tool("u2")]), "tool_use");
    let mut one = Body::new(&ANTHROPIC);
    one.read(&answer);
    assert_eq!(
        one.read.line(),
        "0=a secret 0>sh({\"x\":\"secret\"})u1 0>sh({\"x\":\"secret\"})u2 0:tool_calls !"
    );
    assert_eq!(one.replace(answer.clone(), "nothing", "", None), answer);
    one.exchange.drop_call(Channel { choice: 0, kind: ChannelKind::Call(0) });
    let written = one.say("said").replace(answer.clone(), "secret", "*", None);
    assert_eq!(
        written["content"],
        json!([{"type": "text", "text": "a *"},
        {"type": "tool_use", "id": "u2", "name": "sh", "input": {"x": "*"}}, {"type": "text", "text": "said"}])
    );
    assert_eq!((&written["stop_reason"], &written["odd"]), (&json!("tool_use"), &json!(1)));
    one.exchange.drop_call(Channel { choice: 0, kind: ChannelKind::Call(1) });
    assert_eq!(one.replace(answer.clone(), "", "", None)["stop_reason"], "end_turn");
    assert_eq!(one.replace(answer.clone(), "", "", Some(End::Filtered))["stop_reason"], "refusal");
    let second = body("m2", json!([{"type": "text", "text": "No."}]), "end_turn");
    let mut woven = Body::new(&ANTHROPIC);
    woven.read(&answer).exchange.next_answer();
    let written = woven.read(&second).replace(second.clone(), "nothing", "", None);
    assert_eq!(
        written["content"],
        json!([{"type": "text", "text": "a secret"}, {"type": "text", "text": "No."}])
    );
    assert_eq!((&written["id"], &written["usage"]["output_tokens"]), (&json!("m1"), &json!(10)));
    assert!(ANTHROPIC.exchange(true).read_body(&json!({"x": 1}), &mut |_| {}).is_err());
}
