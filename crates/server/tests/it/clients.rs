//! Clients that hang up, dawdle, or send what nobody should.

use crate::kit::bench::lifecycle;
use crate::kit::client::post;
use crate::kit::wires::{calls, says};
use crate::kit::{Bench, Call, Client, Close, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::Limits;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fn gate() -> Value {
    json!([lifecycle("p", "user_prompt_submit", json!({"block_if": "BADWORD"})),
        {"target": "stream", "regex": "BADWORD", "actions": [{"type": "interrupt"}]}])
}

/// How soon the provider is rid of a request that nobody wants any more.
const SOON: Duration = Duration::from_millis(50);

/// Does it until it was soon: other work on the machine may delay one try, a delay of the gateway's own delays all.
async fn soon(what: &str, mut took: impl AsyncFnMut() -> Duration) {
    let mut all = Vec::new();
    while all.len() < 5 {
        all.push(took().await);
        if all.last().is_some_and(|took| *took < SOON) {
            return;
        }
    }
    panic!("{what}: {all:?}");
}

/// How long after its client the provider learns that the client hung up; `ready`: what came must have come before.
async fn hang_up(
    setup: Setup,
    reply: Reply,
    wire: Wire,
    stream: bool,
    ready: impl Fn(&Bench) -> bool,
) -> Duration {
    let upstream = Upstream::playing(vec![reply]).await;
    let bench = setup.start(&upstream).await;
    let mut client = Client::new(bench.address);
    client.send(&post(wire.path(stream), &[], wire.request(stream, "hi").to_string().as_bytes())).await;
    bench.until("asked", |bench| bench.upstream.count() == 1 && ready(bench)).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
    let since = Instant::now();
    client.hang_up();
    bench.until("hung up", |bench| !bench.upstream.hung_up().is_empty()).await;
    bench.until("a line", |bench| bench.told("request").len() == 1).await;
    assert!(bench.told("request")[0].contains("given up"), "{:?}", bench.told("request"));
    upstream.hung_up()[0].duration_since(since)
}

#[test]
fn a_client_that_hangs_up_cancels_the_providers_work() {
    run(async {
        let silent = |reply: Reply| reply.with(|reply| reply.close = Close::Silent);
        let slow_gate = json!([lifecycle("slow", "pre_tool_use", json!({"wait_ms": 60_000}))]);
        for wire in WIRES {
            for (held, hooks) in [(false, gate()), (true, gate()), (false, json!([]))] {
                // it stays silent after a few events, or talks on
                let events = wire.stream(&says(&["a", if held { "BADWOR" } else { "one" }]));
                let events = &events[..3.min(events.len() - 1)];
                let whole = wire.body(&says(&["a"]));
                soon(&format!("{wire:?}, in mid-stream, {held}"), async || {
                    let sent = events.concat().len();
                    let came = |bench: &Bench| bench.upstream.written() == sent;
                    hang_up(Setup::user(hooks.clone()), silent(Reply::stream(events)), wire, true, came).await
                })
                .await;
                soon(&format!("{wire:?}, before the head, {held}"), async || {
                    let reply = Reply::json(&whole).with(|reply| reply.think = Duration::from_secs(60));
                    hang_up(Setup::user(hooks.clone()), reply, wire, false, |_| true).await
                })
                .await;
                soon(&format!("{wire:?}, before the end of an answer in one piece, {held}"), async || {
                    hang_up(Setup::user(hooks.clone()), silent(Reply::json(&whole)), wire, false, |bench| {
                        bench.upstream.written() > 0
                    })
                    .await
                })
                .await;
            }
            soon(&format!("{wire:?}, while a hook is asked"), async || {
                let mut events = wire.stream(&calls(vec![Call::new("shell", "{}")]));
                if wire == Wire::Chat {
                    // the last two are behind the end of the choice
                    events.truncate(events.len() - 2);
                }
                let asked = |bench: &Bench| !bench.asked("slow", "").is_empty();
                hang_up(Setup::user(slow_gate.clone()), silent(Reply::stream(&events)), wire, true, asked)
                    .await
            })
            .await;
        }
    });
}

#[test]
fn an_interrupt_cancels_the_providers_work() {
    run(async {
        for wire in WIRES {
            let mut events = wire.stream(&says(&["a BADWORD"]));
            events.truncate(events.iter().position(|event| event.contains("BADWORD")).unwrap() + 1);
            soon(&format!("{wire:?}"), async || {
                let reply = Reply::stream(&events).with(|reply| reply.close = Close::Silent);
                let upstream = Upstream::playing(vec![reply]).await;
                let bench = Setup::user(gate()).start(&upstream).await;
                let got = bench.ask(wire, true).await;
                let ended = Instant::now();
                assert_eq!(got.seen(wire).finish(), "content_filter");
                bench.until("hung up", |bench| !bench.upstream.hung_up().is_empty()).await;
                let hung_up = upstream.hung_up()[0];
                hung_up.saturating_duration_since(ended)
            })
            .await;
        }
    });
}

#[test]
fn a_client_that_does_not_read_stops_the_provider() {
    run(async {
        for hooks in [gate(), json!([])] {
            let events = endless();
            let total: usize = events.iter().map(String::len).sum();
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let bench = Setup::user(hooks).start(&upstream).await;
            let mut client = Client::new(bench.address);
            client
                .send(&post(
                    "/v1/chat/completions",
                    &[],
                    Wire::Chat.request(true, "hi").to_string().as_bytes(),
                ))
                .await;
            client.read_some(1).await;
            let mut last = usize::MAX;
            // until the provider is stopped
            while upstream.written() != last {
                last = upstream.written();
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            assert!(last < total / 2, "{last} of {total} went out to somebody who does not read");
        }
    });
}

/// Far more than the system buffers for a client.
fn endless() -> Vec<String> {
    let long = Wire::Chat.stream(&says(&["word ".repeat(2000).as_str()]))[1].clone();
    let mut events = Wire::Chat.stream(&says(&["x"]));
    let end = events.split_off(events.len() - 3);
    events.extend((0..5000).map(|_| long.clone()));
    events.extend(end);
    events
}

const LATE: &str = "given up: the client took nothing of its answer for 0.3 s";

fn impatient(hooks: Value) -> Setup {
    Setup::user(hooks).with(|setup| {
        setup.limits = Limits { client_idle: Duration::from_millis(300), ..Limits::default() };
        setup.at_a_time = 1;
    })
}

#[test]
fn a_client_that_takes_nothing_is_hung_up_on() {
    run(async {
        let body = Wire::Chat.request(true, "hi").to_string();
        let body = post("/v1/chat/completions", &[], body.as_bytes());
        for hooks in [gate(), json!([])] {
            let upstream = Upstream::playing(vec![Reply::stream(&endless())]).await;
            let bench = impatient(hooks).start(&upstream).await;
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.set_recv_buffer_size(4096).unwrap();
            let mut client = socket.connect(bench.address).await.unwrap();
            client.write_all(&body).await.unwrap();
            bench.until("given up", |bench| bench.told("request").len() == 1).await;
            assert!(bench.told("request")[0].ends_with(LATE), "{:?}", bench.told("request"));
            bench.until("hung up", |bench| !bench.upstream.hung_up().is_empty()).await;
            // its place is free, and the connection is at its end
            upstream.play(vec![Reply::stream(&Wire::Chat.stream(&says(&["ok"])))]);
            assert_eq!(bench.seen(Wire::Chat, true).await.text(), "ok");
            let mut rest = Vec::new();
            let read = tokio::time::timeout(Duration::from_secs(10), client.read_to_end(&mut rest)).await;
            assert!(read.is_ok(), "the connection is still open");
        }
    });
}

#[test]
fn a_client_that_is_only_slow_gets_all() {
    run(async {
        let events = endless();
        let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
        let limits = Limits { client_idle: Duration::from_secs(1), ..Limits::default() };
        let bench = Setup::user(gate()).with(|setup| setup.limits = limits).start(&upstream).await;
        let mut client = Client::new(bench.address);
        let body = Wire::Chat.request(true, "hi").to_string();
        client.send(&post("/v1/chat/completions", &[], body.as_bytes())).await;
        let since = Instant::now();
        let mut got = client.read_some(1).await;
        // longer than the limit, with pauses that are shorter
        while since.elapsed() < Duration::from_millis(2500) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            client.read_more(&mut got, 1 << 20).await;
        }
        let got = client.go_on(got).await;
        assert_eq!(got.body.len(), events.iter().map(String::len).sum::<usize>());
        bench.until("a line", |bench| bench.told("request").len() == 1).await;
        assert!(bench.told("request")[0].ends_with("200 complete"), "{:?}", bench.told("request"));
    });
}

#[test]
fn a_stream_of_http_2_that_takes_nothing_ends_and_the_others_go_on() {
    run(async {
        use http_body_util::{BodyExt, Full};
        use hyper_util::rt::{TokioExecutor, TokioIo};
        let long = Wire::Chat.body(&says(&["word ".repeat(1 << 20).as_str()]));
        let short = Reply::json(&Wire::Chat.body(&says(&["ok"])));
        for (stream, reply, window) in [
            (true, Reply::stream(&endless()), 1 << 16),
            (false, Reply::json(&long), 1 << 16),
            // what fits into one piece must be taken too
            (false, short, 0),
        ] {
            for hooks in [gate(), json!([])] {
                let upstream = Upstream::playing(vec![reply.clone()]).await;
                let bench = impatient(hooks).start(&upstream).await;
                let connection = tokio::net::TcpStream::connect(bench.address).await.unwrap();
                let mut builder = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
                builder.initial_stream_window_size(window);
                let (mut sender, connection) = builder.handshake(TokioIo::new(connection)).await.unwrap();
                tokio::spawn(connection);
                let mut ask = async |stream| {
                    let body = Full::new(bytes::Bytes::from(Wire::Chat.request(stream, "hi").to_string()));
                    let request = http::Request::post("http://gateway/v1/chat/completions");
                    let request = request.header("content-type", "application/json").body(body).unwrap();
                    sender.send_request(request).await.unwrap()
                };
                // the connection is read all the time, the answer is not
                let stalled = ask(stream).await;
                bench.until("given up", |bench| bench.told("request").len() == 1).await;
                assert!(bench.told("request")[0].ends_with(LATE), "{:?}", bench.told("request"));
                upstream.play(vec![Reply::stream(&Wire::Chat.stream(&says(&["ok"])))]);
                let other = ask(true).await;
                assert_eq!(other.status(), 200);
                if window > 0 {
                    assert!(other.into_body().collect().await.is_ok());
                }
                assert!(stalled.into_body().collect().await.is_err(), "a cut answer must look like one");
            }
        }
    });
}

#[test]
fn requests_that_servers_may_read_differently_are_refused() {
    run(async {
        let upstream = Upstream::playing(vec![Reply::json(&Wire::Chat.body(&says(&["x"])))]).await;
        let bench = Setup::user(gate()).start(&upstream).await;
        let body = Wire::Chat.request(false, "hi").to_string();
        let n = body.len();
        let request = |headers: &str, body: &str| {
            format!(
                "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
            )
        };
        let chunked = format!("{n:x}\r\n{body}\r\n0\r\n\r\n");
        let bad = [
            ("two lengths", request(&format!("content-length: {n}\r\ncontent-length: {}\r\n", n - 1), &body)),
            ("no length", request(&format!("content-length: {n}x\r\n"), &body)),
            ("a length with a sign", request(&format!("content-length: +{n}\r\n"), &body)),
            (
                "a folded header",
                request(&format!("content-length: {n}\r\nx-a: 1\r\n  transfer-encoding: chunked\r\n"), &body),
            ),
            ("a name with a space", request(&format!("content-length : {n}\r\n"), &body)),
            ("an unknown coding", request("transfer-encoding: xchunked\r\n", &chunked)),
            ("chunked, not last", request("transfer-encoding: chunked, gzip\r\n", &chunked)),
            ("a chunk size that is none", request("transfer-encoding: chunked\r\n", &format!("0x{chunked}"))),
            ("a null in a header", request(&format!("content-length: {n}\r\nx-a: a\0b\r\n"), &body)),
            ("a bare CR", request(&format!("content-length: {n}\r\nx-a: a\rb\r\n"), &body)),
        ];
        for (what, bytes) in bad {
            let before = upstream.count();
            let got = Client::new(bench.address).raw(bytes.as_bytes()).await;
            assert!(got.status == 400 || got.status == 0, "{what}: {} {}", got.status, got.text());
            assert_eq!(upstream.count(), before, "{what}");
        }
        // a length beside chunks: what is read is what is sent on, and the connection carries no second request
        let both = request(
            "content-length: 4\r\ntransfer-encoding: chunked\r\n",
            &format!("{chunked}GET /smuggled HTTP/1.1\r\nhost: g\r\n\r\n"),
        );
        let mut client = Client::new(bench.address);
        let got = client.raw(both.as_bytes()).await;
        if got.status == 200 {
            assert_eq!(upstream.last().body, body.as_bytes());
            assert_eq!(upstream.last().header("transfer-encoding"), None);
        } else {
            assert_eq!(got.status, 400);
        }
        assert!(upstream.requests().iter().all(|request| !request.path().contains("smuggled")));
        // lines that end in LF alone are harmless where nobody reads them otherwise
        let bare = format!("POST /v1/chat/completions HTTP/1.1\nhost: g\ncontent-length: {n}\n\n{body}");
        let got = Client::new(bench.address).raw(bare.as_bytes()).await;
        assert!([200, 400].contains(&got.status));
    });
}

#[test]
fn heads_and_bodies_are_bounded() {
    run(async {
        let upstream = Upstream::playing(vec![Reply::json(&Wire::Chat.body(&says(&["x"])))]).await;
        let limits = Limits {
            max_body_bytes: 1000,
            max_head_bytes: 16 << 10,
            head: Duration::from_millis(300),
            idle: Duration::from_millis(300),
            ..Limits::default()
        };
        let bench = Setup::user(gate()).with(|setup| setup.limits = limits).start(&upstream).await;
        let ask = async |bytes: Vec<u8>| Client::new(bench.address).raw(&bytes).await;
        for wire in WIRES {
            let got = ask(post(wire.path(false), &[], &[b' '; 1001])).await;
            assert_eq!(got.status, 413, "{wire:?}");
            assert!(
                got.json()["error"]["message"].as_str().unwrap().contains("larger than 1000 bytes"),
                "{}",
                got.text()
            );
        }
        let endless = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ntransfer-encoding: chunked\r\n\r\n{}",
            "400\r\n".to_owned() + &"x".repeat(1024) + "\r\n"
        );
        assert_eq!(ask(endless.into_bytes()).await.status, 413);
        let many: Vec<(String, String)> = (0..300).map(|n| (format!("x-{n}"), "1".to_owned())).collect();
        let headers: Vec<(&str, &str)> =
            many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let body = Wire::Chat.request(false, "hi").to_string();
        assert_eq!(ask(post("/v1/chat/completions", &headers, body.as_bytes())).await.status, 431);
        let long = "y".repeat(20 << 10);
        let got = ask(post("/v1/chat/completions", &[("x-a", &long)], body.as_bytes())).await;
        assert_eq!(got.status, 431);
        assert_eq!(upstream.count(), 0);
        // a head or a body that never ends
        let since = Instant::now();
        let got = ask(b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-".to_vec()).await;
        assert!(got.status == 0 || got.status == 408, "{}", got.status);
        let got =
            ask(b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\ncontent-length: 900\r\n\r\n{".to_vec())
                .await;
        assert_eq!(got.status, 400);
        assert!(got.text().contains("stopped coming"), "{}", got.text());
        assert!(since.elapsed() < Duration::from_secs(5));
    });
}

#[test]
fn a_large_request_passes() {
    run(async {
        let upstream = Upstream::playing(vec![Reply::json(&Wire::Chat.body(&says(&["x"])))]).await;
        let hooks =
            json!([{"target": "tool", "event": "before", "regex": "NEVER", "actions": [{"type": "block"}]}]);
        let bench = Setup::user(hooks).start(&upstream).await;
        let body = Wire::Chat.request(false, &"word ".repeat(10 << 20)).to_string();
        assert!(body.len() > 50 << 20);
        let got = Client::new(bench.address).raw(&post("/v1/chat/completions", &[], body.as_bytes())).await;
        assert_eq!(got.status, 200, "{}", got.text());
        assert!(upstream.last().body == body.as_bytes());
    });
}

#[test]
fn bodies_that_cannot_be_judged_are_refused() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::json(&wire.body(&says(&["x"])))]).await;
            let bench = Setup::user(gate()).start(&upstream).await;
            let fine = wire.request(false, "hi").to_string();
            let twice = fine.replacen(
                "{\"",
                &format!(
                    "{{\"{}\":[],\"",
                    if wire == Wire::Gemini {
                        "contents"
                    } else if wire == Wire::Responses {
                        "input"
                    } else {
                        "messages"
                    }
                ),
                1,
            );
            for body in ["", "no json", "[]", "{}", "{\"messages\":", "\u{0}", &twice, "[1] [2]", "null"] {
                if wire == Wire::Responses && body == "{}" {
                    // a stored prompt needs no input
                    continue;
                }
                let got = Client::new(bench.address).raw(&post(wire.path(false), &[], body.as_bytes())).await;
                assert_eq!(got.status, 400, "{wire:?} {body} {}", got.text());
                assert!(got.json()["error"]["message"].is_string());
            }
            // the body is what it says it is not
            let got = Client::new(bench.address)
                .raw(&post(wire.path(false), &[("content-encoding", "gzip")], fine.as_bytes()))
                .await;
            assert_eq!(got.status, 400, "{}", got.text());
            assert_eq!(upstream.count(), 0);
            // and compressed requests are read
            let packed = zstd::encode_all(wire.request(false, "BADWORD").to_string().as_bytes(), 3).unwrap();
            let got = Client::new(bench.address)
                .raw(&post(wire.path(false), &[("content-encoding", "zstd")], &packed))
                .await;
            assert_eq!((got.status, upstream.count()), (400, 0), "{}", got.text());
            let packed = zstd::encode_all(fine.as_bytes(), 3).unwrap();
            let got = Client::new(bench.address)
                .raw(&post(wire.path(false), &[("content-encoding", "zstd")], &packed))
                .await;
            assert_eq!(got.status, 200);
            assert_eq!(upstream.last().body, packed);
        }
    });
}

