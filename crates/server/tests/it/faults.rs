//! Providers that fail, dawdle or send what they should not. What the client gets says what happened, in its wire.

use crate::kit::bench::lifecycle;
use crate::kit::wires::says;
use crate::kit::{Call, Close, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::Limits;
use serde_json::{Value, json};
use std::io::Write;
use std::time::{Duration, Instant};

/// Everything is looked at.
fn hooks() -> Value {
    json!([
        {"target": "stream", "regex": "BADWORD", "actions": [{"type": "interrupt"}]},
        {"target": "tool", "event": "before", "regex": "BADWORD", "actions": [{"type": "block"}]},
        lifecycle("end", "pre_response", json!({}))
    ])
}

fn compressed(encoding: &str, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    match encoding {
        "gzip" => {
            let mut gzip = flate2::write::GzEncoder::new(&mut out, flate2::Compression::default());
            gzip.write_all(bytes).unwrap();
            gzip.finish().unwrap();
        }
        "deflate" => {
            let mut zlib = flate2::write::ZlibEncoder::new(&mut out, flate2::Compression::default());
            zlib.write_all(bytes).unwrap();
            zlib.finish().unwrap();
        }
        "br" => brotli::CompressorWriter::new(&mut out, 4096, 5, 22).write_all(bytes).unwrap(),
        "zstd" => out = zstd::encode_all(bytes, 3).unwrap(),
        _ => out.extend_from_slice(bytes),
    }
    out
}

#[test]
fn a_slow_provider_is_waited_for_and_cut_anywhere() {
    run(async {
        for wire in WIRES {
            let bytes = wire
                .stream(&says(&["wörld 日本 \u{1F600}"]).and(Call::new("shell", "{\"a\":1}")))
                .concat()
                .into_bytes();
            let pieces = bytes.chunks(bytes.len().div_ceil(40)).map(<[u8]>::to_vec).collect();
            let reply = Reply::bytes(Vec::new())
                .with(|reply| (reply.pieces, reply.pause) = (pieces, Duration::from_millis(20)));
            let upstream = Upstream::playing(vec![reply]).await;
            let got = Setup::user(hooks()).start(&upstream).await.ask(wire, true).await;
            assert_eq!(got.body, bytes, "{wire:?}");
        }
        // every byte a write of its own
        for wire in WIRES {
            let bytes = wire.stream(&says(&["日本"])).concat().into_bytes();
            let pieces = bytes.iter().map(|byte| vec![*byte]).collect();
            let upstream =
                Upstream::playing(vec![Reply::bytes(Vec::new()).with(|reply| reply.pieces = pieces)]).await;
            assert_eq!(Setup::user(hooks()).start(&upstream).await.ask(wire, true).await.body, bytes);
        }
    });
}

#[test]
fn an_answer_that_breaks_off_is_passed_on_as_what_it_is() {
    run(async {
        for wire in WIRES {
            let answer = says(&["one", " two BADWOR"]).and(Call::cut("shell", &["{\"a\"", ":1}"]));
            let events = wire.stream(&answer);
            let upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            let bench = Setup::user(hooks()).start(&upstream).await;
            for keep in 0..events.len() {
                for close in [Close::Cut, Close::Regular] {
                    upstream.play(vec![Reply::stream(&events[..keep]).with(|reply| reply.close = close)]);
                    let got = bench.ask(wire, true).await;
                    assert_eq!(got.status, 200);
                    assert_eq!(got.cut, close == Close::Cut, "{wire:?} {keep} {close:?}");
                    let seen = got.seen(wire);
                    assert!("one two BADWOR".starts_with(seen.text()), "{wire:?} {keep} {close:?} {seen:?}");
                    let said = events[..keep]
                        .iter()
                        .filter(|event| event.contains("one") || event.contains("BADWOR"))
                        .count();
                    if said >= 2 && wire != Wire::Responses {
                        assert_eq!(
                            seen.text(),
                            "one two BADWOR",
                            "what was held is no match: {wire:?} {keep} {close:?}"
                        );
                    }
                    let full = wire.read(events[..keep].concat().as_bytes());
                    assert_eq!(
                        seen.done,
                        full.done,
                        "no end is made up: {wire:?} {keep} {close:?} {}",
                        got.text()
                    );
                }
            }
            // half an event
            let half: String = events.concat().chars().take(events.concat().chars().count() / 2).collect();
            upstream.play(vec![Reply::bytes(half.into_bytes()).with(|reply| reply.close = Close::Cut)]);
            let got = bench.ask(wire, true).await;
            assert!(got.cut);
        }
    });
}

#[test]
fn compression_that_nobody_asked_for_comes_off() {
    run(async {
        for wire in WIRES {
            for encoding in ["gzip", "deflate", "br", "zstd"] {
                for stream in [true, false] {
                    let plain = if stream {
                        wire.stream(&says(&["fine ", "words"])).concat()
                    } else {
                        wire.body(&says(&["fine words"])).to_string()
                    };
                    let packed = compressed(encoding, plain.as_bytes());
                    let kind = if stream { "text/event-stream; charset=utf-8" } else { "application/json" };
                    let reply = Reply::bytes(Vec::new()).with(|reply| {
                        reply.pieces = packed.chunks(7).map(<[u8]>::to_vec).collect();
                        reply.headers = vec![
                            ("content-type".into(), kind.into()),
                            ("content-encoding".into(), encoding.into()),
                        ];
                    });
                    let upstream = Upstream::playing(vec![reply]).await;
                    let got = Setup::user(hooks()).start(&upstream).await.ask(wire, stream).await;
                    assert_eq!(got.text(), plain, "{wire:?} {encoding} {stream}");
                    assert_eq!(got.header("content-encoding"), None);
                    assert_eq!(upstream.last().header("accept-encoding"), Some("identity"));
                    // where nobody looks it passes as it is
                    let got = Setup::default().start(&upstream).await.ask(wire, stream).await;
                    assert_eq!(got.body, packed);
                    assert_eq!(got.header("content-encoding"), Some(encoding));
                }
            }
            let odd = Reply::stream(&["x".into()]).header("content-encoding", "rot13");
            let upstream = Upstream::playing(vec![odd]).await;
            let got = Setup::user(hooks()).start(&upstream).await.ask(wire, true).await;
            assert_eq!(got.status, 502);
        }
    });
}

#[test]
fn what_cannot_be_read_is_no_answer() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            let bench = Setup::user(hooks()).start(&upstream).await;
            let kind = |kind: &str, body: &str| {
                Reply::bytes(body.as_bytes().to_vec())
                    .with(|reply| reply.headers = vec![("content-type".into(), kind.into())])
            };
            for reply in [
                kind("text/html", "<p>BADWORD"),
                kind("application/json", "{\"no"),
                kind("application/json", ""),
                kind("application/octet-stream", "BADWORD"),
                kind("application/json", "[1,2"),
            ] {
                upstream.play(vec![reply]);
                let got = bench.ask(wire, true).await;
                assert_eq!(got.status, 502, "{}", got.text());
                assert!(
                    got.json()["error"]["message"].as_str().unwrap().contains("the upstream"),
                    "{}",
                    got.text()
                );
            }
            for events in [
                "data: {\"half\": \n\n",
                "data: no json BADWORD\n\n",
                "BADWORD\n\n",
                "data: [1]\n\n",
                "event: x\n\n",
                ": comment BADWORD\n\n",
            ] {
                let mut all = wire.stream(&says(&["fine"]));
                all.insert(1, events.to_owned());
                upstream.play(vec![Reply::stream(&all)]);
                let got = bench.ask(wire, true).await;
                assert_eq!(got.status, 200);
                let seen = got.seen(wire);
                if events.starts_with("data: {\"half") || events.starts_with("data: no") {
                    assert!(!got.text().contains("BADWORD"), "{wire:?} {events} {}", got.text());
                    assert_eq!(seen.errors.len(), 1, "{wire:?} {events} {}", got.text());
                }
            }
        }
    });
}

