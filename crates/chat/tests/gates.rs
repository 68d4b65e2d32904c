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

#[tokio::test]
async fn a_json_hook_stops_a_tool_before_any_gate_is_asked() {
    let mut world = World::new(
        json!([calls("echo", json!({"x": 1})), {"text": "sorry"}]),
        json!([
            {"target": "tool", "label": "no-x", "event": "before", "tools": ["echo"], "regex": "\"x\":",
             "actions": [{"type": "log"}, {"type": "block", "message": "{{name}} takes no x, found {{match}}"}]},
            {"target": "tool", "label": "second", "event": "before", "actions": [{"type": "block"}]},
            hook("pre_tool_use", json!({"decision": "allow"}))
        ]),
    );
    let service = world.service();
    service.queue_message(Role::User, "go");
    assert_eq!(service.send().await.unwrap().text(), "sorry");
    let result = service.history().iter().find(|m| m.role == Role::Tool).unwrap().content.clone();
    assert_eq!(result, "error: blocked by hook no-x: echo takes no x, found \"x\":");
    assert_eq!(*world.blocked.lock().unwrap(), ["echo: blocked by hook no-x: echo takes no x, found \"x\":"]);
    let of_json_hook = ("pre_tool_use".to_owned(), Decision::Block);
    assert_eq!(world.rows(), [of_json_hook.clone(), of_json_hook], "the tool was stopped before the gate");
}

#[tokio::test]
async fn only_what_is_about_to_run_can_be_blocked() {
    let bad = |target: &str, event: &str| {
        let mut hook = json!({"target": target, "actions": [{"type": "block"}]});
        if !event.is_empty() {
            hook["event"] = event.into();
        }
        hook
    };
    let hooks = json!([
        bad("chat", ""),
        bad("stream", ""),
        bad("tool", ""),
        bad("tool", "error"),
        bad("tool", "before")
    ]);
    let service = World::new(json!([{"text": "x"}]), hooks).service();
    let problems: Vec<String> = service.status().problems.iter().map(ToString::to_string).collect();
    assert_eq!(problems.len(), 4, "{problems:?}");
    for problem in problems {
        assert!(
            problem
                .contains("`block` stops a tool before it runs: it needs `target` tool and `event` before")
        );
    }
}

#[tokio::test]
async fn a_credential_in_a_streamed_answer_withdraws_it_wherever_it_is_cut() {
    let token = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    for cut in 1..token.len() {
        let (head, tail) = token.split_at(cut);
        let pieces = [format!("the token is {head}"), format!("{tail} and it works"), ".".into()];
        let chunks = pieces.map(|text| json!({"type": "content", "text": text}));
        let model = Scripted::parse(&json!({"turns": [{"chunks": chunks}]}).to_string()).unwrap();
        let (logged, shown) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(String::new())));
        let (log, show) = (logged.clone(), shown.clone());
        let service = ChatService::builder(model)
            .environment(|_| None)
            .builtin("secrets_stream", Map::new(), "test")
            .observer(move |event| match event {
                ChatEvent::Log { text, .. } => log.lock().unwrap().push((*text).to_owned()),
                ChatEvent::Chunk(chunk) => show.lock().unwrap().push_str(chunk.text().unwrap_or_default()),
                _ => {}
            })
            .build()
            .unwrap();
        service.queue_message(Role::User, "which token?");
        let outcome = service.send().await.unwrap();
        assert_eq!(outcome, Outcome::Interrupted { hook: "builtin/secrets_stream".into() }, "cut at {cut}");
        assert_eq!(*logged.lock().unwrap(), ["the answer holds: github_token"]);
        assert!(!shown.lock().unwrap().contains(token));
        assert_eq!(service.history().len(), 1, "nothing of the answer is kept");
    }
}

#[tokio::test]
async fn lifecycle_hooks_filter_by_tools_regex_and_roles() {
    let filtered = |event: &str, filters: Value| {
        let mut hook = hook(event, json!({"decision": "allow"}));
        hook["id"] = json!(format!("{event} {filters}"));
        hook.as_object_mut().unwrap().extend(filters.as_object().unwrap().clone());
        hook
    };
    let mut world = World::new(
        json!([calls("echo", json!({"x": "secret"})), {"text": "done, boss"}]),
        json!([
            filtered("pre_tool_use", json!({"tools": ["echo"], "regex": "secr.t"})),
            filtered("pre_tool_use", json!({"tools": ["ech"]})),
            filtered("pre_tool_use", json!({"regex": "nothing"})),
            filtered("post_tool_use", json!({"regex": "secret"})),
            filtered("post_tool_use", json!({"tools": ["other.x"]})),
            filtered("user_prompt_submit", json!({"regex": "^go"})),
            filtered("user_prompt_submit", json!({"regex": "^no"})),
            filtered("pre_response", json!({"regex": "boss"})),
            filtered("message", json!({"roles": ["assistant"], "regex": "boss"})),
            filtered("message", json!({"roles": ["user"], "if_expr": "content == 'go on'"})),
            filtered("message", json!({"roles": ["reasoning"]})),
        ]),
    );
    let service = world.service();
    assert!(service.status().problems.is_empty(), "{:?}", service.status().problems);
    service.queue_message(Role::User, "go on");
    service.send().await.unwrap();
    assert_eq!(service.close(Duration::from_secs(5)).await, 0);
    let mut ran: Vec<String> = world.memory.records().iter().map(|row| row.label.to_string()).collect();
    ran.sort();
    let want = [
        r#"message {"roles":["assistant"],"regex":"boss"}"#,
        r#"message {"roles":["user"],"if_expr":"content == 'go on'"}"#,
        r#"post_tool_use {"regex":"secret"}"#,
        r#"pre_response {"regex":"boss"}"#,
        r#"pre_tool_use {"tools":["echo"],"regex":"secr.t"}"#,
        r#"user_prompt_submit {"regex":"^go"}"#,
    ];
    let mut want = want.map(str::to_owned);
    want.sort();
    assert_eq!(ran, want);
}

