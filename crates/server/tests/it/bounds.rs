//! What waits is bounded; what ends lets answers finish; what is reloaded changes no answer that is under way.

use crate::kit::bench::lifecycle;
use crate::kit::client::post;
use crate::kit::wires::{calls, says};
use crate::kit::{Call, Client, Close, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::{Limits, OnBlock, OnHoldLimit};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Holds whatever follows a `<`.
fn holds() -> Value {
    json!([{"target": "stream", "chunks": ["content"], "regex": "<[a-z ]*>", "actions": [{"type": "interrupt"}]}])
}

#[test]
fn text_that_waits_is_bounded_in_bytes_and_time() {
    run(async {
        let limits =
            Limits { max_hold_bytes: 3000, max_hold: Duration::from_millis(200), ..Limits::default() };
        for wire in WIRES {
            let many: Vec<String> =
                (0..60).map(|n| if n == 0 { "go <a".to_owned() } else { " word".to_owned() }).collect();
            let pieces: Vec<&str> = many.iter().map(String::as_str).collect();
            let events = wire.stream(&says(&pieces));
            let few = &events[..events.iter().position(|event| event.contains("go <a")).unwrap() + 2];
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            for on_hold_limit in [OnHoldLimit::Block, OnHoldLimit::Release] {
                let setup = Setup::user(holds())
                    .with(|setup| (setup.limits, setup.on_hold_limit) = (limits.clone(), on_hold_limit));
                let bench = setup.start(&upstream).await;
                upstream.play(vec![Reply::stream(&events)]);
                let seen = bench.seen(wire, true).await;
                match on_hold_limit {
                    OnHoldLimit::Block => assert_eq!(
                        (seen.finish(), seen.text().contains("word")),
                        ("content_filter", false),
                        "{wire:?} {seen:?}"
                    ),
                    OnHoldLimit::Release => {
                        assert_eq!((seen.finish(), seen.text()), ("stop", many.concat().as_str()), "{wire:?}")
                    }
                }
                let since = Instant::now();
                upstream.play(vec![Reply::stream(few).with(|reply| reply.close = Close::Silent)]);
                if on_hold_limit == OnHoldLimit::Block {
                    let seen = bench.seen(wire, true).await;
                    assert_eq!(seen.finish(), "content_filter", "{wire:?} {seen:?}");
                } else {
                    let mut client = Client::new(bench.address);
                    client
                        .send(&post(wire.path(true), &[], wire.request(true, "hi").to_string().as_bytes()))
                        .await;
                    let got = client.read_some(few.concat().len()).await;
                    assert!(got.text().contains("go <a"), "{wire:?} {}", got.text());
                }
                assert!(
                    since.elapsed() > Duration::from_millis(150) && since.elapsed() < Duration::from_secs(3)
                );
            }
        }
    });
}

#[test]
fn a_call_that_grows_without_end_is_given_up() {
    run(async {
        let hooks =
            json!([{"target": "tool", "event": "before", "regex": "NEVER", "actions": [{"type": "block"}]}]);
        let limits = Limits { max_answer_bytes: 20_000, ..Limits::default() };
        for wire in [Wire::Chat, Wire::Responses, Wire::Messages] {
            let long = format!("{{\"a\":\"{}\"}}", "x".repeat(30_000));
            let pieces: Vec<&str> = (0..30).map(|n| &long[n * 1000..(n + 1) * 1000]).collect();
            let events = wire.stream(
                &says(&["text "]).and(Call::cut("shell", &[pieces.as_slice(), &[&long[30_000..]]].concat())),
            );
            let upstream = Upstream::playing(vec![Reply::stream(&events)]).await;
            let bench =
                Setup::user(hooks.clone()).with(|setup| setup.limits = limits.clone()).start(&upstream).await;
            let got = bench.ask(wire, true).await;
            let seen = got.seen(wire);
            assert_eq!(
                (seen.text(), seen.finish(), seen.calls.len()),
                ("text ", "content_filter", 0),
                "{wire:?}"
            );
            assert!(!got.text().contains("xxxx"));
        }
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::json(
                &wire
                    .body(&calls(vec![Call::new("shell", &format!("{{\"a\":\"{}\"}}", "x".repeat(30_000)))])),
            )])
            .await;
            let bench =
                Setup::user(hooks.clone()).with(|setup| setup.limits = limits.clone()).start(&upstream).await;
            assert_eq!(bench.ask(wire, false).await.status, 502, "{wire:?}");
        }
    });
}

