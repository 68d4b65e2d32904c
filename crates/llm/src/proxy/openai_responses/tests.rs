//! Streams built by hand for each rule.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::OPENAI_RESPONSES;
use crate::proxy::kit::{Body, Play, seen};
use crate::proxy::{Channel, ChannelKind, End, Middle};
use crate::sse;

/// Builds a stream as the provider writes it.
struct Stream {
    id: &'static str,
    events: Vec<String>,
    output: Vec<Value>,
}

impl Stream {
    fn new(id: &'static str) -> Self {
        let mut stream = Stream { id, events: Vec::new(), output: Vec::new() };
        let response = stream.response("in_progress");
        stream.push("response.created", json!({ "response": response }));
        stream.push("response.in_progress", json!({ "response": response }));
        stream
    }

    fn response(&self, status: &str) -> Value {
        json!({ "id": self.id, "object": "response", "created_at": self.id.len(), "status": status, "model": "m",
            "instructions": "asked", "output": self.output, "incomplete_details": null, "error": null, "usage": null,
            "x_odd": 7 })
    }

    fn push(&mut self, kind: &str, members: Value) {
        let mut event = json!({ "type": kind, "sequence_number": self.events.len() });
        event.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        self.events.push(format!("event: {kind}\ndata: {event}\n\n"));
    }

    fn item(&mut self, begun: Value, done: Value, inside: impl FnOnce(&mut Self, usize)) {
        let index = self.output.len();
        self.push("response.output_item.added", json!({ "output_index": index, "item": begun }));
        inside(self, index);
        self.push("response.output_item.done", json!({ "output_index": index, "item": done }));
        self.output.push(done);
    }

    fn text(&mut self, pieces: &[&str]) -> &mut Self {
        let id = format!("msg_{}_{}", self.id, self.output.len());
        let part =
            |text: &str| json!({ "type": "output_text", "annotations": [], "logprobs": [], "text": text });
        let message = |status: &str, content: Value| json!({ "id": id, "type": "message", "status": status, "role": "assistant", "content": content });
        let whole = pieces.concat();
        let done = message("completed", json!([part(&whole)]));
        self.item(message("in_progress", json!([])), done, |stream, index| {
            let at = |more: Value| {
                let mut event = json!({ "item_id": id, "output_index": index, "content_index": 0 });
                event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                event
            };
            stream.push("response.content_part.added", at(json!({ "part": part("") })));
            for piece in pieces {
                stream.push("response.output_text.delta", at(json!({ "delta": piece, "logprobs": [] })));
            }
            stream.push("response.output_text.done", at(json!({ "text": whole, "logprobs": [] })));
            stream.push("response.content_part.done", at(json!({ "part": part(&whole) })));
        });
        self
    }

    fn thoughts(&mut self, whole: &str) -> &mut Self {
        let item = |summary: Value| json!({ "id": "rs", "type": "reasoning", "summary": summary, "encrypted_content": "e" });
        let part = |text: &str| json!({ "type": "summary_text", "text": text });
        self.item(item(json!([])), item(json!([part(whole)])), |stream, index| {
            let at = |more: Value| {
                let mut event = json!({ "item_id": "rs", "output_index": index, "summary_index": 0 });
                event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
                event
            };
            stream.push("response.reasoning_summary_part.added", at(json!({ "part": part("") })));
            stream.push("response.reasoning_summary_text.delta", at(json!({ "delta": whole })));
            stream.push("response.reasoning_summary_text.done", at(json!({ "text": whole })));
            stream.push("response.reasoning_summary_part.done", at(json!({ "part": part(whole) })));
        });
        self
    }

    fn call(&mut self, id: &str, name: &str, pieces: &[&str]) -> &mut Self {
        let item = |status: &str, arguments: &str| {
            json!({ "id": format!("fc_{id}"), "type": "function_call", "status": status, "arguments": arguments,
                "call_id": id, "name": name })
        };
        let whole = pieces.concat();
        self.item(item("in_progress", ""), item("completed", &whole), |stream, index| {
            for piece in pieces {
                let delta = json!({ "item_id": format!("fc_{id}"), "output_index": index, "delta": piece });
                stream.push("response.function_call_arguments.delta", delta);
            }
            let done = json!({ "item_id": format!("fc_{id}"), "output_index": index, "arguments": whole });
            stream.push("response.function_call_arguments.done", done);
        });
        self
    }