#[test]
fn other_ways_in_are_closed_while_a_gate_is_loaded() {
    run(async {
        let upstream = Upstream::playing(vec![Reply::json(&Wire::Chat.body(&says(&["x"])))]).await;
        let bench = Setup::user(gate()).start(&upstream).await;
        let ask = async |method: &str, path: &str, more: &str, body: &str| {
            let bytes = format!(
                "{method} {path} HTTP/1.1\r\nhost: g\r\n{more}content-length: {}\r\n\r\n{body}",
                body.len()
            );
            Client::new(bench.address).raw(bytes.as_bytes()).await
        };
        let bad = Wire::Chat.request(false, "BADWORD").to_string();
        for path in [
            "/v1/chat/completions/",
            "//v1//chat/completions",
            "/V1/CHAT/completions",
            "/v1/chat%2fcompletions",
            "/v1/%63hat/completions",
            "/v1/x/../chat/completions",
            "/v1/chat/completions?x=/embeddings",
            "/v1/embeddings/../chat/completions",
        ] {
            assert_eq!(ask("POST", path, "", &bad).await.status, 400, "{path}");
        }
        assert_eq!(ask("POST", "http://other/v1/chat/completions", "", &bad).await.status, 400);
        for (method, path) in [
            ("POST", "/v1/completions"),
            ("PUT", "/v1/chat/completions"),
            ("POST", "/v1/batches"),
            ("GET", "/v1/responses/r1"),
            ("POST", "/v1/realtime"),
            ("GET", "/v1/realtime"),
        ] {
            let got = ask(method, path, "", &bad).await;
            assert_eq!(got.status, 400, "{method} {path}");
            assert!(
                got.text().contains("may produce text") || got.text().contains("upgrade"),
                "{}",
                got.text()
            );
        }
        let upgrade = "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: eA==\r\n";
        for path in ["/v1/realtime", "/v1/models"] {
            let got = ask("GET", path, upgrade, "").await;
            assert_eq!(got.status, 400, "{path}");
            assert!(got.text().contains("no connection upgrades"), "{}", got.text());
        }
        assert_eq!(upstream.count(), 0);
        for path in ["/v1/models", "/v1/models/m"] {
            assert_eq!(ask("GET", path, "", "").await.status, 200);
        }
        assert_eq!(ask("POST", "/v1/embeddings", "", "{}").await.status, 200);
        assert_eq!(upstream.count(), 3);
        assert_eq!(ask("GET", "/healthz", "", "").await.text(), "ok\n");
        // with nothing that could be gone round, all passes
        let open = Setup::default().start(&upstream).await;
        let got = Client::new(open.address).raw(&post("/v1/completions", &[], b"{}")).await;
        assert_eq!(got.status, 200);
    });
}

#[test]
fn a_client_may_speak_http_2() {
    run(async {
        use http_body_util::BodyExt;
        use hyper_util::rt::{TokioExecutor, TokioIo};
        for wire in WIRES {
            let events = wire.stream(&says(&["a BADWOR", " b"]));
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let bench = Setup::user(gate()).start(&upstream).await;
            let stream = tokio::net::TcpStream::connect(bench.address).await.unwrap();
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                    .await
                    .unwrap();
            tokio::spawn(connection);
            for _ in 0..3 {
                let body =
                    http_body_util::Full::new(bytes::Bytes::from(wire.request(true, "hi").to_string()));
                let request = http::Request::post(format!("http://gateway{}", wire.path(true)))
                    .header("content-type", "application/json")
                    .body(body)
                    .unwrap();
                let response = sender.send_request(request).await.unwrap();
                assert_eq!(response.status(), 200);
                let got = response.into_body().collect().await.unwrap().to_bytes();
                assert_eq!(got, events.concat().as_bytes());
            }
            assert_eq!(upstream.count(), 3);
        }
    });
}