#[test]
fn open_streams_finish_after_the_end_is_asked_for() {
    run(async {
        let events = Wire::Chat.stream(&says(&["a", "b", "c"]));
        let reply = Reply::stream(&events).with(|reply| reply.pause = Duration::from_millis(60));
        let upstream = Upstream::playing(vec![reply]).await;
        // also when no connection more would be taken
        for connections in [100, 1] {
            let limits = Limits { connections, ..Limits::default() };
            let mut bench = Setup::user(holds()).with(|setup| setup.limits = limits).start(&upstream).await;
            let mut client = Client::new(bench.address);
            client
                .send(&post(
                    "/v1/chat/completions",
                    &[],
                    Wire::Chat.request(true, "hi").to_string().as_bytes(),
                ))
                .await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            bench.stop.take().unwrap().send(()).unwrap();
            let got = client.read().await;
            assert_eq!(got.text(), events.concat());
            let left =
                tokio::time::timeout(Duration::from_secs(5), bench.served).await.expect("it ends").unwrap();
            assert_eq!(left, 0);
            assert!(tokio::net::TcpStream::connect(bench.address).await.is_err(), "nobody listens any more");
        }
        // who does not finish is counted
        let upstream =
            Upstream::playing(vec![Reply::stream(&events[..2]).with(|reply| reply.close = Close::Silent)])
                .await;
        let mut bench = Setup::user(holds())
            .with(|setup| setup.drain = Duration::from_millis(100))
            .start(&upstream)
            .await;
        let mut client = Client::new(bench.address);
        client
            .send(&post("/v1/chat/completions", &[], Wire::Chat.request(true, "hi").to_string().as_bytes()))
            .await;
        client.read_some(1).await;
        bench.stop.take().unwrap().send(()).unwrap();
        assert_eq!(
            tokio::time::timeout(Duration::from_secs(5), bench.served).await.expect("it ends").unwrap(),
            1
        );
    });
}

#[test]
fn an_answer_keeps_the_hooks_that_it_began_with() {
    run(async {
        for wire in WIRES {
            let events = wire.stream(&says(&["one ", "BAD", "WORD", " two"]));
            let reply = Reply::stream(&events).with(|reply| reply.pause = Duration::from_millis(30));
            let upstream = Upstream::playing(vec![reply]).await;
            let bench = Setup::user(holds()).start(&upstream).await;
            let guard = Setup::user(
                json!([{"target": "stream", "chunks": ["content"], "regex": "BADWORD", "actions": [{"type": "interrupt"}]}]),
            );
            let install = |setup: &Setup| bench.dispatchers[0].install(setup.hooks.set(&bench.asked));
            install(&guard);
            let mut client = Client::new(bench.address);
            client.send(&post(wire.path(true), &[], wire.request(true, "hi").to_string().as_bytes())).await;
            let begun = events.iter().position(|event| event.contains("one ")).unwrap();
            let first = client.read_some(events[..=begun].concat().len()).await;
            assert!(first.text().contains("one "));
            install(&Setup::user(holds()));
            let got = client.go_on(first).await;
            assert_eq!(got.seen(wire).finish(), "content_filter", "{wire:?} {}", got.text());
            assert_eq!(bench.seen(wire, true).await.finish(), "stop", "{wire:?}: the next has the new ones");
        }
    });
}

/// Interrupts at a word.
fn ends_at(word: &str) -> Value {
    json!([{"target": "stream", "chunks": ["content"], "regex": word, "actions": [{"type": "interrupt"}]}])
}

/// Stops calls with this in them.
fn stops(word: &str) -> Value {
    json!([lifecycle("guard", "pre_tool_use", json!({"block_if": word}))])
}