    fn end(&mut self) -> String {
        let mut response = self.response("completed");
        response["usage"] = json!({ "input_tokens": 10, "output_tokens": 5, "total_tokens": 15 });
        self.push("response.completed", json!({ "response": response }));
        self.events.concat()
    }
}

fn play() -> Play {
    Play::new(&OPENAI_RESPONSES)
}

fn data(stream: &str) -> Vec<Value> {
    let mut parser = sse::Parser::new();
    parser.push(stream.as_bytes());
    parser.finish();
    let mut events = Vec::new();
    while let Some(event) = parser.next_event().unwrap() {
        let value: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!(event.event, value["type"].as_str().unwrap());
        events.push(value);
    }
    events
}

/// What the SDKs rely on: numbers without gaps, every `done` says what the deltas said, and the response at the end
/// has the items as they were done. Gives the last event.
#[track_caller]
fn accepted(stream: &str) -> Value {
    let events = data(stream);
    let (mut items, mut texts) = (Vec::<Option<Value>>::new(), BTreeMap::<(u64, u64), String>::new());
    for (n, event) in events.iter().enumerate() {
        assert_eq!(event["sequence_number"], n, "{stream}");
        let kind = event["type"].as_str().unwrap();
        let index = event["output_index"].as_u64();
        let part = event["content_index"].as_u64().or(event["summary_index"].as_u64()).unwrap_or(0);
        match kind.rsplit('.').next().unwrap() {
            "added" if kind.ends_with("item.added") => {
                assert_eq!(index, Some(items.len() as u64), "{stream}");
                items.push(None);
            }
            "added" => assert!((index.unwrap() as usize) < items.len()),
            "delta" => {
                texts.entry((index.unwrap(), part)).or_default().push_str(event["delta"].as_str().unwrap())
            }
            "done" if kind.ends_with("item.done") => {
                items[index.unwrap() as usize] = Some(event["item"].clone())
            }
            "done" => {
                let said = texts.get(&(index.unwrap(), part)).map_or("", String::as_str);
                let done = ["text", "refusal", "arguments"].iter().find_map(|name| event[*name].as_str());
                let done = done.or(event["part"]["text"].as_str()).unwrap();
                assert_eq!(done, said, "{kind} in {stream}");
            }
            _ => {}
        }
    }
    let last = events.last().unwrap().clone();
    if last["type"] == "response.completed" {
        let items: Vec<Value> = items.into_iter().map(|item| item.expect("every item is done")).collect();
        assert_eq!(last["response"]["output"], json!(items), "{stream}");
        for (n, item) in items.iter().enumerate() {
            let whole = texts.get(&(n as u64, 0)).map_or("", String::as_str);
            let said = [&item["content"][0]["text"], &item["summary"][0]["text"], &item["arguments"]];
            assert_eq!(said.iter().find_map(|text| text.as_str()).unwrap(), whole, "{stream}");
        }
    }
    last
}

#[track_caller]
fn check(stream: &str, expected: &str) {
    let read = seen(&OPENAI_RESPONSES, stream);
    assert_eq!(read.line(), expected, "{stream}");
    let mut play = play();
    play.read(stream).write_all();
    assert_eq!(play.text(), stream);
}

fn event(value: &Value) -> String {
    format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap())
}

#[test]
fn what_repeats_is_read_once() {
    let stream = Stream::new("r1").thoughts("t").text(&["a", "b"]).call("c1", "sh", &["{\"x\"", ":1}"]).end();
    accepted(&stream);
    check(&stream, "0=ab 0~t 0>sh({\"x\":1})c1 0:tool_calls !");
    assert!(seen(&OPENAI_RESPONSES, &stream).asides.is_empty());
    let without_deltas: String = Stream::new("r1")
        .text(&["ab"])
        .end()
        .split_inclusive("\n\n")
        .filter(|event| !event.contains(".delta"))
        .collect();
    check(&without_deltas, "0=ab 0:stop !");
    let only_the_end = data(&Stream::new("r1").text(&["ab"]).call("c1", "sh", &["{}"]).end()).pop().unwrap();
    check(&event(&only_the_end), "0=ab 0>sh({})c1 0:tool_calls !");
}