#[test]
fn an_error_in_mid_stream_is_passed_on_whatever_waits() {
    run(async {
        let errors = [
            (Wire::Chat, "data: {\"error\":{\"message\":\"overloaded\",\"type\":\"server_error\"}}\n\n"),
            (
                Wire::Responses,
                "event: error\ndata: {\"type\":\"error\",\"sequence_number\":9,\"code\":\"server_error\",\"message\":\"overloaded\",\"param\":null}\n\n",
            ),
            (
                Wire::Messages,
                "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"overloaded\"}}\n\n",
            ),
            (
                Wire::Gemini,
                "data: {\"error\":{\"code\":503,\"message\":\"overloaded\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n",
            ),
        ];
        for (wire, error) in errors {
            let events =
                wire.stream(&says(&["one", " two BADWOR"]).and(Call::cut("shell", &["{\"a\"", ":1}"])));
            let upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            let bench = Setup::user(hooks()).start(&upstream).await;
            for keep in 1..events.len() - 2 {
                let sent: Vec<String> = events[..keep].iter().cloned().chain([error.to_owned()]).collect();
                upstream.play(vec![Reply::stream(&sent)]);
                let got = bench.ask(wire, true).await;
                assert!(got.text().contains("overloaded"), "{wire:?} {keep} {}", got.text());
                assert_eq!(got.seen(wire).errors.len(), 1, "{wire:?} {keep} {}", got.text());
            }
        }
    });
}