#[test]
fn one_set_judges_an_answer_from_its_head_to_its_end() {
    run(async {
        let answer = says(&["one ", "BADWORD", " two"]).and(Call::new("shell", "{\"a\":\"rm\"}"));
        let open = ("one BADWORD two".to_owned(), 1);
        let ended = ("one ".to_owned(), 0);
        let note = "[shell was not run: blocked by hook guard: no reason given]";
        let noted = (format!("one BADWORD two{note}\n"), 0);
        for (wire, stream) in WIRES.into_iter().flat_map(|wire| [(wire, true), (wire, false)]) {
            for (begins_with, then, want) in [
                (ends_at("BADWORD"), holds(), &ended),
                (holds(), ends_at("BADWORD"), &open),
                (stops("rm"), holds(), &noted),
                (stops("never"), stops("rm"), &open),
            ] {
                // what is loaded while the provider thinks counts; what is loaded behind the answer's head does not
                for at_head in [false, true] {
                    let reply = if stream {
                        Reply::stream(&wire.stream(&answer))
                    } else {
                        Reply::json(&wire.body(&answer))
                    };
                    let reply = reply.with(|reply| {
                        reply.think = Duration::from_millis(if at_head { 0 } else { 150 });
                        reply.pieces.insert(0, Vec::new());
                        reply.pause = Duration::from_millis(if at_head { 150 } else { 0 });
                    });
                    let upstream = Upstream::playing(vec![reply.with(|reply| {
                        let rest = reply.pieces.split_off(1).concat();
                        reply.pieces.push(rest);
                    })])
                    .await;
                    let first = if at_head { &begins_with } else { &then };
                    let bench = Setup::user(first.clone())
                        .with(|setup| setup.on_block = OnBlock::Refuse)
                        .start(&upstream)
                        .await;
                    let second = if at_head { &then } else { &begins_with };
                    let set = Setup::user(second.clone()).hooks.set(&bench.asked);
                    let install = || bench.dispatchers[0].install(set);
                    let mut client = Client::new(bench.address);
                    let body = wire.request(stream, "hi").to_string();
                    client.send(&post(wire.path(stream), &[], body.as_bytes())).await;
                    bench.until("asked", |bench| bench.upstream.count() == 1).await;
                    let got = if at_head && stream {
                        let head = client.read_head().await;
                        install();
                        client.go_on(head).await
                    } else {
                        // of an answer in one piece the client has no head before its end
                        tokio::time::sleep(Duration::from_millis(if at_head { 50 } else { 20 })).await;
                        install();
                        client.read().await
                    };
                    let seen = got.seen(wire);
                    let text = seen.text().to_owned();
                    let what = format!("{wire:?} {stream} {at_head} {begins_with} {}", got.text());
                    match stream || *want != ended {
                        true => assert_eq!((text, seen.calls.len()), *want, "{what}"),
                        // in one piece nothing is left of what was interrupted
                        false => assert!(!text.contains("BADWORD") && seen.calls.is_empty(), "{what}"),
                    }
                }
            }
        }
    });
}

#[test]
fn an_answer_that_is_asked_for_again_is_judged_by_the_same_set() {
    run(async {
        for wire in WIRES {
            let bad = |text| says(&[text]).and(Call::new("shell", "{\"a\":\"rm\"}"));
            let slow = Reply::stream(&wire.stream(&bad("yes ")))
                .with(|reply| reply.think = Duration::from_millis(100));
            let upstream = Upstream::playing(vec![
                Reply::stream(&wire.stream(&bad("so "))),
                slow,
                Reply::stream(&wire.stream(&says(&["well"]))),
            ])
            .await;
            let bench = Setup::user(stops("rm")).start(&upstream).await;
            let mut client = Client::new(bench.address);
            let body = wire.request(true, "hi").to_string();
            client.send(&post(wire.path(true), &[], body.as_bytes())).await;
            bench.until("asked again", |bench| bench.upstream.count() == 2).await;
            bench.dispatchers[0].install(Setup::user(json!([])).hooks.set(&bench.asked));
            let seen = client.read().await.seen(wire);
            assert_eq!((seen.text(), seen.calls.len()), ("so yes well", 0), "{wire:?} {seen:?}");
        }
    });
}

#[test]
fn a_thousand_reloads_under_load_drop_no_stream() {
    run(async {
        let upstream = Upstream::start(|_, request| {
            let wire = WIRES.into_iter().find(|wire| request.path().starts_with(wire.path(true))).unwrap();
            Reply::stream(
                &wire.stream(&says(&["one ", "two ", "three"]).and(Call::new("shell", "{\"a\":1}"))),
            )
        })
        .await;
        let bench = Arc::new(Setup::user(holds()).start(&upstream).await);
        let over = Arc::new(AtomicBool::new(false));
        let mut loads = Vec::new();
        for wire in WIRES {
            let (bench, over) = (bench.clone(), over.clone());
            loads.push(tokio::spawn(async move {
                let want = wire
                    .stream(&says(&["one ", "two ", "three"]).and(Call::new("shell", "{\"a\":1}")))
                    .concat();
                let mut client = Client::new(bench.address);
                let mut n = 0;
                while !over.load(Ordering::Relaxed) {
                    let got = client.post(wire.path(true), &[], &wire.request(true, "hi")).await;
                    assert_eq!(got.text(), want, "{wire:?}");
                    n += 1;
                }
                n
            }));
        }
        let sets = [
            holds(),
            json!([]),
            json!([{"target": "tool", "event": "before", "regex": "NEVER", "actions": [{"type": "block"}]}, {"target": "stream", "actions": [{"type": "log"}]}]),
        ];
        for n in 0..1000 {
            bench.dispatchers[0].install(Setup::user(sets[n % sets.len()].clone()).hooks.set(&bench.asked));
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        over.store(true, Ordering::Relaxed);
        let mut streams = 0;
        for load in loads {
            streams += load.await.unwrap();
        }
        assert!(streams > 50, "{streams}");
        assert!(
            bench.told("request").iter().all(|line| line.ends_with("200 complete")),
            "{:?}",
            bench.told("request").iter().find(|line| !line.ends_with("200 complete"))
        );
    });
}
