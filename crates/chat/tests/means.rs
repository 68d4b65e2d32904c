//! What the chat service says it can do is what it does: each wish at each spot.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hookgate_chat::{ChatEvent, ChatService, Outcome, Role, Tool, ToolError, can};
use hookgate_core::event::ChunkKind;
use hookgate_core::point::Point;
use hookgate_core::wish::{Can, Spot, Wish};
use hookgate_core::word::Word;
use hookgate_llm::{Scripted, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

/// Gives back its argument, or fails with it.
struct Work;

impl Tool for Work {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "work".into(), ..ToolSpec::default() }
    }

    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        async move {
            let text = args["text"].as_str().unwrap().to_owned();
            if args["fail"] == true { Err(ToolError(text)) } else { Ok(text.into()) }
        }
        .boxed()
    }
}

fn hook(spot: Spot, wish: Wish) -> Value {
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
    if !matches!(wish, Wish::Redact | Wish::Block) {
        hook["maxTriggers"] = 1.into();
    }
    hook["actions"] = json!([match wish {
        Wish::Queue => json!({"type": "queue-message", "message": "QUEUED"}),
        Wish::Interrupt => json!({"type": "interrupt"}),
        Wish::Retry => json!({"type": "interrupt", "resend": true}),
        Wish::Resend => json!({"type": "queue-resend"}),
        Wish::Redact => json!({"type": "redact", "with": "[gone]"}),
        Wish::Block => json!({"type": "block"}),
        Wish::Append | Wish::Send => panic!("{wish} is a handler's"),
    }]);
    hook
}

/// What the user says, and the model's turns that pass the spot.
fn turns(spot: Spot) -> (&'static str, Vec<Value>) {
    let fine = json!({"text": "fine"});
    let works = |text: &str, fail: bool| json!({"tool_calls": [{"tool": "work", "args": {"text": text, "fail": fail}}]});
    match spot {
        Spot::Message(Role::User) => ("MARK", vec![fine]),
        Spot::Message(Role::Reasoning) | Spot::Chunk(ChunkKind::Reasoning) => {
            ("hi", vec![json!({"reasoning": "MARK", "text": "fine"})])
        }
        Spot::At(Point::ToolError) => ("hi", vec![works("MARK", true), fine]),
        Spot::Message(Role::Tool) | Spot::Chunk(ChunkKind::ToolCallDelta) | Spot::At(_) => {
            ("hi", vec![works("MARK", false), fine])
        }
        Spot::Message(_) | Spot::Chunk(_) => ("hi", vec![json!({"text": "MARK"})]),
    }
}

/// Whether a turn went as the hook wishes.
async fn is_done(spot: Spot, wish: Wish) -> bool {
    let (prompt, mut script) = turns(spot);
    let n_turns = script.len();
    // for whoever asks again
    script.extend([json!({"text": "fine"}), json!({"text": "fine"})]);
    let model = Scripted::parse(&json!({"order": "sequence", "turns": script}).to_string()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("h.json"), hook(spot, wish).to_string()).unwrap();
    let n_asked: Arc<Mutex<usize>> = Arc::default();
    let count = n_asked.clone();
    let service = ChatService::builder(model)
        .environment(|_| None)
        .trusted_hooks_dir(dir.path())
        .tool(Work)
        .observer(move |event| {
            *count.lock().unwrap() += usize::from(matches!(event, ChatEvent::Request { .. }))
        })
        .build()
        .unwrap();
    service.queue_message(Role::User, prompt);
    let outcome = service.send().await.unwrap();
    let n_asked = *n_asked.lock().unwrap();
    let has = |text: &str| {
        let all = service.history().into_iter().chain(service.queue());
        all.map(|message| message.content).any(|content| content.contains(text))
    };
    match wish {
        Wish::Queue => has("QUEUED"),
        Wish::Interrupt => matches!(outcome, Outcome::Interrupted { .. }),
        Wish::Retry => {
            let again = match spot {
                // no response is under way there; the next request comes once
                Spot::Message(Role::User) | Spot::At(Point::PostToolUse | Point::ToolError) => {
                    n_asked == n_turns
                }
                Spot::Message(_) | Spot::Chunk(_) | Spot::At(_) => n_asked == 2 && !has("MARK"),
            };
            again && matches!(outcome, Outcome::Answered(_))
        }
        Wish::Resend => n_asked == n_turns + 1,
        Wish::Redact => has("[gone]") && !has("MARK"),
        Wish::Block => has("work may not run like this"),
        Wish::Append | Wish::Send => panic!("{wish} is a handler's"),
    }
}

#[tokio::test]
async fn what_is_said_is_what_is_done() {
    let mut n_not = 0;
    for spot in Spot::of_json_hooks() {
        for wish in spot.wishes_of_actions() {
            let (done, can) = (is_done(spot, wish).await, can(spot, wish));
            assert_eq!(can == Can::Yes, done, "{spot:?} {wish}: {can:?}");
            n_not += usize::from(!done);
        }
    }
    // what may be redacted is withdrawn: content, reasoning, arguments
    assert_eq!(n_not, 3);
}
