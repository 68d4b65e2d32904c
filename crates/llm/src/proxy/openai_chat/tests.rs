//! Streams built by hand for each rule.

use serde_json::{Value, json};

use super::OPENAI_CHAT;
use crate::proxy::kit::{Body, Play, seen};
use crate::proxy::{ChannelKind, End, Middle};
use crate::{Answer, sse};

/// One event with these choices.
fn chunk(choices: &Value) -> String {
    let chunk = json!({ "id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "x_odd": 7,
        "choices": choices });
    format!("data: {chunk}\n\n")
}

/// One event with a delta of choice 0.
fn delta(delta: Value) -> String {
    chunk(&json!([{ "index": 0, "delta": delta, "finish_reason": null }]))
}

fn finish(word: &str) -> String {
    chunk(&json!([{ "index": 0, "delta": {}, "finish_reason": word }]))
}

fn role() -> String {
    delta(json!({ "role": "assistant", "content": "" }))
}

fn text(text: &str) -> String {
    delta(json!({ "content": text }))
}

fn call(index: u32, id: &str, name: &str, arguments: &str) -> String {
    let function = json!({ "name": name, "arguments": arguments });
    delta(json!({ "tool_calls": [{ "index": index, "id": id, "type": "function", "function": function }] }))
}

fn more(index: u32, arguments: &str) -> String {
    delta(json!({ "tool_calls": [{ "index": index, "function": { "arguments": arguments } }] }))
}

