//! What the gateway says it can do is what it does: each wish at each spot, on all wires, streamed and whole.

use crate::kit::bench::lifecycle;
use crate::kit::wires::{calls, says};
use crate::kit::{Answer, Call, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_core::event::{ChunkKind, Role};
use hookgate_core::point::Point;
use hookgate_core::wish::{Can, Spot, Wish};
use hookgate_core::word::Word;
use hookgate_server::gateway::{OnBlock, can};
use serde_json::{Value, json};

fn hook(spot: Spot, actions: Value) -> Value {
    let mut hook = match spot {
        Spot::Message(role) => json!({"target": "chat", "roles": [role.as_str()]}),
        Spot::Chunk(kind) => json!({"target": "stream", "chunks": [kind.as_str()]}),
        Spot::At(Point::PreToolUse) => json!({"target": "tool", "event": "before"}),
        Spot::At(Point::PostToolUse) => json!({"target": "tool", "event": "after"}),
        Spot::At(_) => json!({"target": "tool", "event": "error"}),
    };
    if spot != Spot::Chunk(ChunkKind::Finish) {
        hook["regex"] = "MARK".into();
    }
    let lasts = actions.as_array().unwrap().iter().any(|it| it["type"] == "redact" || it["type"] == "block");
    if !lasts {
        hook["maxTriggers"] = 1.into();
    }
    hook["actions"] = actions;
    hook
}

/// What a hook does that wishes this. What is queued is looked for in the next request, so where one can be had at once it
/// is asked for.
fn actions(spot: Spot, wish: Wish) -> Value {
    let queue = json!({"type": "queue-message", "message": "QUEUED"});
    match wish {
        Wish::Queue if can(spot, Wish::Resend) == Can::Yes => json!([queue, {"type": "queue-resend"}]),
        Wish::Queue => json!([queue]),
        Wish::Interrupt => json!([{"type": "interrupt"}]),
        Wish::Retry => json!([{"type": "interrupt", "resend": true}]),
        Wish::Resend => json!([{"type": "queue-resend"}]),
        Wish::Redact => json!([{"type": "redact", "with": "[gone]"}]),
        Wish::Block => json!([{"type": "block"}]),
        Wish::Append | Wish::Send => panic!("{wish} is a handler's"),
    }
}

/// The request and the first answer of a turn that passes the spot; none where the wire has no such thing.
fn turn(wire: Wire, stream: bool, spot: Spot) -> Option<(Value, Reply)> {
    let reply = |answer: &Answer| match stream {
        true => Reply::stream(&wire.stream(answer)),
        false => Reply::json(&wire.body(answer)),
    };
    let (hi, fine) = (wire.request(stream, "hi"), says(&["fine"]));
    Some(match spot {
        Spot::Message(Role::User) => (wire.request(stream, "MARK"), reply(&fine)),
        Spot::Message(Role::Tool) | Spot::At(Point::PostToolUse) => {
            (wire.with_result(stream, "MARK", false), reply(&fine))
        }
        // the others do not say that a tool failed
        Spot::At(Point::ToolError) if wire != Wire::Messages => return None,
        Spot::At(Point::ToolError) => (wire.with_result(stream, "MARK", true), reply(&fine)),
        Spot::Message(Role::Reasoning) | Spot::Chunk(ChunkKind::Reasoning) if wire != Wire::Chat => {
            return None;
        }
        Spot::Message(Role::Reasoning) | Spot::Chunk(ChunkKind::Reasoning) => (hi, thinking(stream, &fine)),
        Spot::At(Point::PreToolUse) | Spot::Chunk(ChunkKind::ToolCallDelta) => {
            (wire.request(stream, "do it"), reply(&calls(vec![Call::new("shell", "{\"command\":\"MARK\"}")])))
        }
        Spot::Message(_) | Spot::Chunk(_) | Spot::At(_) => (hi, reply(&says(&["MARK"]))),
    })
}

/// A chat completion with thoughts before its text.
fn thinking(stream: bool, answer: &Answer) -> Reply {
    if !stream {
        let mut body = Wire::Chat.body(answer);
        body["choices"][0]["message"]["reasoning_content"] = "MARK".into();
        return Reply::json(&body);
    }
    let delta = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m",
        "choices": [{"index": 0, "delta": {"reasoning_content": "MARK"}, "finish_reason": null}]});
    let mut events = Wire::Chat.stream(answer);
    events.insert(0, format!("data: {delta}\n\n"));
    Reply::stream(&events)
}

