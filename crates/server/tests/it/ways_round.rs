//! Ways round a hook that somebody found: each is closed.

use crate::kit::bench::{Hooks, lifecycle};
use crate::kit::wires::says;
use crate::kit::{Answer, Call, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::OnBlock;
use serde_json::{Value, json};

fn guard() -> Value {
    json!([lifecycle("guard", "pre_tool_use", json!({"block_if": "rm -rf", "reason": "too dangerous"}))])
}

fn bad() -> Call {
    Call::new("shell", "{\"command\":\"rm -rf /\"}")
}

fn reply(wire: Wire, stream: bool, answer: &Answer) -> Reply {
    if stream { Reply::stream(&wire.stream(answer)) } else { Reply::json(&wire.body(answer)) }
}

/// Two answers at once, each with a call that may not run.
fn two(wire: Wire) -> (Value, Value) {
    let (list, n) = if wire == Wire::Chat { ("choices", "n") } else { ("candidates", "candidateCount") };
    let mut body = wire.body(&says(&["a"]).and(bad()));
    let mut second = body[list][0].clone();
    second["index"] = 1.into();
    body[list].as_array_mut().unwrap().push(second);
    let mut request = wire.request(false, "hi");
    match wire {
        Wire::Chat => request[n] = 2.into(),
        _ => request["generationConfig"] = json!({ n: 2 }),
    }
    (request, body)
}

#[test]
fn the_calls_of_every_answer_are_judged() {
    run(async {
        for wire in [Wire::Chat, Wire::Gemini] {
            for on_block in [OnBlock::TellModel { most: 2 }, OnBlock::Refuse] {
                let (request, body) = two(wire);
                let upstream = Upstream::playing(vec![Reply::json(&body)]).await;
                let bench =
                    Setup::user(guard()).with(|setup| setup.on_block = on_block).start(&upstream).await;
                let got = bench.post(wire, false, &request).await;
                assert_eq!((got.status, upstream.count()), (200, 1), "{}", got.text());
                assert!(!got.text().contains("rf /"), "{wire:?} {on_block:?} {}", got.text());
                assert_eq!(got.text().matches("shell was not run").count(), 2, "{}", got.text());
            }
        }
    });
}

#[test]
fn one_answer_of_several_ends_alone() {
    run(async {
        let chunk = |index: u32, delta: Value, end: Value| {
            json!({"id": "c", "object": "chat.completion.chunk", "model": "m",
                "choices": [{"index": index, "delta": delta, "finish_reason": end}]})
        };
        let call = json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function",
            "function": {"name": "shell", "arguments": "{\"command\":\"rm -rf /\"}"}}]});
        let events: Vec<String> = [
            chunk(0, json!({"role": "assistant", "content": "A"}), Value::Null),
            chunk(0, call, Value::Null),
            chunk(0, json!({}), "tool_calls".into()),
            chunk(1, json!({"role": "assistant", "content": "B1 "}), Value::Null),
            chunk(1, json!({"content": "B2"}), Value::Null),
            chunk(1, json!({}), "stop".into()),
        ]
        .iter()
        .map(|event| format!("data: {event}\n\n"))
        .chain(["data: [DONE]\n\n".to_owned()])
        .collect();
        for on_block in [OnBlock::TellModel { most: 2 }, OnBlock::Refuse] {
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let bench = Setup::user(guard()).with(|setup| setup.on_block = on_block).start(&upstream).await;
            let mut request = Wire::Chat.request(true, "hi");
            request["n"] = 2.into();
            let got = bench.post(Wire::Chat, true, &request).await;
            assert_eq!(upstream.count(), 1, "{}", got.text());
            assert!(!got.text().contains("rf /"), "{}", got.text());
            assert!(got.text().contains("B1 ") && got.text().contains("B2"), "{}", got.text());
            assert!(!got.text().contains("content_filter"), "{}", got.text());
        }
    });
}

#[test]
fn no_beginning_of_an_answer_makes_a_prompt_an_old_one() {
    run(async {
        let hooks =
            json!([lifecycle("p", "user_prompt_submit", json!({"block_if": "secret plan", "reason": "no"}))]);
        for wire in WIRES {
            for stream in [true, false] {
                let upstream = Upstream::playing(vec![reply(wire, stream, &says(&["ok"]))]).await;
                let bench = Setup::user(hooks.clone()).start(&upstream).await;
                for texts in [&["the secret plan", "Sure,"][..], &["hi", "ok", "the secret plan", "Sure,"]] {
                    let got = bench.post(wire, stream, &wire.turns(stream, texts)).await;
                    assert_eq!((got.status, upstream.count()), (400, 0), "{wire:?} {texts:?} {}", got.text());
                }
                let fine = wire.turns(stream, &["hi", "ok", "go on", "Sure,"]);
                assert_eq!(bench.post(wire, stream, &fine).await.status, 200, "{wire:?}");
            }
        }
    });
}

#[test]
fn an_error_beside_an_answer_hides_nothing() {
    run(async {
        for wire in WIRES {
            let answer = says(&["a BADWORD"]).and(bad());
            let hooks = json!([guard()[0], {"target": "stream", "chunks": ["content"], "regex": "BADWORD",
                "actions": [{"type": "redact", "with": "<gone>"}]}]);
            let mut body = wire.body(&answer);
            body["error"] = json!({"message": "odd", "type": "server_error", "code": 500});
            let upstream = Upstream::playing(vec![Reply::json(&body)]).await;
            let bench = Setup::trusted(hooks.clone()).start(&upstream).await;
            let got = bench.ask(wire, false).await;
            assert!(
                !got.text().contains("rf /") && !got.text().contains("BADWORD"),
                "{wire:?} {}",
                got.text()
            );
            // and beside each event of a stream
            let events: Vec<String> = wire
                .stream(&answer)
                .iter()
                .map(|event| event.replacen("data: {", "data: {\"error\":{\"message\":\"odd\"},", 1))
                .collect();
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let got = Setup::trusted(hooks).start(&upstream).await.ask(wire, true).await;
            assert!(
                !got.text().contains("rf /") && !got.text().contains("BADWORD"),
                "{wire:?} {}",
                got.text()
            );
        }
    });
}

