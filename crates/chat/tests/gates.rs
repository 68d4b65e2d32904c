//! Lifecycle hooks on a conversation: what they see, and what their answers do.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hookgate_chat::{ChatBuilder, ChatEvent, ChatService, Outcome, Role, Subagents, Tool, ToolError};
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerKind, HandlerType, ScriptText};
use hookgate_core::record::Memory;
use hookgate_core::verdict::Decision;
use hookgate_handlers::workshop::Workshop;
use hookgate_llm::{Scripted, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Answers with what its source says, as JSON, and remembers the events it was shown.
#[derive(Debug)]
struct Says {
    answer: Value,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Handler for Says {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        async move {
            self.seen.lock().unwrap().push(serde_json::from_str(call.json).unwrap());
            let text = |key: &str| self.answer.get(key).and_then(Value::as_str).map(str::to_owned);
            match text("fail") {
                Some(why) => Err(Fault::failed("it failed", why)),
                None => Ok(Answer {
                    decision: text("decision"),
                    reason: text("reason"),
                    additions: text("add").map(|add| (None, add)).into_iter().collect(),
                    ..Answer::default()
                }),
            }
        }
        .boxed()
    }
}

struct World {
    _dir: tempfile::TempDir,
    seen: Arc<Mutex<Vec<Value>>>,
    blocked: Arc<Mutex<Vec<String>>>,
    memory: Arc<Memory>,
    builder: Option<ChatBuilder>,
}

impl World {
    /// A conversation with these turns of the model and these hooks; a handler's text is its answer.
    fn new(turns: Value, hooks: Value) -> World {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("h.json"), hooks.to_string()).unwrap();
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let blocked: Arc<Mutex<Vec<String>>> = Arc::default();
        let memory = Arc::new(Memory::new(100));
        let (shown, told) = (seen.clone(), blocked.clone());
        let workshop = Workshop::empty().with(HandlerType::Script, move |spec, _| {
            let HandlerKind::Script { text: ScriptText::Inline(text), .. } = &spec.kind else {
                panic!("no text")
            };
            Ok(Arc::new(Says { answer: serde_json::from_str(text).unwrap(), seen: shown.clone() }))
        });
        let model = Scripted::parse(&json!({"order": "sequence", "turns": turns}).to_string()).unwrap();
        let builder = ChatService::builder(model)
            .environment(|_| None)
            .hooks_dir(dir.path())
            .workshop(workshop)
            .recorder(memory.clone())
            .tool(Echo)
            .observer(move |event| {
                if let ChatEvent::Blocked { what, block } = event {
                    told.lock().unwrap().push(format!("{what}: {}", block.reason));
                }
            });
        World { _dir: dir, seen, blocked, memory, builder: Some(builder) }
    }

    fn service(&mut self) -> ChatService {
        self.builder.take().unwrap().build().unwrap()
    }

    fn rows(&self) -> Vec<(String, Decision)> {
        self.memory.records().iter().map(|row| (row.event.to_owned(), row.decision)).collect()
    }

    fn seen(&self, key: &str) -> Vec<Value> {
        self.seen.lock().unwrap().iter().map(|event| event[key].clone()).collect()
    }
}

struct Echo;
impl Tool for Echo {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "echo".into(), ..ToolSpec::default() }
    }
    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        async move { Ok(Value::Object(args)) }.boxed()
    }
}

fn hook(event: &str, answer: Value) -> Value {
    json!({"id": event, "event": event, "handler": {"type": "script", "source": answer.to_string()}})
}

fn calls(name: &str, args: Value) -> Value {
    json!({"tool_calls": [{"tool": name, "args": args}]})
}

#[tokio::test]
async fn a_blocked_tool_does_not_run_and_the_model_reads_why() {
    let block = hook("pre_tool_use", json!({"decision": "block", "reason": "not on a Sunday"}));
    let mut world =
        World::new(json!([calls("echo", json!({"a": 1})), {"text": "I may not."}]), json!([block]));
    let service = world.service();
    service.add_message(Role::User, "do it");
    assert_eq!(service.send().await.unwrap().text(), "I may not.");
    let result = &service.history()[2];
    assert_eq!(result.content, "error: blocked by hook pre_tool_use: not on a Sunday");
    assert!(result.is_error);
    assert_eq!(*world.blocked.lock().unwrap(), ["echo: blocked by hook pre_tool_use: not on a Sunday"]);
    assert_eq!(world.rows(), [("pre_tool_use".to_owned(), Decision::Block)]);
    assert_eq!(world.seen("toolInput"), [json!({"a": 1})]);
}

#[tokio::test]
async fn a_hook_that_fails_blocks() {
    let fails = hook("pre_tool_use", json!({"fail": "no connection to key=sk-1234567890abcdef"}));
    let mut world = World::new(json!([calls("echo", json!({})), {"text": "ok"}]), json!([fails]));
    let service = world.service();
    service.add_message(Role::User, "do it");
    service.send().await.unwrap();
    assert_eq!(service.history()[2].content, "error: blocked because hook pre_tool_use failed: it failed");
    let row = &world.memory.records()[0];
    assert_eq!(row.decision, Decision::Error);
    assert!(!row.error.as_ref().unwrap().contains("sk-1234567890abcdef"), "{row:?}");
}

#[tokio::test]
async fn a_blocked_prompt_enters_nowhere() {
    let block = hook("user_prompt_submit", json!({"decision": "block", "reason": "too rude"}));
    for queued in [false, true] {
        let mut world = World::new(json!([{"text": "never"}]), json!([block]));
        let service = world.service();
        if queued {
            service.queue_message(Role::User, "you fool");
        } else {
            service.add_message(Role::User, "you fool");
        }
        let outcome = service.send().await.unwrap();
        let reason = "blocked by hook user_prompt_submit: too rude".to_owned();
        assert_eq!(outcome, Outcome::Blocked { hook: "user_prompt_submit".into(), reason });
        assert!(service.history().is_empty() && service.queue().is_empty());
        assert_eq!(world.seen("rawInput"), [json!("you fool")]);
    }
}