fn usage(input: u32, output: u32) -> String {
    let chunk = json!({ "id": "c1", "object": "chat.completion.chunk", "choices": [],
        "usage": { "prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output } });
    format!("data: {chunk}\n\n")
}

const DONE: &str = "data: [DONE]\n\n";

fn play() -> Play {
    Play::new(&OPENAI_CHAT)
}

/// What this crate's own client reads of what went out.
fn client(stream: &str) -> Answer {
    let (mut parser, mut decoder) = (sse::Parser::new(), (crate::wire::openai_chat::WIRE.decoder)());
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

/// The stream reads like this, and goes out unchanged.
#[track_caller]
fn check(stream: &[String], expected: &str) {
    let stream = stream.concat();
    assert_eq!(seen(&OPENAI_CHAT, &stream).line(), expected, "{stream}");
    let mut play = play();
    play.read(&stream).write_all();
    assert_eq!(play.text(), stream);
}

#[test]
fn texts_are_read_wherever_they_stand() {
    check(&[role(), text("Hel"), text("lo"), finish("stop"), DONE.into()], "0=Hello 0:stop !");
    check(&[delta(json!({"role": "assistant", "content": "a", "refusal": "b"}))], "0=ab");
    check(&[delta(json!({"reasoning_content": "t"})), text("a")], "0=a 0~t");
    check(&[delta(json!({"reasoning": "t", "content": "a"}))], "0=a 0~t");
    check(&[delta(json!({"reasoning": "t", "reasoning_content": "t"}))], "0~t");
    check(&[delta(json!({"reasoning": "t", "reasoning_content": "u"}))], "0~ut");
    let details = json!({"reasoning": "t", "reasoning_details": [{"type": "reasoning.text", "text": "t", "signature": "s"}]});
    check(&[delta(details)], "0~t");
    let parts = json!({"content": [{"type": "text", "text": "a"}, {"type": "thinking", "thinking": [{"type": "text", "text": "t"}]}, "b"]});
    check(&[delta(parts)], "0=ab 0~t");
    check(&[chunk(&json!([{"index": null, "delta": {"content": "a"}}]))], "0=a");
    check(&[chunk(&json!([{"delta": null, "text": "a", "finish_reason": "stop"}]))], "0=a 0:stop");
    check(&[delta(json!({"content": null, "tool_calls": null})), finish("")], "");
}

#[test]
fn choices_are_kept_apart() {
    let two = |a: &str, b: &str| {
        chunk(&json!([{"index": 1, "delta": {"content": b}}, {"index": 0, "delta": {"content": a}}]))
    };
    check(&[two("a", "b"), two("c", "d"), finish("stop")], "0=ac 1=bd 0:stop");
    let mut one = play();
    one.read(&[two("a", "b"), finish("stop")].concat());
    assert!(!one.ended(), "choice 1 has not ended");
}

#[test]
fn calls_are_whole_when_their_choice_ends() {
    let interleaved =
        [call(0, "a", "sh", ""), call(1, "b", "ls", "1"), more(0, "2"), more(1, "3"), finish("tool_calls")];
    check(&interleaved, "0>sh(2)a 0>ls(13)b 0:tool_calls");
    check(&[call(0, "a", "sh", "{"), more(0, "}")], "0>sh({})a");
    let whole = json!({"tool_calls": [{"id": "a", "function": {"name": "sh", "arguments": {"x": 1}}}]});
    check(&[delta(whole)], "0>sh({\"x\":1})a");
    check(
        &[delta(
            json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": "sh", "arguments": "1"}}]}),
        )],
        "0>sh(1)call_c1_0",
    );
    check(
        &[delta(json!({"function_call": {"name": "sh", "arguments": "1"}})), finish("function_call")],
        "0>sh(1)call_c1_0 0:tool_calls",
    );
    check(
        &[delta(
            json!({"tool_calls": [{"index": 0, "id": "a", "type": "custom", "custom": {"name": "f", "input": "x"}}]}),
        )],
        "0>f(x)a",
    );
    let late = [call(0, "a", "sh", "1"), finish("tool_calls"), more(0, "2")].concat();
    assert!(play().try_read(late.as_bytes()).is_err(), "arguments behind the end");
    let mut empty = play();
    empty.read(
        &[call(0, "a", "sh", "1"), finish("tool_calls"), more(0, ""), finish("tool_calls"), DONE.into()]
            .concat(),
    );
    assert_eq!(empty.read.line(), "0>sh(1)a 0:tool_calls !");
}

#[test]
fn a_call_with_the_index_of_another_goes_out_under_its_own() {
    let mut play = play();
    play.read(
        &[call(0, "a", "sh", "1"), call(0, "b", "sh", "2"), more(0, "3"), finish("tool_calls")].concat(),
    );
    assert_eq!(play.read.line(), "0>sh(1)a 0>sh(23)b 0:tool_calls");
    play.write_all();
    assert_eq!(play.client().line(), "0>sh(1)a 0>sh(23)b 0:tool_calls");
    assert_eq!(play.text().matches("\"index\":1").count(), 2, "{}", play.text());
}

#[test]
fn what_is_not_understood_is_an_aside() {
    let mut play = play();
    let odd =
        json!({"content": "a", "audio": {"id": "i", "transcript": "spoken"}, "annotations": [{"url": "u"}]});
    let logprobs = |token: &str| json!({"content": [{"token": token, "top_logprobs": [{"token": "z"}]}]});
    play.read(
        &[
            delta(odd),
            "data: {\"type\":\"t\",\"note\":\"n\"}\n\n".into(),
            chunk(&json!([{"index": 0, "delta": {"content": "a"}, "logprobs": logprobs("a")}])),
            chunk(&json!([{"index": 0, "delta": {"content": "a"}, "logprobs": logprobs("b")}])),
            "data: [1,\"x\"]\n\n".into(),
            "data: {\"choices\":[{\"delta\":{\"content\":\"ha".into(),
        ]
        .concat(),
    );
    assert_eq!(play.read.asides[..5], ["spoken", "u", "n", "b\nz", "x"]);
    assert!(play.read.asides[5].ends_with("\"ha"));
    assert!(!play.ended());
    play.write_all();
    assert!(!play.text().contains("\"ha"), "half an event stays here");
    assert_eq!(play.read.text(0, ChannelKind::Content), "aaa");
}

#[test]
fn errors_are_read() {
    check(&["data: {\"error\":{\"message\":\"no\"}}\n\n".into()], "error:no");
    check(&["event: error\ndata: {\"message\":\"no\"}\n\n".into()], "error:no");
    check(&["event: error\ndata: plain\n\n".into()], "error:plain");
    assert!(play().try_read(b"data: plain\n\n").is_err());
    let with_text =
        r#"data: {"error":{"message":"no"},"choices":[{"delta":{"content":"a"},"finish_reason":"error"}]}"#;
    check(&[format!("{with_text}\n\n")], "0=a 0:error error:no");
}

#[test]
fn texts_change_and_unknown_members_stay() {
    let mut play = play();
    play.read(
        &[
            role(),
            text("a b"),
            text(" secret"),
            delta(json!({"content": " x secret", "y": [1.0, null]})),
            finish("stop"),
            DONE.into(),
        ]
        .concat(),
    );
    play.replace("secret", "***");
    assert_eq!(client(play.text()).message.content, "a b *** x ***");
    assert!(play.text().contains("\"x_odd\":7") && play.text().contains("\"y\":[1.0,null]"));
    assert!(play.text().contains(&text("a b")), "what is not changed goes out as it came");
}

#[test]
fn a_text_that_is_taken_away_leaves_nothing() {
    let mut play = play();
    let logprobs =
        json!([{"index": 0, "delta": {"content": "secret"}, "logprobs": {"content": [{"token": "secret"}]}}]);
    play.read(&[role(), text("secret"), chunk(&logprobs), text("b"), finish("stop"), DONE.into()].concat());
    play.replace("secret", "");
    assert_eq!(play.text(), [role(), text("b"), finish("stop"), DONE.into()].concat());
    let mut twice = super::tests::play();
    twice.read(&delta(json!({"reasoning": "secret", "reasoning_content": "secret", "content": "secret"})));
    twice.replace("secret", "x");
    assert!(!twice.text().contains("secret"), "{}", twice.text());
    let mut both = super::tests::play();
    both.read(&chunk(&json!([{"index": 0, "delta": {"content": "secret"}, "logprobs": {"content": [{"token": "secret"}]}}])));
    both.replace("secret", "x");
    assert!(!both.text().contains("secret"), "the tokens say it too: {}", both.text());
}

#[test]
fn arguments_change_as_text_and_as_object() {
    let mut play = play();
    let object =
        json!({"tool_calls": [{"id": "b", "function": {"name": "sh", "arguments": {"x": "secret"}}}]});
    play.read(
        &[call(0, "a", "sh", "{\"x\":"), more(0, "\"secret\"}"), delta(object), finish("tool_calls")]
            .concat(),
    );
    play.replace("secret", "*");
    assert_eq!(play.client().line(), "0>sh({\"x\":\"*\"})a 0>sh({\"x\":\"*\"})b 0:tool_calls");
    assert!(play.text().contains("\"arguments\":{\"x\":\"*\"}"));
}

#[test]
fn dropped_calls_leave_no_gap() {
    let stream = [
        role(),
        call(0, "a", "sh", ""),
        call(1, "b", "ls", "1"),
        more(0, "2"),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": "3"}}, {"index": 1, "function": {"arguments": "4"}}]})),
        finish("tool_calls"),
        DONE.into(),
    ].concat();
    let mut first = play();
    first.read(&stream).drop_call(0, 0).write_all();
    assert_eq!(first.client().line(), "0>ls(14)b 0:tool_calls !");
    assert!(!first.text().contains("\"index\":1,"), "{}", first.text());
    let calls = client(first.text()).message.tool_calls;
    assert_eq!((calls.len(), calls[0].arguments.as_str()), (1, "14"));
    let mut second = play();
    second.read(&stream).drop_call(0, 1).write_all();
    assert_eq!(second.client().line(), "0>sh(23)a 0:tool_calls !");
    let mut both = play();
    both.read(&stream).drop_call(0, 0).drop_call(0, 1).write_all();
    assert_eq!(both.text(), [role(), finish("stop"), DONE.into()].concat());
    let mut legacy = play();
    legacy.read(
        &[
            delta(json!({"role": "assistant", "function_call": {"name": "sh", "arguments": "1"}})),
            finish("function_call"),
        ]
        .concat(),
    );
    legacy.drop_call(0, 0).write_all();
    assert_eq!(legacy.client().line(), "0:stop");
}

#[test]
fn the_old_form_beside_the_new_one_is_no_second_call() {
    let both = json!({"role": "assistant", "function_call": {"name": "rm", "arguments": "1"}, "tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "rm", "arguments": "1"}},
        {"index": 1, "id": "b", "function": {"name": "ls", "arguments": "2"}}]});
    let mut play = play();
    play.read(&[delta(both), finish("tool_calls"), DONE.into()].concat());
    assert_eq!(play.read.line(), "0>rm(1)a 0>ls(2)b 0:tool_calls !");
    assert!(play.read.asides.is_empty(), "it repeats");
    play.drop_call(0, 0).write_all();
    assert_eq!(play.client().line(), "0>ls(2)b 0:tool_calls !");
    assert!(!play.text().contains("rm"), "{}", play.text());
    let other = json!({"function_call": {"name": "rm", "arguments": "secret"},
        "tool_calls": [{"index": 0, "id": "a", "function": {"name": "sh", "arguments": "secret"}}]});
    let mut changed = super::tests::play();
    changed.read(&delta(other)).replace("secret", "*");
    assert_eq!(changed.read.asides, ["rm\nsecret"]);
    assert!(!changed.text().contains("secret"), "{}", changed.text());
}

#[test]
fn own_text_stands_where_the_client_is() {
    let mut play = play();
    play.read(&[role(), text("a"), finish("stop"), usage(1, 2), DONE.into()].concat());
    play.say(0, "<").write(2).say(0, ">").write_all();
    assert_eq!(client(play.text()).message.content, "<a>");
    assert_eq!(play.text().matches("\"role\"").count(), 1, "SDKs add up what comes twice");
    assert!(play.text().starts_with("data: {\"id\":\"c1\""));
    let mut nothing = super::tests::play();
    nothing.say(0, "no").end(End::Filtered);
    assert_eq!(nothing.client().line(), "0=no 0:content_filter !");
}

#[test]
fn ends_are_regular() {
    let stream =
        [role(), text("a"), chunk(&json!([{"index": 1, "delta": {"content": "b"}}])), usage(3, 4)].concat();
    let mut filtered = play();
    filtered.read(&stream).write(3).end(End::Filtered);
    assert_eq!(filtered.client().line(), "0=a 1=b 0:content_filter 1:content_filter !");
    assert_eq!(filtered.client().usage, Some((Some(3), Some(4))));
    filtered.end(End::Stopped).write_all();
    assert_eq!(filtered.text().matches("[DONE]").count(), 1);
    let mut calls = play();
    calls.read(&[role(), call(0, "a", "sh", "1"), finish("tool_calls")].concat()).write(2).end(End::Stopped);
    assert_eq!(calls.client().line(), "0>sh(1)a 0:tool_calls !");
    let mut half = play();
    half.read(&[role(), call(0, "a", "sh", "1"), more(0, "2"), finish("tool_calls")].concat())
        .write(2)
        .end(End::Stopped);
    assert!(half.client().line().contains("0:stop"), "half a call is none to make");
    let mut crlf = play();
    crlf.read("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\r\n\r\n").write_all().end(End::Stopped);
    assert!(!crlf.text().replace("\r\n", "").contains('\n'), "{:?}", crlf.text());
    let mut failed = play();
    failed.read(&stream).write(2).fail("gone");
    assert_eq!(failed.client().line(), "0=a error:gone");
}

#[test]
fn another_answer_continues_the_first() {
    let mut play = play();
    play.read(
        &[
            role(),
            text("Let me. "),
            call(0, "a", "rm", "{}"),
            finish("tool_calls"),
            usage(10, 5),
            DONE.into(),
        ]
        .concat(),
    );
    play.write(2);
    assert_eq!(
        play.exchange.echo(),
        [json!({"role": "assistant", "content": "Let me. ",
        "tool_calls": [{"id": "a", "type": "function", "function": {"name": "rm", "arguments": "{}"}}]})]
    );
    play.next_answer();
    let second = [
        role(),
        text("I may not."),
        call(0, "b", "ls", "{}"),
        finish("tool_calls"),
        usage(20, 7),
        DONE.into(),
    ]
    .concat();
    play.read(&second.replace("\"c1\"", "\"c2\""));
    assert_eq!(play.read.line(), "0=Let me. I may not. 0>rm({})a 0>ls({})b 0:tool_calls 0:tool_calls !!");
    play.write_all();
    assert_eq!(play.client().line(), "0=Let me. I may not. 0>ls({})b 0:tool_calls !");
    assert_eq!(play.client().usage, Some((Some(30), Some(12))));
    assert!(!play.text().contains("\"c2\""), "the id stays");
    assert_eq!(play.text().matches("\"role\"").count(), 1);
    assert_eq!(play.exchange.echo()[0]["content"], "I may not.");
}

#[test]
fn last_words_beside_a_call_and_the_end_stay() {
    let function = json!({ "name": "rm", "arguments": "{}" });
    let calls = json!([{ "index": 0, "id": "c1", "type": "function", "function": function }]);
    let all = json!({ "role": "assistant", "content": "a ", "tool_calls": calls });
    let mut whole: Value = serde_json::from_str(
        chunk(&json!([{ "index": 0, "delta": all, "finish_reason": "tool_calls" }]))
            .strip_prefix("data: ")
            .unwrap(),
    )
    .unwrap();
    whole["usage"] = json!({ "prompt_tokens": 3, "completion_tokens": 2 });
    let at_once = format!("data: {whole}\n\n");
    let mut again = play();
    again.read(&at_once).drop_call(0, 0).write_open();
    assert!(again.text().contains("\"x_odd\":7"));
    again
        .next_answer()
        .read(&[role(), text("b"), finish("stop"), usage(4, 5), DONE.into()].concat())
        .write_all();
    assert_eq!(again.client().line(), "0=a b 0:stop !");
    assert_eq!(again.client().usage, Some((Some(7), Some(7))));
    assert_eq!(again.text().matches("prompt_tokens").count(), 1);
    let mut filtered = play();
    filtered.read(&at_once).drop_call(0, 0).write_open().end(End::Filtered);
    assert_eq!(filtered.client().line(), "0=a  0:content_filter !");
    assert_eq!(filtered.client().usage, Some((Some(3), Some(2))));
    // what says nothing but the end does not go out
    for only in [finish("stop"), usage(1, 1), DONE.into()] {
        let mut nothing = play();
        nothing.read(&only).write_open();
        assert_eq!(nothing.text(), "");
    }
}

#[test]
fn the_cost_is_told_if_only_the_first_answer_told_it() {
    let mut play = play();
    play.read(&[role(), call(0, "a", "rm", "{}"), finish("tool_calls"), usage(10, 5)].concat())
        .write(1)
        .next_answer();
    play.read(&[role(), text("b"), finish("stop"), DONE.into()].concat()).write_all();
    assert_eq!(play.client().usage, Some((Some(10), Some(5))));
    assert!(play.text().ends_with(DONE));
}

fn body(id: &str, message: Value, word: &str) -> Value {
    json!({ "id": id, "object": "chat.completion", "created": 1, "model": "m", "odd": {"a": 1},
        "choices": [{ "index": 0, "message": message, "finish_reason": word }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } })
}

fn calls(names: &[&str]) -> Value {
    let call = |name: &&str| json!({"id": "same", "type": "function", "function": {"name": name, "arguments": "{}"}});
    names.iter().map(call).collect()
}

#[test]
fn bodies_are_read_and_written_like_streams() {
    let answer = body(
        "c1",
        json!({"role": "assistant", "content": "a secret", "tool_calls": calls(&["rm", "ls"])}),
        "tool_calls",
    );
    let mut one = Body::new(&OPENAI_CHAT);
    one.read(&answer);
    assert_eq!(one.read.line(), "0=a secret 0>rm({})same 0>ls({})same 0:tool_calls !");
    assert_eq!(one.replace(answer.clone(), "nothing", "", None), answer);
    one.exchange.drop_call(crate::proxy::Channel { choice: 0, kind: ChannelKind::Call(0) });
    let written = one.say(" said").replace(answer.clone(), "secret", "*", None);
    assert_eq!(
        written["choices"][0]["message"],
        json!({"role": "assistant", "content": "a * said", "tool_calls": calls(&["ls"])})
    );
    assert_eq!(
        (&written["choices"][0]["finish_reason"], &written["odd"]),
        (&json!("tool_calls"), &json!({"a": 1}))
    );
    one.exchange.drop_call(crate::proxy::Channel { choice: 0, kind: ChannelKind::Call(1) });
    assert_eq!(one.replace(answer.clone(), "", "", None)["choices"][0]["finish_reason"], "stop");
    assert_eq!(
        one.replace(answer, "", "", Some(End::Filtered))["choices"][0]["finish_reason"],
        "content_filter"
    );
}

#[test]
fn bodies_of_several_answers_are_one() {
    let first = body(
        "c1",
        json!({"role": "assistant", "content": "Let me. ", "reasoning_content": "t", "tool_calls": calls(&["rm"])}),
        "tool_calls",
    );
    let second = body("c2", json!({"role": "assistant", "content": "No.", "reasoning_content": "u"}), "stop");
    let mut woven = Body::new(&OPENAI_CHAT);
    woven.read(&first).exchange.next_answer();
    let written = woven.read(&second).say(" Bye.").replace(second.clone(), "nothing", "", None);
    assert_eq!(
        written["choices"][0]["message"],
        json!({"role": "assistant", "content": "Let me. No. Bye.", "reasoning_content": "tu"})
    );
    assert_eq!((&written["id"], &written["usage"]["total_tokens"]), (&json!("c1"), &json!(30)));
    let mut silenced = Body::new(&OPENAI_CHAT);
    silenced.read(&first).replace(first.clone(), "e", "", None);
    silenced.exchange.next_answer();
    let written = silenced.read(&second).replace(second.clone(), "nothing", "", None);
    assert_eq!(written["choices"][0]["message"]["content"], "Lt m. No.", "as it was written, if it was");
    assert!(OPENAI_CHAT.exchange(true).read_body(&json!({"x": 1}), &mut |_| {}).is_err());
}
