//! What hooks make of the text of an answer, on all wires, streamed and whole, cut wherever it can be cut.

use crate::kit::bench::lifecycle;
use crate::kit::wires::says;
use crate::kit::{Answer, Bench, Call, Client, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_llm::proxy::read_json;
use serde_json::{Value, json};

/// The text in two pieces, at each place.
fn cuts(text: &str) -> Vec<Answer> {
    let at = text.char_indices().map(|(at, _)| at).skip(1);
    at.map(|at| says(&[&text[..at], &text[at..]])).collect()
}

fn reply(wire: Wire, stream: bool, answer: &Answer) -> Reply {
    if stream { Reply::stream(&wire.stream(answer)) } else { Reply::json(&wire.body(answer)) }
}

/// An operator's hook on the stream.
fn on_text(regex: &str, actions: Value) -> Value {
    json!([{"target": "stream", "chunks": ["content"], "regex": regex, "actions": actions}])
}

async fn each(setup: impl Fn() -> Setup, test: impl AsyncFn(&Bench, Wire, bool)) {
    for wire in WIRES {
        for stream in [true, false] {
            let upstream = Upstream::playing(vec![reply(wire, stream, &says(&["x"]))]).await;
            test(&setup().start(&upstream).await, wire, stream).await;
        }
    }
}

#[test]
fn what_no_hook_changes_passes_byte_for_byte() {
    run(async {
        let answer =
            says(&["Hello ", "wörld 日本 \u{1F600}", "."]).and(Call::cut("shell", &["{\"a\"", ": 1.50}"]));
        let hooks = json!([
            {"target": "stream", "regex": "NEVER", "actions": [{"type": "interrupt"}]},
            {"target": "tool", "event": "before", "regex": "NEVER", "actions": [{"type": "block"}]},
            {"target": "chat", "regex": "NEVER", "actions": [{"type": "interrupt"}]},
            lifecycle("end", "pre_response", json!({})), lifecycle("stop", "stop", json!({})),
        ]);
        for hooks in [json!([]), hooks] {
            each(
                || Setup::user(hooks.clone()),
                async |bench, wire, stream| {
                    // as no serialiser would write it
                    let odd = |bytes: Vec<u8>| {
                        String::from_utf8(bytes)
                            .unwrap()
                            .replace("\"x_odd\":7", "\"x_odd\" : 7.00")
                            .into_bytes()
                    };
                    let reply = reply(wire, stream, &answer)
                        .with(|reply| reply.pieces = reply.pieces.drain(..).map(odd).collect())
                        .header("x-request-id", "r-1")
                        .header("openai-processing-ms", "7")
                        .header("set-cookie", "a=1")
                        .header("set-cookie", "b=2");
                    bench.upstream.play(vec![reply.clone()]);
                    let body = wire.request(stream, "hi").to_string().replace("\"hi\"", "\"h\\u0069\" ");
                    let request = crate::kit::client::post(
                        wire.path(stream),
                        &[
                            ("authorization", "Bearer k"),
                            ("x-stainless-lang", "python"),
                            ("user-agent", "u/1"),
                            ("connection", "x-gone"),
                            ("x-gone", "1"),
                        ],
                        body.as_bytes(),
                    );
                    let got = Client::new(bench.address).raw(&request).await;
                    assert_eq!(got.body, reply.all(), "{wire:?} {stream} {}", got.text());
                    for (name, value) in &reply.headers {
                        assert!(
                            got.head.to_lowercase().contains(&format!("{name}: {value}\r\n")),
                            "{name} in {}",
                            got.head
                        );
                    }
                    let sent = bench.upstream.last();
                    assert_eq!(sent.body, body.as_bytes());
                    assert_eq!(sent.path(), wire.path(stream));
                    assert_eq!(sent.header("authorization"), Some("Bearer k"));
                    assert_eq!(sent.header("x-stainless-lang"), Some("python"));
                    assert_eq!(sent.header("user-agent"), Some("u/1"));
                    assert_eq!(sent.header("x-gone"), None);
                    assert_eq!(sent.header("host"), Some(bench.upstream.address.to_string().as_str()));
                },
            )
            .await;
        }
    });
}

#[test]
fn an_interrupt_ends_the_answer_before_the_match_wherever_it_is_cut() {
    run(async {
        let hooks = on_text("BAD-?WORD", json!([{"type": "interrupt"}]));
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                for answer in cuts("Hello there BADWORD and more") {
                    bench.upstream.play(vec![reply(wire, stream, &answer)]);
                    let seen = bench.seen(wire, stream).await;
                    assert!("Hello there ".starts_with(seen.text()), "{wire:?} {answer:?} {seen:?}");
                    assert_eq!(seen.finish(), "content_filter", "{wire:?} {answer:?} {seen:?}");
                    assert!(seen.errors.is_empty() && seen.whole, "{wire:?} {seen:?}");
                }
            },
        )
        .await;
    });
}