#[test]
fn what_contradicts_is_odd() {
    let stream = Stream::new("r1").text(&["ab"]).end();
    let other = stream.replacen("\"text\":\"ab\"", "\"text\":\"xy\"", 1);
    assert!(play().try_read(other.as_bytes()).is_err());
    let more = stream.replace("\"text\":\"ab\"", "\"text\":\"abc\"");
    assert_eq!(seen(&OPENAI_RESPONSES, &more).line(), "0=abc 0:stop !");
    let call = Stream::new("r1").call("c1", "sh", &["1"]).events.concat();
    let late = json!({"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_c1", "delta": "2"});
    assert!(play().try_read((call + &event(&late)).as_bytes()).is_err());
    assert!(play().try_read(b"data: x\n\n").is_err());
}

#[test]
fn other_shapes_are_read() {
    let no_index =
        r#"{"type":"response.output_item.added","item":{"id":"m1","type":"message","content":[]}}"#;
    let delta = r#"{"type":"response.output_text.delta","item_id":"m1","delta":"a"}"#;
    let done = r#"{"type":"response.output_item.done","item":{"id":"m1","type":"message","content":[{"type":"output_text","text":"a"}]}}"#;
    check(&[no_index, delta, done].map(|data| format!("data: {data}\n\n")).concat(), "0=a");
    check(&format!("data: {delta}\n\n"), "0=a");
    let refusal = json!({"type": "response.refusal.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": "no"});
    check(&event(&refusal), "0=no");
    let thought = json!({"type": "response.reasoning_text.delta", "item_id": "m1", "output_index": 0, "content_index": 0, "delta": "t"});
    check(&event(&thought), "0~t");
    let custom = json!({"type": "custom_tool_call", "id": "i", "call_id": "c", "name": "f", "input": "x"});
    check(
        &event(&json!({"type": "response.output_item.done", "output_index": 0, "item": custom})),
        "0>f(x)c",
    );
    let shell = json!({"type": "local_shell_call", "id": "i", "call_id": "c", "action": {"command": ["ls"]}});
    check(
        &event(&json!({"type": "response.output_item.done", "output_index": 0, "item": shell})),
        "0>local_shell({\"command\":[\"ls\"]})c",
    );
    check(&event(&json!({"type": "error", "message": "no", "code": "c"})), "error:no");
    check(
        &event(
            &json!({"type": "response.failed", "response": {"status": "failed", "error": {"message": "no"}}}),
        ),
        "error:no",
    );
    let cut =
        json!({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []});
    check(&event(&json!({"type": "response.incomplete", "response": cut})), "0:length !");
}

#[test]
fn what_the_provider_runs_is_an_aside_and_told_once() {
    let search =
        json!({"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "q"}});
    let mcp = json!({"type": "mcp_call", "id": "m", "name": "n", "arguments": "A", "output": "O"});
    let annotation = json!({"type": "url_citation", "title": "T"});
    let mut play = play();
    play.read(&[
        json!({"type": "response.output_item.added", "output_index": 0, "item": search}),
        json!({"type": "response.output_item.done", "output_index": 0, "item": search}),
        json!({"type": "response.output_item.added", "output_index": 1, "item": {"type": "mcp_call", "id": "m", "name": "n"}}),
        json!({"type": "response.mcp_call_arguments.delta", "output_index": 1, "item_id": "m", "delta": "A"}),
        json!({"type": "response.output_item.done", "output_index": 1, "item": mcp}),
        json!({"type": "response.output_text.annotation.added", "output_index": 2, "annotation": annotation}),
        json!({"type": "response.new", "words": "W"}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [search, mcp], "instructions": "asked", "new": "N"}}),
    ].iter().map(event).collect::<String>());
    // a delta may go on, so it is told by itself; what repeats it, once
    assert_eq!(play.read.asides, ["q", "n", "A", "A", "O", "T", "W", "N"]);
    assert_eq!(play.read.line(), "0:stop !");
}