#[tokio::test]
async fn a_prompt_is_asked_about_once() {
    let allow = hook("user_prompt_submit", json!({"decision": "allow"}));
    let mut world = World::new(json!([{"text": "a"}, {"text": "b"}]), json!([allow]));
    let service = world.service();
    service.add_message(Role::User, "one");
    service.send().await.unwrap();
    service.queue_message(Role::User, "two");
    service.send().await.unwrap();
    assert_eq!(world.seen("rawInput"), [json!("one"), json!("two")]);
}

#[tokio::test]
async fn an_answer_carries_its_notice_every_time() {
    let append = hook("pre_response", json!({"add": "\n-- not legal advice"}));
    let mut send = hook("pre_response", json!({"add": "Was this helpful?"}));
    send["id"] = json!("ask");
    send["mode"] = json!("send");
    let mut world = World::new(json!([{"text": "Yes."}]), json!([append, send]));
    let service = world.service();
    service.add_message(Role::User, "may I?");
    let Outcome::Answered(answer) = service.send().await.unwrap() else { panic!("it was answered") };
    assert_eq!(answer.text, "Yes.\n-- not legal advice");
    assert_eq!(answer.sent, ["Was this helpful?"]);
    let history: Vec<String> = service.history().iter().map(|m| m.content.clone()).collect();
    assert_eq!(history, ["may I?", "Yes.\n-- not legal advice", "Was this helpful?"]);
    assert_eq!(world.seen("response"), [json!("Yes."), json!("Yes.")]);
}

#[tokio::test]
async fn a_notice_that_may_not_be_missing_withholds_the_answer() {
    let mut append = hook("pre_response", json!({"fail": "disk full"}));
    append["on_timeout"] = json!("block");
    let mut world = World::new(json!([{"text": "Yes."}]), json!([append]));
    let service = world.service();
    service.add_message(Role::User, "may I?");
    assert!(matches!(service.send().await.unwrap(), Outcome::Blocked { .. }));
    assert_eq!(service.history().len(), 1);
    assert_eq!(world.blocked.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn watching_hooks_see_the_whole_session() {
    let watched = ["session_start", "post_tool_use", "tool_error", "stop", "session_end"];
    let hooks: Vec<Value> = watched.iter().map(|event| hook(event, json!({}))).collect();
    let turns = json!([calls("echo", json!({"a": 1})), {"text": "done"}]);
    let mut world = World::new(turns, json!(hooks));
    let service = world.service();
    service.add_message(Role::User, "go");
    service.send().await.unwrap();
    assert_eq!(service.close(Duration::from_secs(5)).await, 0);
    let mut events: Vec<String> = world.rows().into_iter().map(|(event, _)| event).collect();
    events.sort();
    assert_eq!(events, ["post_tool_use", "session_end", "session_start", "stop"]);
}

#[tokio::test]
async fn a_sub_agent_meets_the_same_hooks_one_level_deeper() {
    let gate = hook("pre_tool_use", json!({"decision": "allow"}));
    let start = hook("subagent_start", json!({"decision": "allow"}));
    let turns = json!([
        calls("task", json!({"prompt": "look it up", "description": "researcher"})),
        calls("echo", json!({"deep": true})),
        {"text": "found"},
        {"text": "the sub-agent found it"}
    ]);
    let mut world = World::new(turns, json!([gate, start]));
    world.builder = world.builder.take().map(|builder| builder.subagents(Subagents::default()));
    let service = world.service();
    service.add_message(Role::User, "go");
    assert_eq!(service.send().await.unwrap().text(), "the sub-agent found it");
    assert_eq!(service.history()[2].content, "found");
    assert_eq!(world.seen("event"), [json!("pre_tool_use"), json!("subagent_start"), json!("pre_tool_use")]);
    assert_eq!(world.seen("depth"), [json!(0), json!(1), json!(1)]);
    assert_eq!(world.seen("subagent")[1], json!({"name": "researcher", "task": "look it up"}));
}

#[tokio::test]
async fn a_sub_agent_that_may_not_start_is_a_failed_tool() {
    let start = hook("subagent_start", json!({"decision": "block", "reason": "alone"}));
    let turns = json!([calls("task", json!({"prompt": "x"})), {"text": "ok"}]);
    let mut world = World::new(turns, json!([start]));
    world.builder = world.builder.take().map(|builder| builder.subagents(Subagents::default()));
    let service = world.service();
    service.add_message(Role::User, "go");
    assert_eq!(service.send().await.unwrap().text(), "ok");
    assert_eq!(service.history()[2].content, "error: blocked by hook subagent_start: alone");
}

#[tokio::test]
async fn another_tenants_hooks_see_nothing() {
    let mut block = hook("pre_tool_use", json!({"decision": "block"}));
    block["scope"] = json!("tenant");
    block["tenant"] = json!("acme");
    for (tenant, blocked) in [("acme", true), ("other", false)] {
        let turns = json!([calls("echo", json!({})), {"text": "ok"}]);
        let mut world = World::new(turns, json!([block]));
        world.builder = world.builder.take().map(|builder| builder.tenant(tenant));
        let service = world.service();
        service.add_message(Role::User, "go");
        service.send().await.unwrap();
        assert_eq!(service.history()[2].is_error, blocked, "{tenant}");
    }
}