#[tokio::test]
async fn a_filter_that_means_nothing_is_refused() {
    let check = |event: &str, name: &str, filter: Value, want: &str| {
        let mut hook = hook(event, json!({}));
        hook[name] = filter;
        let service = World::new(json!([{"text": "x"}]), json!([hook])).service();
        let problems: Vec<String> = service.status().problems.iter().map(ToString::to_string).collect();
        assert!(problems.len() == 1 && problems[0].contains(want), "{problems:?}");
    };
    check("stop", "tools", json!(["x"]), "`tools` is for tools, and `stop` has none");
    check("pre_tool_use", "roles", json!(["user"]), "`roles` is for messages, and `pre_tool_use` has none");
    check("session_start", "regex", json!("x"), "`regex` is for texts, and `session_start` has none");
    check("message", "roles", json!(["usr"]), "unknown role `usr`");
    check("chunk", "regex", json!("x"), "a chunk is too small for a handler");
}

#[tokio::test]
async fn a_notice_that_says_block_or_fails_withholds_as_it_is_written() {
    let outcome = async |handler: Value, fields: Value| {
        let mut notice = hook("pre_response", handler);
        notice.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let service = World::new(json!([{"text": "answer"}]), json!([notice])).service();
        service.queue_message(Role::User, "q");
        match service.send().await.unwrap() {
            Outcome::Blocked { .. } => "withheld",
            Outcome::Answered(_) => "answered",
            Outcome::Interrupted { .. } => "interrupted",
        }
    };
    let (block, fault) = (json!({"decision": "block", "reason": "r"}), json!({"decision": "alow"}));
    for (handler, fields, want) in [
        (&block, json!({}), "answered"),
        (&block, json!({"on_timeout": "block"}), "withheld"),
        (&block, json!({"on_error": "block"}), "withheld"),
        (&block, json!({"on_timeout": "block", "on_error": "allow"}), "answered"),
        (&fault, json!({}), "answered"),
        (&fault, json!({"on_error": "block"}), "withheld"),
        (&fault, json!({"on_timeout": "block"}), "withheld"),
        (&fault, json!({"on_timeout": "block", "on_error": "allow"}), "answered"),
        (&fault, json!({"on_timeout": "allow", "on_error": "block"}), "withheld"),
    ] {
        assert_eq!(outcome(handler.clone(), fields.clone()).await, want, "{handler} {fields}");
    }
}

#[tokio::test]
async fn an_answer_that_is_asked_for_once_more_carries_its_notice_too() {
    let hooks = json!([
        {"target": "chat", "roles": ["assistant"], "maxTriggers": 1, "actions": [{"type": "queue-resend"}]},
        hook("pre_response", json!({"add": "\nNOTICE"}))
    ]);
    let service = World::new(json!([{"text": "first"}, {"text": "second"}]), hooks).service();
    service.queue_message(Role::User, "q");
    service.send().await.unwrap();
    let answers: Vec<String> = service
        .history()
        .iter()
        .filter(|message| message.role == Role::Assistant)
        .map(|message| message.content.clone())
        .collect();
    assert_eq!(answers, ["first\nNOTICE", "second\nNOTICE"]);
}

#[tokio::test]
async fn a_gate_on_prompts_is_asked_before_anybody_sees_an_added_message() {
    let hooks = json!([
        {"target": "chat", "label": "log", "actions": [{"type": "log"}]},
        hook("user_prompt_submit", json!({"decision": "block", "reason": "no"})),
        hook("message", json!({}))
    ]);
    let mut world = World::new(json!([{"text": "x"}]), hooks);
    let service = world.service();
    service.add_message(Role::User, "my secret");
    service.add_message(Role::Assistant, "a reply");
    assert!(service.history().is_empty() && service.queue().len() == 2);
    assert!(matches!(service.send().await.unwrap(), Outcome::Blocked { .. }));
    service.close(Duration::from_secs(5)).await;
    assert_eq!(world.rows(), [("user_prompt_submit".to_owned(), Decision::Block)]);
}

#[tokio::test]
async fn a_gate_does_not_open_after_so_many_blocks() {
    let hooks =
        json!([{"target": "tool", "event": "before", "maxTriggers": 1, "actions": [{"type": "block"}]}]);
    let service = World::new(json!([{"text": "x"}]), hooks).service();
    let problems: Vec<String> = service.status().problems.iter().map(ToString::to_string).collect();
    assert!(
        problems[0].contains("`maxTriggers`") && problems[0].contains("would stop doing so"),
        "{problems:?}"
    );
}