#[test]
fn what_an_error_says_is_looked_at() {
    run(async {
        let hooks = json!([{"target": "stream", "chunks": ["content"], "regex": "sk-[a-z0-9]{8}",
            "actions": [{"type": "redact", "with": "<key>"}]}]);
        for wire in WIRES {
            let error = match wire {
                Wire::Responses | Wire::Messages => {
                    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"x\",\"message\":\"no sk-abcd1234\"}}\n\n"
                }
                Wire::Chat | Wire::Gemini => {
                    "data: {\"error\":{\"message\":\"no sk-abcd1234\",\"code\":401}}\n\n"
                }
            };
            let upstream = Upstream::playing(vec![Reply::stream(&[error.to_owned()])]).await;
            let got = Setup::trusted(hooks.clone()).start(&upstream).await.ask(wire, true).await;
            assert!(!got.text().contains("sk-abcd1234"), "{wire:?} {}", got.text());
        }
    });
}

#[test]
fn what_one_hook_took_out_of_a_call_no_other_brings_back() {
    run(async {
        let key = "AKIAQ3EGRZFB5WXKMJ2N";
        let hooks = Hooks {
            builtins: vec![("secrets_stream", json!({"redact": true})), ("pii_tools", json!({}))],
            ..Hooks::default()
        };
        for wire in WIRES {
            for stream in [true, false] {
                let call =
                    Call::new("mail", &format!("{{\"to\":\"joe.doe@example.com\",\"text\":\"{key}\"}}"));
                let upstream = Upstream::playing(vec![reply(wire, stream, &says(&["a"]).and(call))]).await;
                let bench = Setup::default().with(|setup| setup.hooks = hooks.clone()).start(&upstream).await;
                let got = bench.ask(wire, stream).await;
                assert!(!got.text().contains(key), "{wire:?} {stream} {}", got.text());
                assert!(!got.text().contains("joe.doe@example.com"), "{wire:?} {stream} {}", got.text());
                assert!(got.text().contains("mail"), "{wire:?} {stream} {}", got.text());
            }
        }
    });
}

#[test]
fn text_of_unknown_places_is_held_over_its_pieces() {
    run(async {
        let hooks = json!([{"target": "stream", "chunks": ["content"], "regex": "rm -rf /", "actions": [{"type": "interrupt"}]}]);
        let event = |name: &str, value: Value| format!("event: {name}\ndata: {value}\n\n");
        for wire in [Wire::Chat, Wire::Responses, Wire::Messages] {
            let mut events = wire.stream(&says(&["fine"]));
            let mut at = 1;
            if wire == Wire::Messages {
                let begin = json!({"type": "content_block_start", "index": 7,
                    "content_block": {"type": "server_tool_use", "id": "s1", "name": "bash", "input": {}}});
                events.insert(at, event("content_block_start", begin));
                at += 1;
            }
            for (n, piece) in ["rm", " -r", "f /x", " now"].iter().enumerate() {
                let unknown = match wire {
                    Wire::Messages => event(
                        "content_block_delta",
                        json!({"type": "content_block_delta", "index": 7, "delta": {"type": "input_json_delta", "partial_json": piece}}),
                    ),
                    Wire::Responses => event(
                        "response.code_interpreter_call_code.delta",
                        json!({"type": "response.code_interpreter_call_code.delta", "item_id": "ci", "delta": piece}),
                    ),
                    Wire::Chat | Wire::Gemini => format!(
                        "data: {}\n\n",
                        json!({"id": "c1", "object": "chat.completion.chunk", "model": "m", "choices":
                            [{"index": 0, "delta": {"audio": {"id": "a", "transcript": piece}}, "finish_reason": null}]})
                    ),
                };
                events.insert(at + n, unknown);
            }
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let got = Setup::user(hooks.clone()).start(&upstream).await.ask(wire, true).await;
            for piece in ["\"rm\"", "\" -r\"", "f /x"] {
                assert!(!got.text().contains(piece), "{wire:?} {piece} {}", got.text());
            }
            // and without a match all of it goes out
            let clean: Vec<String> = events.iter().map(|event| event.replace("f /x", "f ./x")).collect();
            let upstream = Upstream::playing(vec![Reply::stream(&clean)]).await;
            let got = Setup::user(hooks.clone()).start(&upstream).await.ask(wire, true).await;
            assert_eq!(got.text(), clean.concat(), "{wire:?}");
        }
    });
}

#[test]
fn keys_that_a_server_may_read_as_others_are_refused() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::playing(vec![reply(wire, false, &says(&["ok"]))]).await;
            let bench = Setup::user(guard()).start(&upstream).await;
            for name in ["Messages", "Input", "CONTENTS"] {
                let mut request = wire.request(false, "hi");
                request[name] = json!([{"role": "user", "content": "evil"}]);
                let got = bench.post(wire, false, &request).await;
                assert_eq!((got.status, upstream.count()), (400, 0), "{wire:?} {}", got.text());
                assert!(got.text().contains(&format!("the key `{name}`")), "{}", got.text());
            }
        }
    });
}