#[test]
fn an_interrupt_with_resend_gives_the_client_one_answer() {
    run(async {
        let hooks = on_text(
            "BADWORD",
            json!([{"type": "queue-message", "role": "user", "message": "say it otherwise"}, {"type": "interrupt", "resend": true}]),
        );
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                for answer in cuts("One BADWORD x").into_iter().step_by(3) {
                    let before = bench.upstream.count();
                    bench.upstream.play(vec![
                        reply(wire, stream, &answer),
                        reply(wire, stream, &says(&["two", " is fine"])),
                    ]);
                    let seen = bench.seen(wire, stream).await;
                    // what was out already cannot be taken back
                    let text = seen
                        .text()
                        .strip_suffix("two is fine")
                        .unwrap_or_else(|| panic!("{wire:?} {stream} {seen:?}"));
                    assert!("One ".starts_with(text), "{wire:?} {seen:?}");
                    assert_eq!(seen.finish(), "stop", "{wire:?} {seen:?}");
                    assert_eq!(
                        (seen.finish.len(), seen.errors.len(), seen.whole),
                        (1, 0, true),
                        "{wire:?} {seen:?}"
                    );
                    let requests = bench.upstream.requests();
                    assert_eq!(requests.len() - before, 2);
                    let again = requests.last().unwrap().json();
                    assert!(
                        wire.messages(&again).last().unwrap().to_string().contains("say it otherwise"),
                        "{again}"
                    );
                    if !stream {
                        // what an answer cost that was given up in the middle, nobody says
                        assert_eq!(seen.usage, (Some(20), Some(10)), "both were paid: {wire:?}");
                    }
                }
            },
        )
        .await;
    });
}

#[test]
fn resends_end_in_the_wires_error() {
    run(async {
        let hooks = on_text("BADWORD", json!([{"type": "interrupt", "resend": true}]));
        each(
            || Setup::user(hooks.clone()).with(|setup| setup.max_resends = 2),
            async |bench, wire, stream| {
                bench.upstream.play(vec![reply(wire, stream, &says(&["BADWORD"]))]);
                let got = bench.ask(wire, stream).await;
                assert_eq!(bench.upstream.count(), 3, "{wire:?}");
                assert!(got.text().contains("after 2 resends"), "{wire:?} {}", got.text());
                assert!(!got.text().contains("BADWORD"));
                if stream {
                    assert_eq!(got.seen(wire).errors.len(), 1, "{wire:?} {}", got.text());
                } else {
                    assert_eq!(got.status, 502);
                    assert!(got.json().get("error").is_some());
                }
            },
        )
        .await;
    });
}