#[test]
fn changed_texts_are_changed_wherever_they_repeat() {
    let stream = Stream::new("r1")
        .thoughts("secret t")
        .text(&["a sec", "secret", " b"])
        .call("c1", "sh", &["{\"x\":", "\"secret\"}"])
        .end();
    let mut play = play();
    play.read(&stream).replace("secret", "*");
    assert!(!play.text().contains("secret"), "{}", play.text());
    assert_eq!(play.client().line(), "0=a sec* b 0~* t 0>sh({\"x\":\"*\"})c1 0:tool_calls !");
    let last = accepted(play.text());
    assert_eq!(
        (&last["response"]["x_odd"], &last["response"]["usage"]["total_tokens"]),
        (&json!(7), &json!(15))
    );
    let mut gone = super::tests::play();
    gone.read(&stream).replace("secret", "");
    accepted(gone.text());
    let mut all = super::tests::play();
    all.read(&Stream::new("r1").text(&["secret", "secret"]).end()).replace("secret", "");
    let texts: Vec<Value> =
        data(all.text()).into_iter().filter(|event| event["type"] == "response.output_text.delta").collect();
    assert!(texts.is_empty(), "{texts:?}");
    accepted(all.text());
}

#[test]
fn dropped_calls_leave_no_gap() {
    let stream =
        Stream::new("r1").text(&["a"]).call("c1", "sh", &["1"]).call("c2", "ls", &["2"]).text(&["b"]).end();
    let mut first = play();
    first.read(&stream).drop_call(0, 0).write_all();
    accepted(first.text());
    assert_eq!(first.client().line(), "0=ab 0>ls(2)c2 0:tool_calls !");
    let mut both = play();
    both.read(&stream).drop_call(0, 0).drop_call(0, 1).write_all();
    accepted(both.text());
    assert_eq!(both.client().line(), "0=ab 0:stop !");
}

#[test]
fn own_text_stands_where_the_client_is() {
    let stream = Stream::new("r1").thoughts("t").text(&["a", "b"]).call("c1", "sh", &["1"]).end();
    let n_events = data(&stream).len();
    for n in 0..n_events {
        let mut play = play();
        play.read(&stream).write(n).say(0, "<!>").write_all();
        accepted(play.text());
        let read = play.client();
        let (before, after) = read.text(0, ChannelKind::Content).split_once("<!>").expect("said once");
        assert_eq!(format!("{before}{after}"), "ab", "{n}");
        assert!(read.line().ends_with("0~t 0>sh(1)c1 0:tool_calls !"), "{}", read.line());
    }
    let mut nothing = play();
    nothing.say(0, "no").end(End::Filtered);
    assert_eq!(nothing.client().line(), "0=no 0:content_filter !");
    accepted(nothing.text());
}

#[test]
fn ends_are_regular() {
    let stream = Stream::new("r1").thoughts("t").text(&["a", "b"]).call("c1", "sh", &["1"]).end();
    let n_events = data(&stream).len();
    for n in 0..n_events {
        for how in [End::Filtered, End::Stopped] {
            let mut play = play();
            play.read(&stream).write(n).end(how.clone()).write_all();
            if how == End::Filtered {
                let last = accepted(play.text());
                assert_eq!(last["type"], "response.incomplete");
                assert_eq!(last["response"]["incomplete_details"]["reason"], "content_filter");
                assert!(play.client().line().ends_with("0:content_filter !"));
            } else {
                let last = data(play.text()).pop().unwrap();
                assert_eq!(
                    (&last["type"], &last["response"]["status"]),
                    (&json!("response.completed"), &json!("completed"))
                );
            }
        }
    }
    let mut half = play();
    half.read(&stream).write(n_events - 4).end(End::Stopped);
    assert!(
        !half.text().contains("function_call_arguments.done"),
        "half a call is none to make: {}",
        half.text()
    );
    let mut failed = play();
    failed.read(&stream).write(3).fail("gone");
    assert_eq!(failed.client().line(), "error:gone");
}

#[test]
fn another_answer_continues_the_first() {
    let first = Stream::new("r1").text(&["Let ", "me. "]).call("c1", "rm", &["{}"]).end();
    let second = Stream::new("r22").thoughts("t").text(&["No."]).call("c2", "ls", &["{}"]).end();
    for n in 0..=8 {
        let mut play = play();
        play.read(&first).write(n);
        let echo = play.exchange.echo();
        assert_eq!((echo.len(), &echo[1]["call_id"]), (2, &json!("c1")));
        play.next_answer().read(&second).write_all();
        let last = accepted(play.text());
        let said = if n < 5 {
            ""
        } else if n < 6 {
            "Let "
        } else {
            "Let me. "
        };
        assert_eq!(play.client().line(), format!("0={said}No. 0~t 0>ls({{}})c2 0:tool_calls !"), "{n}");
        assert_eq!((&last["response"]["id"], &last["response"]["created_at"]), (&json!("r1"), &json!(2)));
        assert_eq!(
            last["response"]["usage"],
            json!({"input_tokens": 20, "output_tokens": 10, "total_tokens": 30})
        );
        assert_eq!(play.exchange.echo()[2]["call_id"], "c2");
        assert_eq!(data(play.text()).iter().filter(|event| event["type"] == "response.created").count(), 1);
    }
}

