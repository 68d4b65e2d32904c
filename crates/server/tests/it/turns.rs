//! What is new in a request, and what hooks do to it.

use crate::kit::bench::lifecycle;
use crate::kit::wires::says;
use crate::kit::{Bench, Reply, Setup, Upstream, WIRES, Wire, run};
use serde_json::{Value, json};

fn ok(wire: Wire, stream: bool) -> Reply {
    let answer = says(&["fine"]);
    if stream { Reply::stream(&wire.stream(&answer)) } else { Reply::json(&wire.body(&answer)) }
}

async fn each(setup: impl Fn() -> Setup, test: impl AsyncFn(&Bench, Wire, bool)) {
    for wire in WIRES {
        for stream in [true, false] {
            let upstream = Upstream::playing(vec![ok(wire, stream)]).await;
            test(&setup().start(&upstream).await, wire, stream).await;
        }
    }
}

/// An error as the wire's SDKs read it.
fn message_of(error: &Value) -> &str {
    error["error"]["message"].as_str().unwrap_or_else(|| panic!("{error}"))
}

#[test]
fn a_blocked_prompt_is_refused_in_the_wires_shape_each_time() {
    run(async {
        let hooks = json!([lifecycle(
            "p",
            "user_prompt_submit",
            json!({"block_if": "secret plan", "reason": "not here"})
        )]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                for _ in 0..2 {
                    let got = bench.post(wire, stream, &wire.request(stream, "the secret plan")).await;
                    assert_eq!((got.status, bench.upstream.count()), (400, 0), "{wire:?}");
                    assert_eq!(message_of(&got.json()), "blocked by hook p: not here");
                    assert_eq!(got.header("x-should-retry"), Some("false"));
                    assert_eq!(got.header("content-type"), Some("application/json"));
                    match wire {
                        Wire::Messages => assert_eq!(got.json()["type"], "error"),
                        Wire::Gemini => assert!(got.json()["error"]["status"].is_string()),
                        _ => assert_eq!(got.json()["error"]["code"], "content_filter"),
                    }
                }
                assert_eq!(bench.post(wire, stream, &wire.request(stream, "hi")).await.status, 200);
            },
        )
        .await;
    });
}

#[test]
fn an_interrupted_prompt_is_refused_each_time() {
    run(async {
        // one that would ask again takes nothing from one that stops
        let hooks = json!([{"target": "chat", "roles": ["user", "tool"], "regex": "secret", "actions": [{"type": "interrupt", "resend": true}]},
            {"target": "chat", "roles": ["user"], "regex": "secret plan", "actions": [{"type": "interrupt"}]},
            {"target": "chat", "roles": ["tool"], "regex": "secret output", "actions": [{"type": "interrupt"}]}]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                for _ in 0..3 {
                    let got = bench.post(wire, stream, &wire.request(stream, "the secret plan")).await;
                    assert_eq!(
                        (got.status, bench.upstream.count()),
                        (400, 0),
                        "{wire:?}: a repeat meets the same hooks"
                    );
                    let got =
                        bench.post(wire, stream, &wire.with_result(stream, "secret output", false)).await;
                    assert_eq!(
                        (got.status, bench.upstream.count()),
                        (400, 0),
                        "{wire:?}: a repeat meets the same hooks"
                    );
                }
            },
        )
        .await;
    });
}

#[test]
fn a_changed_prompt_stays_changed_in_later_turns() {
    run(async {
        each(
            || Setup::builtin("pii_prompt", json!({})),
            async |bench, wire, stream| {
                let said = "mail joe@example.com, please";
                bench.post(wire, stream, &wire.request(stream, said)).await;
                let sent = bench.upstream.last();
                assert!(!String::from_utf8_lossy(&sent.body).contains("joe@"), "{wire:?}");
                assert!(wire.messages(&sent.json())[0].to_string().contains("[redacted"), "{wire:?}");
                assert!(sent.json().get("x_odd").is_some(), "unknown members survive");
                // the agent's history has the words as they were written
                let got = bench.post(wire, stream, &wire.turns(stream, &[said, "fine", "and now?"])).await;
                assert_eq!(got.status, 200);
                let sent = bench.upstream.last();
                assert!(!String::from_utf8_lossy(&sent.body).contains("joe@"), "{wire:?}");
                assert_eq!(wire.messages(&sent.json()).len(), 3);
            },
        )
        .await;
    });
}

