//! Tool calls that hooks stop or change, on all wires.

use crate::kit::bench::lifecycle;
use crate::kit::wires::{calls, says};
use crate::kit::{Answer, Bench, Call, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::OnBlock;
use serde_json::{Value, json};

fn reply(wire: Wire, stream: bool, answer: &Answer) -> Reply {
    if stream { Reply::stream(&wire.stream(answer)) } else { Reply::json(&wire.body(answer)) }
}

fn guard() -> Value {
    json!([lifecycle("guard", "pre_tool_use", json!({"block_if": "rm -rf", "reason": "too dangerous"}))])
}

fn bad() -> Call {
    Call::cut("shell", &["{\"command\":", "\"rm -", "rf /\"}"])
}

fn good(command: &str) -> Call {
    Call::cut("shell", &["{\"command\":", &format!("\"{command}\"}}")])
}

async fn each(setup: impl Fn() -> Setup, test: impl AsyncFn(&Bench, Wire, bool)) {
    for wire in WIRES {
        for stream in [true, false] {
            let upstream = Upstream::playing(vec![reply(wire, stream, &says(&["x"]))]).await;
            test(&setup().start(&upstream).await, wire, stream).await;
        }
    }
}

fn arguments(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_model_reads_why_and_the_client_sees_one_answer() {
    run(async {
        each(
            || Setup::user(guard()),
            async |bench, wire, stream| {
                let first = says(&["Let me", " see. "]).and(bad());
                bench.upstream.play(vec![
                    reply(wire, stream, &first),
                    reply(wire, stream, &says(&["I", " will not."])),
                ]);
                let got = bench.ask(wire, stream).await;
                let seen = got.seen(wire);
                assert!(!got.text().contains("rf /"), "{wire:?} {}", got.text());
                assert_eq!(seen.text(), "Let me see. I will not.", "{wire:?} {stream} {}", got.text());
                assert_eq!(
                    (seen.finish(), seen.finish.len(), seen.whole),
                    ("stop", 1, true),
                    "{wire:?} {seen:?}"
                );
                assert!(seen.calls.is_empty() && seen.errors.is_empty());
                assert_eq!(seen.usage, (Some(20), Some(10)), "{wire:?} {stream}");
                assert_eq!(bench.upstream.count(), 2);
                let sent = wire.messages(&bench.upstream.last().json());
                let all = json!(sent).to_string();
                assert!(all.contains("Let me see. ") && all.contains("rm -rf"), "what it said: {all}");
                assert!(
                    sent.last().unwrap().to_string().contains("blocked by hook guard: too dangerous"),
                    "{all}"
                );
                assert_eq!(bench.told("blocked"), ["blocked shell: blocked by hook guard: too dangerous"]);
            },
        )
        .await;
    });
}

#[test]
fn a_model_that_insists_is_refused_in_the_end() {
    run(async {
        each(
            || Setup::user(guard()),
            async |bench, wire, stream| {
                bench.upstream.play(vec![reply(wire, stream, &calls(vec![bad()]))]);
                let seen = bench.seen(wire, stream).await;
                assert_eq!(bench.upstream.count(), 3, "asked again twice");
                assert_eq!(
                    (seen.finish(), seen.calls.len(), seen.whole),
                    ("content_filter", 0, true),
                    "{wire:?} {seen:?}"
                );
                assert!(
                    seen.text().contains("shell was not run: blocked by hook guard"),
                    "{wire:?} {seen:?}"
                );
            },
        )
        .await;
    });
}

#[test]
fn a_refusal_ends_the_answer_as_the_provider_would() {
    run(async {
        let setup = || Setup::user(guard()).with(|setup| setup.on_block = OnBlock::Refuse);
        each(setup, async |bench, wire, stream| {
            bench.upstream.play(vec![reply(wire, stream, &says(&["Well. "]).and(bad()))]);
            let got = bench.ask(wire, stream).await;
            let seen = got.seen(wire);
            assert_eq!(bench.upstream.count(), 1);
            assert_eq!(
                (seen.finish(), seen.calls.len(), seen.whole),
                ("content_filter", 0, true),
                "{wire:?} {seen:?}"
            );
            assert!(seen.text().starts_with("Well. [shell was not run"), "{wire:?} {stream} {seen:?}");
            assert!(!got.text().contains("rf /"));
        })
        .await;
    });
}

#[test]
fn of_parallel_calls_the_allowed_are_kept() {
    run(async {
        each(
            || Setup::user(guard()),
            async |bench, wire, stream| {
                for interleaved in [false, true] {
                    for at in 0..3 {
                        let mut all = vec![good("ls"), good("pwd"), good("id")];
                        all[at] = bad();
                        let mut answer = calls(all);
                        answer.interleaved = interleaved;
                        bench.upstream.play(vec![reply(wire, stream, &answer)]);
                        let before = bench.upstream.count();
                        let got = bench.ask(wire, stream).await;
                        let seen = got.seen(wire);
                        assert_eq!(bench.upstream.count() - before, 1);
                        let want: Vec<Value> = ["ls", "pwd", "id"]
                            .iter()
                            .enumerate()
                            .filter(|(n, _)| *n != at)
                            .map(|(_, command)| json!({"command": command}))
                            .collect();
                        let kept: Vec<Value> = seen.calls.iter().map(|(_, text)| arguments(text)).collect();
                        assert_eq!(kept, want, "{wire:?} {stream} {interleaved} {at}: {}", got.text());
                        // Gemini has no word of its own for calls
                        assert!(seen.finish() == "tool_calls" || wire == Wire::Gemini, "{wire:?} {seen:?}");
                        assert!(!got.text().contains("rf /") && seen.whole, "{wire:?} {}", got.text());
                        assert!(seen.text().contains("shell was not run"), "{wire:?} {seen:?}");
                        if stream {
                            no_gaps(wire, &got.text());
                        }
                    }
                }
            },
        )
        .await;
    });
}

/// Indices count from 0 without gaps, and nothing is stopped that was not begun.
fn no_gaps(wire: Wire, stream: &str) {
    let events = stream
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|data| serde_json::from_str::<Value>(data).ok());
    let mut begun = Vec::new();
    for event in events {
        let index = match wire {
            Wire::Chat => event
                .pointer("/choices/0/delta/tool_calls/0")
                .filter(|call| call.get("id").is_some())
                .map(|call| &call["index"]),
            Wire::Messages => (event["type"] == "content_block_start").then(|| &event["index"]),
            Wire::Responses => {
                (event["type"] == "response.output_item.added").then(|| &event["output_index"])
            }
            Wire::Gemini => None,
        };
        begun.extend(index.and_then(Value::as_u64));
    }
    let want: Vec<u64> = (0..begun.len() as u64).collect();
    assert_eq!(begun, want, "{wire:?} {stream}");
}

#[test]
fn a_json_hook_blocks_by_text_that_json_may_hide() {
    run(async {
        let hooks = json!([{"target": "tool", "event": "before", "tools": ["shell"], "regex": "rm\\s+-rf\\s+/", "actions": [{"type": "block", "message": "never"}]}]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                for arguments in [
                    "{\"command\":\"rm -rf /\"}",
                    "{\"command\":\"\\u0072m -\\u0072f \\/\"}",
                    "{ \"a\" : [ { \"b\" : \"rm  -rf  /x\" } ] }",
                ] {
                    bench.upstream.play(vec![
                        reply(wire, stream, &calls(vec![Call::new("shell", arguments)])),
                        reply(wire, stream, &says(&["ok"])),
                    ]);
                    let seen = bench.seen(wire, stream).await;
                    assert_eq!((seen.text(), seen.calls.len()), ("ok", 0), "{wire:?} {stream} {arguments}");
                    let sent = bench.upstream.last().json().to_string();
                    assert!(sent.contains("blocked by hook user.json") && sent.contains(": never"), "{sent}");
                }
                // another tool is another matter
                bench.upstream.play(vec![reply(
                    wire,
                    stream,
                    &calls(vec![Call::new("echo", "{\"t\":\"rm -rf /\"}")]),
                )]);
                assert_eq!(bench.seen(wire, stream).await.calls.len(), 1, "{wire:?} {stream}");
            },
        )
        .await;
    });
}

