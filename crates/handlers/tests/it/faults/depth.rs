//! Events that nest without end: as values, which only code can make, and as text, which is no more than long.

use crate::bench::{Bench, head, reason};
use hookgate_core::facts::{GateEvent, LifeEvent};
use hookgate_core::handler::HandlerType;
use hookgate_core::verdict::{Cause, Ruling};
use hookgate_handlers::command::{self, Commands};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};

fn bench(event: &str, line: &str) -> Bench {
    let workshop = Workshop::empty().with(HandlerType::Command, command::maker(Commands::default()));
    let hook = json!({"id": "f", "event": event, "handler": {"type": "command", "shell": line}});
    Bench::new(tempfile::tempdir().unwrap(), &workshop, &hook)
}

/// A million lists in each other.
fn deep() -> Value {
    (0..1_000_000).fold(Value::Null, |value, _| Value::Array(vec![value]))
}

#[tokio::test]
async fn a_gate_stops_them_and_goes_on() {
    let bench = bench("pre_tool_use", "exit 0");
    let stopped = |ruling: Ruling| {
        let block = ruling.block().unwrap();
        assert_eq!(
            (block.cause, block.reason.as_str()),
            (Cause::Limit, "the input nests deeper than 128 levels")
        );
    };
    stopped(bench.gate(deep()).await);
    assert_eq!(reason(&bench.ls().await), "(allowed)");
    // also where no hook listens
    stopped(
        bench
            .dispatcher
            .ask(&bench.around, &head("e-2"), GateEvent::SubagentStart { subagent: deep() })
            .await,
    );
}

#[tokio::test]
async fn a_watching_hook_gets_words_instead() {
    let bench = bench("post_tool_use", "cat");
    let event = LifeEvent::PostToolUse { tool_name: "exec".into(), tool_input: deep(), tool_output: deep() };
    let watch = bench.dispatcher.watch(&head("e-1"), event).remove(0);
    let console = watch.run(&bench.around).await.ran.remove(0).console;
    let seen: Value = serde_json::from_str(&console).unwrap();
    assert_eq!(seen["toolInput"], "(left out: nests deeper than 128 levels)");
    assert_eq!(seen["toolOutput"], seen["toolInput"]);
}

#[tokio::test]
async fn text_is_only_text() {
    let text = "[".repeat(1_000_000);
    let bench = bench("user_prompt_submit", "exit 0");
    let ask = GateEvent::UserPromptSubmit { raw_input: text.clone() };
    assert_eq!(reason(&bench.dispatcher.ask(&bench.around, &head("e-1"), ask).await), "(allowed)");
    // what reads JSON texts makes no such value
    assert!(serde_json::from_str::<Value>(&text).unwrap_err().to_string().contains("recursion limit"));
}