#[test]
fn watchers_are_told_once_however_often_a_request_is_repeated() {
    run(async {
        let watch = |event: &str| lifecycle(event, event, json!({}));
        let hooks = json!([watch("session_start"), watch("message"), watch("post_tool_use"), watch("tool_error"), watch("stop"),
            {"target": "tool", "event": "after", "actions": [{"type": "log", "message": "after {{result}}"}]},
            {"target": "tool", "event": "error", "actions": [{"type": "log", "message": "error {{error}}"}]},
            {"target": "chat", "actions": [{"type": "log", "message": "{{role}}: {{content}}"}]}]);
        each(
            || Setup::user(hooks.clone()),
            async |bench, wire, stream| {
                bench.post(wire, stream, &wire.request(stream, "do it")).await;
                for _ in 0..3 {
                    bench.post(wire, stream, &wire.with_result(stream, "42 files", false)).await;
                }
                bench.until("four ends", |bench| bench.asked("stop", "").len() == 4).await;
                assert_eq!(bench.asked("session_start", "").len(), 1, "{wire:?} {stream}");
                assert_eq!(bench.asked("post_tool_use", "/toolName"), [json!("shell")], "{wire:?} {stream}");
                assert_eq!(bench.asked("post_tool_use", "/toolInput"), [json!({"command": "ls"})]);
                assert!(bench.asked("post_tool_use", "/toolOutput")[0].to_string().contains("42 files"));
                assert_eq!(bench.asked("tool_error", "").len(), 0);
                let of =
                    |role: &str| bench.asked("message", "/role").iter().filter(|got| **got == role).count();
                bench.until("all messages", |bench| bench.asked("message", "").len() == 6).await;
                assert_eq!((of("user"), of("tool"), of("assistant")), (1, 1, 4), "{wire:?} {stream}");
                let lines = bench.told("log");
                let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
                assert_eq!(
                    (count("user: do it"), count("after "), count("assistant: fine")),
                    (1, 1, 4),
                    "{lines:?}"
                );
                if wire == Wire::Messages || wire == Wire::Gemini {
                    // only these say that a tool failed
                    let mut failed = wire.with_result(stream, "no such file", true);
                    let list = if wire == Wire::Gemini { "contents" } else { "messages" };
                    failed[list][0] = wire.messages(&wire.request(stream, "another"))[0].clone();
                    for _ in 0..2 {
                        bench.post(wire, stream, &failed).await;
                    }
                    bench.until("a failure", |bench| !bench.asked("tool_error", "").is_empty()).await;
                    assert_eq!(bench.asked("tool_error", "/toolName"), [json!("shell")]);
                    assert!(
                        bench
                            .told("log")
                            .iter()
                            .any(|line| line.contains("error ") && line.contains("no such file"))
                    );
                }
            },
        )
        .await;
    });
}

#[test]
fn sessions_are_told_that_they_end() {
    run(async {
        let upstream = Upstream::playing(vec![ok(Wire::Chat, false)]).await;
        let bench = Setup::user(json!([lifecycle("e", "session_end", json!({}))])).start(&upstream).await;
        for text in ["a", "b", "a"] {
            bench.post(Wire::Chat, false, &Wire::Chat.request(false, text)).await;
        }
        assert_eq!(bench.gateway.sessions(), 2);
        bench.gateway.end_sessions();
        bench.until("two ends", |bench| bench.asked("e", "").len() == 2).await;
    });
}

#[test]
fn parts_of_a_message_are_one_text() {
    run(async {
        let hooks = json!([lifecycle("p", "user_prompt_submit", json!({"block_if": "secret plan"}))]);
        let parts = [
            (
                Wire::Chat,
                json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "the sec"}, {"type": "text", "text": "ret plan"}]}]}),
            ),
            (
                Wire::Responses,
                json!({"input": [{"role": "user", "content": [{"type": "input_text", "text": "the sec"}, {"type": "input_text", "text": "ret plan"}]}]}),
            ),
            (Wire::Responses, json!({"input": "the secret plan"})),
            (
                Wire::Messages,
                json!({"messages": [{"role": "user", "content": [{"type": "text", "text": "the sec"}, {"type": "text", "text": "ret plan"}]}]}),
            ),
            (
                Wire::Gemini,
                json!({"contents": [{"role": "user", "parts": [{"text": "the sec"}, {"text": "ret plan"}]}]}),
            ),
            (Wire::Gemini, json!({"contents": [{"parts": [{"text": "the secret plan"}]}]})),
        ];
        for (wire, mut request) in parts {
            let upstream = Upstream::playing(vec![ok(wire, false)]).await;
            let bench = Setup::user(hooks.clone()).start(&upstream).await;
            request["model"] = "m".into();
            let got = bench.post(wire, false, &request).await;
            assert_eq!((got.status, upstream.count()), (400, 0), "{request} {}", got.text());
        }
    });
}
