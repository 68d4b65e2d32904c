//! What is left when a request did not go as planned: its line, its cost, what was queued for it.

use crate::kit::bench::lifecycle;
use crate::kit::client::post;
use crate::kit::wires::{calls, says};
use crate::kit::{Answer, Call, Client, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::{Limits, OnBlock};
use serde_json::{Value, json};
use std::time::Duration;

fn reply(wire: Wire, stream: bool, answer: &Answer) -> Reply {
    if stream { Reply::stream(&wire.stream(answer)) } else { Reply::json(&wire.body(answer)) }
}

fn stop(word: &str) -> Value {
    json!([{"target": "stream", "chunks": ["content"], "regex": word, "actions": [{"type": "interrupt"}]}])
}

#[test]
fn the_line_of_a_request_says_whether_all_of_the_answer_went_out() {
    run(async {
        for (hooks, stream) in
            [(json!([]), false), (json!([]), true), (stop("NEVER"), false), (stop("NEVER"), true)]
        {
            let upstream = Upstream::playing(vec![reply(Wire::Chat, stream, &says(&["a", "b"]))]).await;
            let bench = Setup::user(hooks.clone()).start(&upstream).await;
            bench.ask(Wire::Chat, stream).await;
            bench.until("a line", |bench| bench.told("request").len() == 1).await;
            let line = bench.told("request").remove(0);
            assert!(line.ends_with("200 complete"), "{hooks} {stream}: {line}");
        }
        // what ends an answer in the middle stands there
        let events = Wire::Chat.stream(&says(&["a", "b"]));
        let odd = [&events[..2], &["data: no json\n\n".to_owned()]].concat();
        let large = Limits { max_answer_bytes: 50, ..Limits::default() };
        for (events, limits, want) in
            [(&odd, Limits::default(), "cannot be read"), (&events, large, "larger than 50 bytes")]
        {
            let upstream = Upstream::playing(vec![Reply::stream(events)]).await;
            let bench = Setup::user(stop("NEVER")).with(|setup| setup.limits = limits).start(&upstream).await;
            bench.ask(Wire::Chat, true).await;
            bench.until("a line", |bench| bench.told("request").len() == 1).await;
            let line = bench.told("request").remove(0);
            assert!(line.contains("given up") && line.contains(want), "{line}");
        }
    });
}

#[test]
fn a_refused_answer_tells_what_it_cost() {
    run(async {
        let guard =
            json!([lifecycle("guard", "pre_tool_use", json!({"block_if": "rm -rf", "reason": "no"}))]);
        for wire in WIRES {
            let bad = Call::new("shell", "{\"command\":\"rm -rf /\"}");
            let upstream = Upstream::playing(vec![reply(wire, true, &calls(vec![bad]))]).await;
            let bench = Setup::user(guard.clone())
                .with(|setup| setup.on_block = OnBlock::Refuse)
                .start(&upstream)
                .await;
            let seen = bench.seen(wire, true).await;
            assert_eq!((seen.finish(), seen.usage), ("content_filter", (Some(10), Some(5))), "{wire:?}");
        }
    });
}

#[test]
fn what_was_queued_for_a_request_that_failed_joins_the_next() {
    run(async {
        let hooks = json!([{"target": "chat", "roles": ["user"], "maxTriggers": 1,
            "actions": [{"type": "queue-message", "role": "user", "message": "QUEUED"}]}]);
        for wire in WIRES {
            for stream in [true, false] {
                let failed =
                    Reply::json(&json!({"error": {"message": "busy"}})).with(|reply| reply.status = 429);
                let upstream = Upstream::playing(vec![failed, reply(wire, stream, &says(&["ok"]))]).await;
                let bench = Setup::user(hooks.clone()).start(&upstream).await;
                assert_eq!(bench.ask(wire, stream).await.status, 429);
                for (is_there, n) in [(true, 2), (false, 3)] {
                    assert_eq!(bench.ask(wire, stream).await.status, 200);
                    let sent = String::from_utf8_lossy(&upstream.last().body).contains("QUEUED");
                    assert_eq!((sent, upstream.count()), (is_there, n), "{wire:?} {stream}");
                }
            }
        }
    });
}

#[test]
fn comments_pass_when_they_come() {
    run(async {
        let events = Wire::Chat.stream(&says(&["a"]));
        let mut pieces = vec![": still here\n\n".to_owned()];
        pieces.extend(events);
        let reply = Reply::stream(&pieces).with(|reply| reply.pause = Duration::from_secs(2));
        let upstream = Upstream::playing(vec![reply]).await;
        let bench = Setup::user(stop("NEVER")).start(&upstream).await;
        let mut client = Client::new(bench.address);
        let request = Wire::Chat.request(true, "hi").to_string();
        client.send(&post("/v1/chat/completions", &[], request.as_bytes())).await;
        let first = tokio::time::timeout(Duration::from_millis(1500), client.read_some(1)).await;
        let first = first.expect("it came before the next event");
        assert!(first.text().contains("still here"), "{}", first.text());
    });
}

#[test]
fn connections_on_which_nothing_begins_are_closed() {
    run(async {
        use tokio::io::{AsyncReadExt, AsyncWriteExt};
        let limits = Limits { head: Duration::from_millis(200), ..Limits::default() };
        let upstream = Upstream::playing(vec![reply(Wire::Chat, false, &says(&["a"]))]).await;
        let bench = Setup::user(json!([])).with(|setup| setup.limits = limits).start(&upstream).await;
        for beginning in ["", "P", "PRI * HTT"] {
            let mut stream = tokio::net::TcpStream::connect(bench.address).await.unwrap();
            stream.write_all(beginning.as_bytes()).await.unwrap();
            let end = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut [0; 64])).await;
            assert!(matches!(end.expect("it is closed"), Ok(0) | Err(_)), "{beginning:?}");
        }
        assert_eq!(bench.ask(Wire::Chat, false).await.status, 200);
    });
}

#[test]
fn hooks_that_only_watch_close_no_route() {
    run(async {
        let hooks = |action: &str| json!([{"target": "chat", "actions": [{"type": action}]}]);
        for (action, status) in [("log", 200), ("queue-message", 200), ("interrupt", 400)] {
            let upstream = Upstream::playing(vec![Reply::json(&json!({"ok": true}))]).await;
            let mut hooks = hooks(action);
            if action != "interrupt" {
                hooks[0]["actions"][0]["message"] = "x".into();
            }
            let bench = Setup::user(hooks).start(&upstream).await;
            let mut client = Client::new(bench.address);
            client.send(&post("/v1/completions", &[], b"{\"model\":\"m\",\"prompt\":\"x\"}")).await;
            assert_eq!(client.read().await.status, status, "{action}");
        }
    });
}