#[test]
fn last_words_beside_a_call_and_the_end_stay() {
    // the items stand in the last event only
    let events = |id| {
        let stream = Stream::new(id).thoughts("t").text(&["a "]).call("c1", "rm", &["{}"]).end();
        let mut events: Vec<String> = stream.split_inclusive("\n\n").map(str::to_owned).collect();
        let end = events.pop().unwrap();
        events.truncate(2);
        (events.concat(), end)
    };
    let (begin, end) = events("r1");
    let next = Stream::new("r22").text(&["b"]).end();
    for begin in [begin.as_str(), ""] {
        let mut again = play();
        again.read(begin).write_all().read(&end).drop_call(0, 0).write_open();
        again.next_answer().read(&next).write_all();
        accepted(again.text());
        assert_eq!(again.client().line(), "0=a b 0~t 0:stop !", "{}", again.text());
        let mut filtered = play();
        filtered.read(begin).write_all().read(&end).drop_call(0, 0).write_open().end(End::Filtered);
        accepted(filtered.text());
        assert_eq!(filtered.client().line(), "0=a  0~t 0:content_filter !", "{}", filtered.text());
    }
    // the beginning of the text was out already
    let all = Stream::new("r1").text(&["a ", "b"]).end();
    let first: String = all.split_inclusive("\n\n").take(5).collect();
    let mut rest = play();
    let last = all.split_inclusive("\n\n").last().unwrap();
    rest.read(&first).write_all().read(last).write_open().end(End::Stopped);
    accepted(rest.text());
    assert_eq!(rest.client().line(), "0=a b 0:stop !", "{}", rest.text());
}

#[test]
fn bodies_are_read_and_written_like_streams() {
    let answer = |id| {
        data(
            &Stream::new(id)
                .text(&["a secret"])
                .call("c1", "sh", &["{\"x\":\"secret\"}"])
                .call("c2", "ls", &["{}"])
                .end(),
        )
        .pop()
        .unwrap()["response"]
            .clone()
    };
    let first = answer("r1");
    let mut one = Body::new(&OPENAI_RESPONSES);
    one.read(&first);
    assert_eq!(one.read.line(), "0=a secret 0>sh({\"x\":\"secret\"})c1 0>ls({})c2 0:tool_calls !");
    assert_eq!(one.replace(first.clone(), "nothing", "", None), first);
    one.exchange.drop_call(Channel { choice: 0, kind: ChannelKind::Call(1) });
    let written = one.say("said").replace(first.clone(), "secret", "*", None);
    let output = written["output"].as_array().unwrap();
    let said = |n: usize| &output[n]["content"][0]["text"];
    assert_eq!(
        (said(0), &output[1]["arguments"], output.len()),
        (&json!("a *said"), &json!("{\"x\":\"*\"}"), 2)
    );
    assert_eq!(written["x_odd"], json!(7));
    let filtered = one.replace(first.clone(), "", "", Some(End::Filtered));
    assert_eq!(filtered["incomplete_details"]["reason"], "content_filter");
    let second = data(&Stream::new("r22").text(&["No."]).end()).pop().unwrap()["response"].clone();
    let mut woven = Body::new(&OPENAI_RESPONSES);
    woven.read(&first).exchange.next_answer();
    let written = woven.read(&second).replace(second.clone(), "nothing", "", None);
    let said: Vec<&Value> =
        written["output"].as_array().unwrap().iter().map(|item| &item["content"][0]["text"]).collect();
    assert_eq!(said, ["a secret", "No."]);
    assert_eq!((&written["id"], &written["usage"]["total_tokens"]), (&json!("r1"), &json!(30)));
    assert!(OPENAI_RESPONSES.exchange(true).read_body(&json!({"x": 1}), &mut |_| {}).is_err());
}