#[test]
fn queued_messages_join_the_next_request_and_queue_resend_asks_at_once() {
    run(async {
        let hooks = on_text(
            "remember",
            json!([{"type": "queue-message", "role": "user", "message": "note: it was said"}]),
        );
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                bench.upstream.play(vec![
                    reply(wire, stream, &says(&["please remember"])),
                    reply(wire, stream, &says(&["yes"])),
                ]);
                let seen = bench.seen(wire, stream).await;
                assert_eq!((seen.text(), bench.upstream.count()), ("please remember", 1));
                let body = wire.turns(stream, &["hi", "please remember", "go on"]);
                assert_eq!(bench.post(wire, stream, &body).await.seen(wire).text(), "yes");
                let sent = wire.messages(&bench.upstream.last().json());
                assert!(sent.last().unwrap().to_string().contains("note: it was said"), "{sent:?}");
                // once
                bench.post(wire, stream, &body).await;
                assert_eq!(bench.upstream.last().body, body.to_string().as_bytes());
            },
        )
        .await;
        let hooks = json!([{"target": "stream", "chunks": ["content"], "regex": "not yet|at the en", "maxTriggers": 1, "actions": [{"type": "queue-message", "role": "user", "message": "and then?"}, {"type": "queue-resend"}]},
            lifecycle("p", "pre_response", json!({"append": "<END>"}))]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                bench.upstream.play(vec![
                    reply(wire, stream, &says(&["not", " yet"])),
                    reply(wire, stream, &says(&["done"])),
                ]);
                let seen = bench.seen(wire, stream).await;
                assert_eq!(bench.upstream.count(), 2, "{wire:?} {stream}");
                assert_eq!(seen.text(), "not yetdone<END>", "{wire:?} {stream}");
                assert_eq!(seen.usage, (Some(20), Some(10)), "{wire:?} {stream}");
                assert_eq!((seen.finish(), seen.finish.len()), ("stop", 1), "{wire:?} {seen:?}");
                let sent = wire.messages(&bench.upstream.last().json());
                assert!(
                    sent[1].to_string().contains("not yet") && sent[2].to_string().contains("and then?"),
                    "{sent:?}"
                );
            },
        )
        .await;
    });
}

#[test]
fn a_redaction_replaces_the_match_wherever_it_is_cut() {
    run(async {
        let hooks = on_text("sk-[a-z0-9]{8}", json!([{"type": "redact", "with": "<key>"}]));
        each(
            || Setup::trusted(hooks.clone()),
            async |bench, wire, stream| {
                for answer in cuts("the key sk-abcd1234, and sk-short, \"sk-zzzz9999\"") {
                    bench.upstream.play(vec![reply(wire, stream, &answer)]);
                    let seen = bench.seen(wire, stream).await;
                    assert_eq!(seen.text(), "the key <key>, and sk-short, \"<key>\"", "{wire:?} {answer:?}");
                    assert_eq!((seen.finish(), seen.whole), ("stop", true));
                }
            },
        )
        .await;
    });
}

#[test]
fn what_waited_goes_out_before_what_is_appended() {
    run(async {
        // the last text could still become a match until the answer ends
        let hooks = json!([{"target": "stream", "chunks": ["content"], "regex": "BADWORD", "actions": [{"type": "interrupt"}]},
            lifecycle("p", "pre_response", json!({"append": "<APPENDED>"}))]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                for tail in ["no", "BADWOR", "B"] {
                    bench.upstream.play(vec![reply(wire, stream, &says(&["this is ", tail]))]);
                    let seen = bench.seen(wire, stream).await;
                    assert_eq!(seen.text(), format!("this is {tail}<APPENDED>"), "{wire:?} {stream}");
                }
            },
        )
        .await;
        // and it is not lost where the model is asked again
        let hooks = json!([{"target": "stream", "chunks": ["content"], "regex": "BADWORD", "actions": [{"type": "interrupt"}]},
            {"target": "chat", "roles": ["assistant"], "maxTriggers": 1, "actions": [{"type": "queue-message", "role": "user", "message": "more"}, {"type": "queue-resend"}]}]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                bench.upstream.play(vec![
                    reply(wire, stream, &says(&["this is BADWOR"])),
                    reply(wire, stream, &says(&["!"])),
                ]);
                let seen = bench.seen(wire, stream).await;
                assert_eq!(seen.text(), "this is BADWOR!", "{wire:?} {stream}");
            },
        )
        .await;
    });
}