/// The whole answer in one event, as some servers write it; Anthropic's wire has none such.
fn at_once(wire: Wire, answer: &Answer) -> String {
    let body = wire.body(answer);
    let event = match wire {
        Wire::Chat => {
            let mut chunk = body;
            chunk["object"] = "chat.completion.chunk".into();
            let choice = chunk["choices"][0].as_object_mut().unwrap();
            let message = choice.remove("message").unwrap();
            choice.insert("delta".into(), message);
            chunk
        }
        Wire::Responses => json!({"type": "response.completed", "response": body}),
        Wire::Gemini | Wire::Messages => body,
    };
    format!("data: {event}\n\n")
}

#[test]
fn last_words_beside_a_blocked_call_and_the_end_are_not_lost() {
    run(async {
        let resend = json!([{"target": "stream", "chunks": ["content"], "regex": "see", "maxTriggers": 1,
            "actions": [{"type": "queue-resend"}]}]);
        for wire in [Wire::Chat, Wire::Responses, Wire::Gemini] {
            let first = at_once(wire, &says(&["Let me see. "]).and(bad()));
            let last = at_once(wire, &says(&["I will not."]));
            for (hooks, on_block, want, finish, rounds) in [
                (guard(), OnBlock::TellModel { most: 1 }, "Let me see. I will not.", "stop", 2),
                (guard(), OnBlock::Refuse, "Let me see. [shell was not run: ", "content_filter", 1),
            ] {
                let upstream = Upstream::playing(vec![
                    Reply::stream(std::slice::from_ref(&first)),
                    Reply::stream(std::slice::from_ref(&last)),
                ])
                .await;
                let bench = Setup::user(hooks).with(|setup| setup.on_block = on_block).start(&upstream).await;
                let got = bench.ask(wire, true).await;
                let seen = got.seen(wire);
                assert!(seen.text().starts_with(want), "{wire:?} {on_block:?} {}", got.text());
                assert_eq!(
                    (seen.finish(), seen.finish.len(), seen.whole),
                    (finish, 1, true),
                    "{}",
                    got.text()
                );
                assert!(seen.calls.is_empty() && !got.text().contains("rf /"), "{wire:?} {}", got.text());
                assert_eq!(upstream.count(), rounds);
            }
            let words = at_once(wire, &says(&["Let me see. "]));
            let upstream = Upstream::playing(vec![
                Reply::stream(std::slice::from_ref(&words)),
                Reply::stream(std::slice::from_ref(&last)),
            ])
            .await;
            let bench = Setup::user(resend.clone()).start(&upstream).await;
            let seen = bench.seen(wire, true).await;
            assert_eq!((seen.text(), upstream.count()), ("Let me see. I will not.", 2), "{wire:?} {seen:?}");
            // the answer stands also where it may not be asked for again
            let upstream = Upstream::playing(vec![Reply::stream(std::slice::from_ref(&words))]).await;
            let setup = Setup::user(resend.clone()).with(|setup| setup.max_resends = 0);
            let got = setup.start(&upstream).await.ask(wire, true).await;
            assert!(got.text().contains("after 0 resends"), "{wire:?} {}", got.text());
            assert_eq!((got.seen(wire).text(), upstream.count()), ("Let me see. ", 1), "{wire:?}");
        }
    });
}