/// Whether the turn went as the hook wishes: by what the client and the provider saw of it.
async fn is_done(wire: Wire, stream: bool, spot: Spot, wish: Wish) -> Option<bool> {
    let (request, first) = turn(wire, stream, spot)?;
    let second = says(&["fine"]);
    let second = if stream { Reply::stream(&wire.stream(&second)) } else { Reply::json(&wire.body(&second)) };
    let upstream = Upstream::playing(vec![first, second]).await;
    let hooks = json!([hook(spot, actions(spot, wish))]);
    let bench = Setup::trusted(hooks).with(|setup| setup.on_block = OnBlock::Refuse).start(&upstream).await;
    let got = bench.post(wire, stream, &request).await;
    if wish == Wish::Queue
        && matches!(spot, Spot::At(Point::PreToolUse) | Spot::Chunk(ChunkKind::ToolCallDelta))
    {
        // the agent asks again itself
        bench.post(wire, stream, &wire.with_result(stream, "done", false)).await;
    }
    let n_asked = bench.upstream.count();
    Some(match wish {
        Wish::Queue => n_asked > 0 && String::from_utf8_lossy(&bench.upstream.last().body).contains("QUEUED"),
        Wish::Interrupt => got.status == 400 || !matches!(got.seen(wire).finish(), "stop" | "tool_calls"),
        Wish::Retry | Wish::Resend => n_asked == 2,
        Wish::Redact => got.text().contains("[gone]") && !got.text().contains("MARK"),
        Wish::Block => got.seen(wire).calls.is_empty(),
        Wish::Append | Wish::Send => panic!("{wish} is a handler's"),
    })
}

#[test]
fn what_is_said_is_what_is_done() {
    run(async {
        let mut n_played = 0;
        for wire in WIRES {
            for stream in [true, false] {
                for spot in Spot::of_json_hooks() {
                    for wish in spot.wishes_of_actions() {
                        let Some(done) = is_done(wire, stream, spot, wish).await else { continue };
                        let can = can(spot, wish);
                        assert_eq!(can == Can::Yes, done, "{wire:?} {stream} {spot:?} {wish}: {can:?}");
                        n_played += 1;
                    }
                }
            }
        }
        assert!(n_played > 250, "{n_played}");
    });
}

#[test]
fn what_is_never_told_of_never_fires() {
    run(async {
        for stream in [true, false] {
            for spot in Spot::of_json_hooks() {
                let wire = if spot == Spot::At(Point::ToolError) { Wire::Messages } else { Wire::Chat };
                let (request, reply) = turn(wire, stream, spot).unwrap();
                let upstream = Upstream::playing(vec![reply]).await;
                let log = json!([hook(spot, json!([{"type": "log", "message": "seen"}]))]);
                let bench = Setup::user(log).start(&upstream).await;
                bench.post(wire, stream, &request).await;
                let told = !bench.told("log").is_empty();
                assert_eq!(told, can(spot, Wish::Queue) != Can::Never, "{stream} {spot:?}");
            }
        }
    });
}

#[test]
fn what_is_appended_is_in_the_text_and_what_is_sent_behind_it() {
    run(async {
        let hooks = json!([
            lifecycle("a", "pre_response", json!({"append": "<A>"})),
            lifecycle("s", "pre_response", json!({"send": "<S>"}))
        ]);
        for wire in WIRES {
            for stream in [true, false] {
                let (_, reply) = turn(wire, stream, Spot::Message(Role::User)).unwrap();
                let bench = Setup::user(hooks.clone()).start(&Upstream::playing(vec![reply]).await).await;
                let got = bench.ask(wire, stream).await;
                let seen = got.seen(wire);
                if wire == Wire::Responses {
                    // the one wire that has several messages in an answer
                    let response = match stream {
                        true => completed(&got.text()),
                        false => got.json(),
                    };
                    let text = |n: usize| response["output"][n]["content"][0]["text"].clone();
                    assert_eq!((text(0), text(1)), ("fine<A>".into(), "<S>".into()), "{response}");
                    assert_eq!(seen.text(), "fine<A><S>", "{stream}");
                } else {
                    assert_eq!((seen.text(), seen.texts.len()), ("fine<A>\n\n<S>", 1), "{wire:?} {stream}");
                }
                if stream && wire == Wire::Messages {
                    assert_eq!(got.text().matches("content_block_start\",").count(), 1, "{}", got.text());
                }
            }
        }
        let end = Spot::At(Point::PreResponse);
        assert_eq!(can(end, Wish::Append), Can::Yes);
        assert!(matches!(can(end, Wish::Send), Can::No(_)));
    });
}

/// The response that a stream ends with.
fn completed(stream: &str) -> Value {
    let last = stream.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    serde_json::from_str::<Value>(last).unwrap()["response"].clone()
}