#[test]
fn additions_come_once_before_the_end_and_usage_stays() {
    run(async {
        let hooks = json!([
            lifecycle("a", "pre_response", json!({"append": "\n[a]"})),
            lifecycle("s", "pre_response", json!({"send": "[s]"}))
        ]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                bench.upstream.play(vec![reply(wire, stream, &says(&["Hi", "."]))]);
                let seen = bench.seen(wire, stream).await;
                // what is sent is a message of its own where the wire has several
                let want = if wire == Wire::Responses { "Hi.\n[a][s]" } else { "Hi.\n[a]\n\n[s]" };
                assert_eq!(seen.text(), want, "{wire:?} {stream}");
                assert_eq!(
                    (seen.finish(), seen.finish.len(), seen.whole),
                    ("stop", 1, true),
                    "{wire:?} {seen:?}"
                );
                assert_eq!(seen.usage, (Some(10), Some(5)), "{wire:?} {stream}");
                assert_eq!(bench.asked("a", "/response"), [json!("Hi.")]);
                // a call is not the end of the turn
                bench.upstream.play(vec![reply(wire, stream, &says(&["Hi"]).and(Call::new("shell", "{}")))]);
                let seen = bench.seen(wire, stream).await;
                assert_eq!((seen.text(), seen.calls.len()), ("Hi", 1), "{wire:?} {stream}");
            },
        )
        .await;
    });
}

#[test]
fn an_answer_that_needs_its_notice_is_withheld_without_it() {
    run(async {
        let mut hook = lifecycle("a", "pre_response", json!({"fail": true}));
        hook["on_error"] = "block".into();
        each(
            || Setup::user(json!([hook])),
            async |bench, wire, stream| {
                bench.upstream.play(vec![reply(wire, stream, &says(&["Hi", "."]))]);
                let seen = bench.seen(wire, stream).await;
                assert_eq!(seen.finish(), "content_filter", "{wire:?} {stream} {seen:?}");
                if !stream {
                    assert_eq!(seen.text(), "");
                }
            },
        )
        .await;
    });
}

#[test]
fn text_where_nobody_looks_for_it_is_judged_too() {
    run(async {
        let hooks = on_text("BADWORD", json!([{"type": "interrupt"}]));
        let unknown = [
            (
                Wire::Chat,
                "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"novel\":\"see BADWORD\"},\"finish_reason\":null}]}\n\n",
            ),
            (
                Wire::Responses,
                "event: response.novel\ndata: {\"type\":\"response.novel\",\"sequence_number\":1,\"x\":[\"BADWORD\"]}\n\n",
            ),
            (Wire::Messages, "event: novel\ndata: {\"type\":\"novel\",\"x\":{\"y\":\"BADWORD\"}}\n\n"),
            (
                Wire::Gemini,
                "data: {\"candidates\":[{\"content\":{\"parts\":[{\"novel\":{\"y\":\"BADWORD\"}}]},\"index\":0}]}\n\n",
            ),
        ];
        for (wire, event) in unknown {
            let mut events = wire.stream(&says(&["fine"]));
            events.insert(1, event.to_owned());
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let bench = Setup::user(hooks.clone()).start(&upstream).await;
            let got = bench.ask(wire, true).await;
            assert!(!got.text().contains("BADWORD"), "{wire:?} {}", got.text());
            assert_eq!(got.seen(wire).finish(), "content_filter", "{wire:?}");
            // a credential that ends with the text is known only at its end
            let key = event.replace("BADWORD", "AKIAIOSFODNN7EXAMPLQ");
            let mut events = wire.stream(&says(&["fine"]));
            events.insert(1, key);
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let bench = Setup::builtin("secrets_stream", json!({})).start(&upstream).await;
            let got = bench.ask(wire, true).await;
            assert!(!got.text().contains("AKIAIOSFODNN7EXAMPLQ"), "{wire:?} {}", got.text());
        }
    });
}

#[test]
fn text_where_nobody_looks_for_it_is_judged_in_one_piece_too() {
    run(async {
        for resend in [false, true] {
            let hooks = on_text("BADWORD", json!([{"type": "interrupt", "resend": resend}]));
            for wire in WIRES {
                let fine = wire.body(&says(&["fine"]));
                let mut bodies = vec![fine.clone(), fine.clone()];
                bodies[0]["novel"] = json!({"x": ["see BADWORD"]});
                let inner = match wire {
                    Wire::Chat => &mut bodies[1]["choices"][0]["message"],
                    Wire::Responses => &mut bodies[1]["output"][0],
                    Wire::Messages => &mut bodies[1]["content"][0],
                    Wire::Gemini => &mut bodies[1]["candidates"][0]["content"]["parts"][0],
                };
                inner["novel"] = "BADWORD".into();
                for body in bodies {
                    let upstream = Upstream::playing(vec![Reply::json(&body), Reply::json(&fine)]).await;
                    let got = Setup::user(hooks.clone()).start(&upstream).await.ask(wire, false).await;
                    assert!(!got.text().contains("BADWORD"), "{wire:?} {body} {}", got.text());
                    match resend {
                        true => assert_eq!(got.seen(wire).text(), "fine", "{wire:?} {}", got.text()),
                        false => assert_eq!(got.status, 400, "{wire:?} {}", got.text()),
                    }
                }
            }
        }
    });
}