#[test]
fn a_builtin_hook_changes_the_input() {
    run(async {
        each(
            || Setup::builtin("pii_tools", json!({})),
            async |bench, wire, stream| {
                let call = Call::cut("mail", &["{\"to\": \"jo", "e@example.com\", \"n\"", ": 12}"]);
                bench.upstream.play(vec![reply(wire, stream, &calls(vec![call.clone(), good("ls")]))]);
                let got = bench.ask(wire, stream).await;
                let seen = got.seen(wire);
                assert!(
                    !got.text().contains("joe@") && !got.text().contains("e@example"),
                    "{wire:?} {}",
                    got.text()
                );
                let input = arguments(&seen.calls[0].1);
                assert!(input["to"].as_str().unwrap().starts_with("[redacted"), "{wire:?} {input}");
                assert_eq!(input["n"], 12);
                assert_eq!(arguments(&seen.calls[1].1), json!({"command": "ls"}));
                assert!(seen.whole && seen.errors.is_empty());
            },
        )
        .await;
    });
}

#[test]
fn arguments_as_an_object_or_missing_are_judged() {
    run(async {
        let hooks =
            || Setup::user(json!([lifecycle("guard", "pre_tool_use", json!({"block_if": "rm -rf"}))]));
        // servers that write an object where the wire has text
        let object = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c0\",\"type\":\"function\",\"function\":{\"name\":\"shell\",\"arguments\":{\"command\":\"rm -rf /\"}}}]},\"finish_reason\":\"tool_calls\"}]}\n\n";
        // and the older form of a call
        let legacy = "data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"function_call\":{\"name\":\"shell\",\"arguments\":\"{\\\"command\\\":\\\"rm -rf /\\\"}\"}},\"finish_reason\":\"function_call\"}]}\n\n";
        for event in [object, legacy] {
            let reply = Reply::stream(&[event.into(), "data: [DONE]\n\n".into()]);
            let upstream =
                Upstream::playing(vec![reply, Reply::stream(&Wire::Chat.stream(&says(&["ok"])))]).await;
            let got = hooks().start(&upstream).await.ask(Wire::Chat, true).await;
            assert!(!got.text().contains("rm -rf") && got.seen(Wire::Chat).text() == "ok", "{}", got.text());
        }
        let empty = calls(vec![Call { name: "now".into(), arguments: vec!["{}".into()] }]);
        for wire in WIRES {
            let upstream = Upstream::playing(vec![reply(wire, true, &empty)]).await;
            let bench = hooks().start(&upstream).await;
            assert_eq!(bench.seen(wire, true).await.calls.len(), 1);
            assert_eq!(bench.asked("guard", "/toolInput"), [json!({})]);
        }
    });
}