#[test]
fn errors_of_the_provider_pass_as_they_are() {
    run(async {
        for wire in WIRES {
            for status in [400, 401, 429, 500, 503, 529] {
                let reply = Reply::json(&json!({"error": {"message": "their words", "x": status}}))
                    .with(|reply| reply.status = status)
                    .header("retry-after", "3");
                let upstream = Upstream::playing(vec![reply.clone()]).await;
                let got = Setup::user(hooks()).start(&upstream).await.ask(wire, true).await;
                assert_eq!((got.status, got.body.clone()), (status, reply.all()));
                assert_eq!(got.header("retry-after"), Some("3"));
                assert_eq!(upstream.count(), 1, "the gateway repeats nothing on its own");
            }
        }
    });
}

#[test]
fn a_length_that_lies_is_noticed() {
    run(async {
        for wire in WIRES {
            for stream in [true, false] {
                let bytes = if stream {
                    wire.stream(&says(&["fine"])).concat()
                } else {
                    wire.body(&says(&["fine"])).to_string()
                };
                let kind = if stream { "text/event-stream" } else { "application/json" };
                let reply = |length: usize| {
                    Reply::bytes(bytes.clone().into_bytes()).with(|reply| {
                        reply.headers = vec![("content-type".into(), kind.into())];
                        reply.close = Close::Length(length);
                    })
                };
                let upstream = Upstream::playing(vec![reply(bytes.len() + 50)]).await;
                let bench = Setup::user(hooks()).start(&upstream).await;
                let got = bench.ask(wire, stream).await;
                assert!(got.cut || got.status == 502, "too long: {wire:?} {stream} {}", got.text());
                upstream.play(vec![reply(bytes.len() - 9)]);
                let got = bench.ask(wire, stream).await;
                assert!(stream || got.status == 502, "too short: {wire:?} {}", got.text());
                upstream.play(vec![reply(bytes.len())]);
                let got = bench.ask(wire, stream).await;
                assert_eq!(got.text(), bytes);
            }
        }
    });
}

#[test]
fn an_unreachable_provider_is_told() {
    run(async {
        for wire in WIRES {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let mut upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            upstream.address = listener.local_addr().unwrap();
            drop(listener);
            let bench = Setup::user(hooks()).start(&upstream).await;
            let got = bench.ask(wire, true).await;
            assert_eq!(got.status, 502);
            assert!(
                got.json()["error"]["message"].as_str().unwrap().contains("cannot be reached"),
                "{}",
                got.text()
            );
        }
    });
}

#[test]
fn a_silent_provider_is_given_up() {
    run(async {
        let limits = Limits {
            first_byte: Duration::from_millis(200),
            idle: Duration::from_millis(200),
            ..Limits::default()
        };
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            let bench =
                Setup::user(hooks()).with(|setup| setup.limits = limits.clone()).start(&upstream).await;
            let since = Instant::now();
            upstream.play(vec![Reply::stream(&[]).with(|reply| reply.think = Duration::from_secs(9))]);
            let got = bench.ask(wire, true).await;
            assert_eq!(got.status, 504, "{}", got.text());
            let events = wire.stream(&says(&["one", "two"]));
            upstream.play(vec![Reply::stream(&events[..2]).with(|reply| reply.close = Close::Silent)]);
            let got = bench.ask(wire, true).await;
            assert_eq!(got.seen(wire).errors.len(), 1, "{wire:?} {}", got.text());
            assert!(got.text().contains("sent nothing for 0.2 s"), "{}", got.text());
            // in the middle of an answer in one piece
            let whole = Reply::json(&wire.body(&says(&["x"]))).with(|reply| {
                reply.pieces[0].truncate(20);
                reply.close = Close::Silent;
            });
            upstream.play(vec![whole]);
            let got = bench.ask(wire, false).await;
            assert_eq!(got.status, 502, "{}", got.text());
            assert!(since.elapsed() < Duration::from_secs(5));
        }
    });
}

#[test]
fn a_provider_that_fails_when_it_is_asked_again_is_told() {
    run(async {
        let hooks = json!([{"target": "stream", "regex": "BADWORD", "actions": [{"type": "interrupt", "resend": true}]}]);
        for wire in WIRES {
            for stream in [true, false] {
                let bad = if stream {
                    Reply::stream(&wire.stream(&says(&["so ", "BADWORD"])))
                } else {
                    Reply::json(&wire.body(&says(&["BADWORD"])))
                };
                let fails =
                    Reply::json(&json!({"error": {"message": "down"}})).with(|reply| reply.status = 503);
                let upstream = Upstream::playing(vec![bad, fails]).await;
                let got = Setup::user(hooks.clone()).start(&upstream).await.ask(wire, stream).await;
                assert!(got.text().contains("503"), "{wire:?} {stream} {}", got.text());
                if stream {
                    assert_eq!(got.seen(wire).errors.len(), 1, "{wire:?} {}", got.text());
                } else {
                    assert_eq!(got.status, 502);
                }
            }
        }
    });
}