#[test]
fn a_redaction_holds_also_where_the_model_is_asked_again() {
    run(async {
        let hooks = json!([{"target": "stream", "chunks": ["content"], "regex": "sk-[a-z0-9]{8}", "actions": [{"type": "redact", "with": "<key>"}]},
            {"target": "tool", "event": "before", "actions": [{"type": "block"}]}]);
        each(
            || Setup::trusted(hooks.clone()),
            async |bench, wire, stream| {
                let first = says(&["my sk-abc", "d1234 "]).and(Call::new("shell", "{}"));
                bench.upstream.play(vec![
                    reply(wire, stream, &first),
                    reply(wire, stream, &says(&["and sk-zzzz9999", "."])),
                ]);
                let got = bench.ask(wire, stream).await;
                assert_eq!(got.seen(wire).text(), "my <key> and <key>.", "{wire:?} {stream} {}", got.text());
                assert!(!got.text().contains("sk-"), "{wire:?} {stream} {}", got.text());
            },
        )
        .await;
    });
}

#[test]
fn with_no_guard_nothing_is_held() {
    run(async {
        let hooks =
            json!([{"target": "stream", "regex": "word", "actions": [{"type": "log", "message": "seen"}]}]);
        for wire in WIRES {
            let events = wire.stream(&says(&["a wor", "d b", " c", " d"]));
            let pause = std::time::Duration::from_millis(40);
            let upstream =
                Upstream::playing(vec![Reply::stream(&events).with(|reply| reply.pause = pause)]).await;
            let bench = Setup::user(hooks.clone()).start(&upstream).await;
            let got = bench.ask(wire, true).await;
            assert_eq!(got.body, events.concat().as_bytes());
            assert_eq!(got.times.len(), events.len(), "one piece an event");
            assert_eq!(bench.told("log").len(), 1);
            for (pair, event) in got.times.windows(2).zip(&events) {
                assert!(pair[1].0 - pair[0].0 > pause / 4, "each comes before the next is sent: {event}");
            }
        }
    });
}

#[test]
fn a_slow_gate_does_not_hold_what_is_free() {
    run(async {
        let hooks = json!([lifecycle("slow", "pre_tool_use", json!({"wait_ms": 600}))]);
        for wire in WIRES {
            // all in one write
            let bytes = wire.stream(&says(&["Let me see."]).and(Call::new("shell", "{\"a\":1}"))).concat();
            let upstream = Upstream::playing(vec![Reply::bytes(bytes.clone().into_bytes())]).await;
            let got = Setup::user(hooks.clone()).start(&upstream).await.ask(wire, true).await;
            assert_eq!(got.text(), bytes);
            let (first, last) = (got.times[0], got.times[got.times.len() - 1]);
            assert!(last.0 - first.0 > std::time::Duration::from_millis(300), "{wire:?}");
            assert!(bytes[..first.1].contains("Let me see."), "{wire:?} {}", &bytes[..first.1]);
        }
    });
}

#[test]
fn a_whole_answer_in_a_list_is_judged() {
    run(async {
        // generateContent without `alt=sse` streams one JSON list
        let body = Wire::Gemini.body(&says(&["the BADWORD"]));
        let list = Reply::json(&json!([body, body]));
        let upstream = Upstream::playing(vec![list]).await;
        let bench = Setup::user(on_text("BADWORD", json!([{"type": "interrupt"}]))).start(&upstream).await;
        let request = Wire::Gemini.request(true, "hi");
        let got =
            Client::new(bench.address).post("/v1beta/models/m:streamGenerateContent", &[], &request).await;
        assert!(!got.text().contains("BADWORD"), "{}", got.text());
        assert!(read_json(&got.body).is_some());
    });
}