#[test]
fn a_hook_that_fails_or_is_late_blocks() {
    run(async {
        let mut late = lifecycle("late", "pre_tool_use", json!({"wait_ms": 5000}));
        late["timeout_ms"] = 50.into();
        for hook in [lifecycle("late", "pre_tool_use", json!({"fail": true})), late] {
            for wire in WIRES {
                let upstream = Upstream::playing(vec![
                    reply(wire, true, &calls(vec![good("ls")])),
                    reply(wire, true, &says(&["ok"])),
                ])
                .await;
                let seen = Setup::user(json!([hook])).start(&upstream).await.seen(wire, true).await;
                assert_eq!((seen.text(), seen.calls.len()), ("ok", 0), "{wire:?}");
            }
        }
    });
}

#[test]
fn a_call_that_is_never_complete_never_goes_out() {
    run(async {
        for wire in [Wire::Chat, Wire::Responses, Wire::Messages] {
            let all = wire.stream(&says(&["So: "]).and(good("ls")));
            let name_at = all.iter().position(|event| event.contains("shell")).unwrap();
            for keep in name_at + 1..all.len() - 3 {
                let reply = Reply::stream(&all[..keep]).with(|reply| reply.close = crate::kit::Close::Cut);
                let upstream = Upstream::playing(vec![reply]).await;
                let got = Setup::user(guard()).start(&upstream).await.ask(wire, true).await;
                let seen = got.seen(wire);
                if keep < all.iter().rposition(|event| event.contains("ls\\\"")).unwrap() {
                    assert!(!got.text().contains("shell"), "{wire:?} {keep} {}", got.text());
                }
                assert!(got.cut, "{wire:?} {keep}");
                assert_eq!(seen.text(), "So: ");
            }
        }
    });
}
