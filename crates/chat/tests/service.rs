//! The chat service as an application uses it.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hookgate_chat::{
    BuildError, ChatBuilder, ChatEvent, ChatService, MAX_TOOL_CALL_ROUNDS_VARIABLE, Origin, Outcome, Reload,
    Role, SendError, Tool, ToolError,
};
use hookgate_core::action::{Action, ActionKinds};
use hookgate_core::define::Fields;
use hookgate_core::dispatch::Firing;
use hookgate_core::effect::{Effect, EffectKind, Level};
use hookgate_handlers::folder::OnInvalid;
use hookgate_llm::{Scripted, ToolSpec};
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Notify;

fn script(turns: Value) -> Scripted {
    Scripted::parse(&json!({"order": "sequence", "turns": turns}).to_string()).unwrap()
}

fn hooks(text: &Value) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("h.json"), text.to_string()).unwrap();
    dir
}

fn plain(model: Scripted) -> ChatBuilder {
    ChatService::builder(model).environment(|_| None)
}

/// `role/origin: content` for each message.
fn history(service: &ChatService) -> Vec<String> {
    service.history().iter().map(|m| format!("{}/{}: {}", m.role, m.origin, m.content)).collect()
}

/// A tool that says when it began and ends when it is told to.
struct Gated {
    began: Arc<Notify>,
    go: Arc<Notify>,
}

impl Tool for Gated {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: "wait".into(), ..ToolSpec::default() }
    }

    fn call(&self, _args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        async {
            self.began.notify_one();
            self.go.notified().await;
            Ok("waited".into())
        }
        .boxed()
    }
}

fn gated(model: Scripted) -> (ChatService, Arc<Notify>, Arc<Notify>) {
    let (began, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let service = plain(model).tool(Gated { began: began.clone(), go: go.clone() }).build().unwrap();
    (service, began, go)
}

fn calls_wait() -> Value {
    json!({"tool_calls": [{"tool": "wait", "args": {}}, {"tool": "wait", "args": {"n": 2}}]})
}

#[tokio::test]
async fn a_message_queued_while_a_tool_runs_joins_the_next_request() {
    let (service, began, go) = gated(script(json!([calls_wait(), {"text": "done"}])));
    service.add_message(Role::User, "q");
    let sending = tokio::spawn({
        let service = service.clone();
        async move { service.send().await.unwrap() }
    });
    began.notified().await;
    service.queue_message(Role::User, "one more thing");
    go.notify_one();
    began.notified().await;
    go.notify_one();
    assert_eq!(sending.await.unwrap().text(), "done");
    assert_eq!(
        history(&service),
        [
            "user/user: q",
            "assistant/model: ",
            "tool/tool: waited",
            "tool/tool: waited",
            "user/user: one more thing",
            "assistant/model: done"
        ]
    );
}

#[tokio::test]
async fn a_send_that_is_dropped_while_a_tool_runs_leaves_a_history_that_can_be_sent() {
    let (service, began, _go) = gated(script(json!([calls_wait(), {"text": "later"}])));
    service.add_message(Role::User, "q");
    {
        let sending = service.send();
        tokio::pin!(sending);
        tokio::select! {
            _ = &mut sending => panic!("the tool never ends"),
            () = began.notified() => {}
        }
    }
    assert_eq!(
        history(&service),
        [
            "user/user: q",
            "assistant/model: ",
            "tool/system: not run: the turn was cancelled",
            "tool/system: not run: the turn was cancelled"
        ]
    );
    assert_eq!(service.send().await.unwrap().text(), "later");
}

#[tokio::test]
async fn a_send_that_is_dropped_while_the_answer_arrives_leaves_nothing_of_it() {
    let model = script(json!([{"text": "a very slow answer", "delay_ms": 20}, {"text": "quick"}]));
    let service = plain(model).build().unwrap();
    service.add_message(Role::User, "q");
    assert!(tokio::time::timeout(Duration::from_millis(30), service.send()).await.is_err());
    assert_eq!(history(&service), ["user/user: q"]);
    assert_eq!(service.send().await.unwrap().text(), "quick");
}

#[tokio::test]
async fn sends_wait_for_each_other() {
    let service =
        plain(script(json!([{"text": "one two three", "delay_ms": 3}, {"text": "second"}]))).build().unwrap();
    service.add_message(Role::User, "q");
    let (first, second) = tokio::join!(service.send(), service.send());
    assert_eq!((first.unwrap().text(), second.unwrap().text()), ("one two three", "second"));
    assert_eq!(
        history(&service),
        ["user/user: q", "assistant/model: one two three", "assistant/model: second"]
    );
}

#[tokio::test]
async fn tool_rounds_are_limited_and_every_call_has_a_result() {
    let asks = json!({"tool_calls": [{"tool": "echo", "args": {}}]});
    let service =
        plain(script(json!([asks, asks, asks]))).tool(Echo).max_tool_call_rounds(2).build().unwrap();
    service.add_message(Role::User, "q");
    let error = service.send().await.unwrap_err();
    assert!(matches!(error, SendError::ToolRoundLimit { max: 2 }), "{error}");
    let last = service.history().pop().unwrap();
    assert_eq!(last.content, "not run: the limit of 2 rounds of tool calls is reached");
    assert_eq!(last.origin, Origin::System);
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

#[tokio::test]
async fn a_call_that_ran_into_the_length_limit_is_not_run() {
    let cut = json!({"tool_calls": [{"tool": "echo", "args": {"a": 1}}], "finish": "length"});
    let service = plain(script(json!([cut]))).tool(Echo).build().unwrap();
    service.add_message(Role::User, "q");
    service.send().await.unwrap();
    assert_eq!(service.history().pop().unwrap().content, "not run: the answer ended with `length`");
}

#[tokio::test]
async fn an_unknown_tool_is_told_to_the_model_and_the_loop_goes_on() {
    let chunks = json!([{"type": "tool_call_delta", "index": 0, "toolCallId": "c", "name": "nope", "text": "{}"},
                        {"type": "finish", "finishReason": "tool_calls"}]);
    let service = plain(script(json!([{"chunks": chunks}, {"text": "ok"}]))).tool(Echo).build().unwrap();
    service.add_message(Role::User, "q");
    assert_eq!(service.send().await.unwrap().text(), "ok");
    assert_eq!(service.history()[2].content, "error: unknown tool `nope`; there are echo");
}

#[tokio::test]
async fn a_model_that_fails_leaves_the_history_as_it_was() {
    let service =
        plain(script(json!([{"text": "a b c d", "error": "broken", "after": 2}, {"text": "fine"}])));
    let service = service.build().unwrap();
    service.add_message(Role::User, "q");
    let error = service.send().await.unwrap_err();
    assert!(error.to_string().contains("broken"), "{error}");
    assert_eq!(history(&service), ["user/user: q"]);
    assert_eq!(service.send().await.unwrap().text(), "fine");
}

#[tokio::test]
async fn an_interrupt_after_a_tool_keeps_what_was_done() {
    let dir = hooks(&json!({"target": "tool", "actions": [{"type": "interrupt"}]}));
    let asks =
        json!({"tool_calls": [{"tool": "echo", "args": {"a": 1}}, {"tool": "echo", "args": {"a": 2}}]});
    let service = plain(script(json!([asks]))).tool(Echo).hooks_dir(dir.path()).build().unwrap();
    service.add_message(Role::User, "q");
    assert!(matches!(service.send().await.unwrap(), Outcome::Interrupted { .. }));
    assert_eq!(
        history(&service),
        [
            "user/user: q",
            "assistant/model: ",
            "tool/tool: {\"a\":1}",
            "tool/system: not run: a hook interrupted the turn"
        ]
    );
}

#[tokio::test]
async fn an_interrupt_before_a_tool_drops_the_response() {
    let dir = hooks(
        &json!({"target": "tool", "event": "before", "regex": "\"a\":2", "actions": [{"type": "interrupt"}]}),
    );
    let asks = json!({"text": "x", "tool_calls": [{"tool": "echo", "args": {"a": 1}}, {"tool": "echo", "args": {"a": 2}}]});
    let service = plain(script(json!([asks]))).tool(Echo).hooks_dir(dir.path()).build().unwrap();
    service.add_message(Role::User, "q");
    assert!(matches!(service.send().await.unwrap(), Outcome::Interrupted { .. }));
    assert_eq!(history(&service), ["user/user: q"]);
}

#[tokio::test]
async fn a_reload_takes_effect_with_the_next_answer() {
    let interrupts = json!({"target": "stream", "regex": "b", "actions": [{"type": "interrupt"}]});
    let dir = hooks(&interrupts);
    let model = script(json!([{"text": "a b"}, {"text": "a b"}]));
    let service = plain(model).hooks_dir(dir.path()).build().unwrap();
    service.add_message(Role::User, "q");
    std::fs::write(dir.path().join("h.json"), "[]").unwrap();
    let outcome = service
        .send_with({
            let service = service.clone();
            move |event| {
                if matches!(event, ChatEvent::Chunk(_)) {
                    service.reload();
                }
            }
        })
        .await;
    assert!(matches!(outcome.unwrap(), Outcome::Interrupted { .. }));
    assert_eq!(service.send().await.unwrap().text(), "a b");
}

#[test]
fn a_broken_edit_keeps_the_last_good_hooks() {
    let dir = hooks(&json!({"target": "chat", "label": "good"}));
    let service = plain(Scripted::demo()).hooks_dir(dir.path()).build().unwrap();
    std::fs::write(dir.path().join("h.json"), "{").unwrap();
    let Reload::KeptLastGood { problems } = service.reload() else { panic!("it was broken") };
    assert!(problems[0].to_string().contains("h.json:1"), "{}", problems[0]);
    assert!(service.status().is_degraded());
    assert_eq!(service.json_hooks()[0].label, "good");
    std::fs::write(dir.path().join("h.json"), r#"{"target":"chat","label":"mended"}"#).unwrap();
    assert_eq!(service.reload(), Reload::Installed { hooks: 1 });
    assert!(!service.status().is_degraded());
    assert_eq!(service.json_hooks()[0].label, "mended");
}

#[test]
fn a_strict_service_is_not_built_with_a_bad_hook() {
    let dir = hooks(&json!([{"target": "chat"}, {"target": "chat", "roles": ["robot"]}]));
    let builder = plain(Scripted::demo()).hooks_dir(dir.path()).on_invalid(OnInvalid::Refuse);
    let Err(BuildError::Hooks(problems)) = builder.build() else { panic!("it has a bad hook") };
    assert_eq!(problems.len(), 1);
    let service = plain(Scripted::demo()).hooks_dir(dir.path()).build().unwrap();
    assert_eq!(service.json_hooks().len(), 1);
    assert!(service.status().is_degraded());
}

#[test]
fn limits_come_from_the_environment_and_are_checked() {
    let with = |value: &'static str| {
        ChatService::builder(Scripted::demo())
            .environment(move |name| (name == MAX_TOOL_CALL_ROUNDS_VARIABLE).then(|| value.into()))
            .build()
    };
    assert!(with("3").is_ok());
    let error = with("many").unwrap_err().to_string();
    assert_eq!(
        error,
        "environment variable LLM_CHAT_MAX_TOOL_CALL_ROUNDS: expected a whole number, zero or more, found `many`"
    );
}

/// An own action: shouts.
#[derive(Debug)]
struct Shout {
    word: String,
}

impl Action for Shout {
    fn run(&self, firing: &Firing<'_>, effects: &mut Vec<Effect>) {
        let text = self.word.to_uppercase();
        effects.push(firing.effect(EffectKind::Log { level: Level::Warn, text }));
    }
}

fn read_shout(fields: &Fields<'_>) -> Option<Box<dyn Action>> {
    let Some(word) = fields.text("word") else {
        fields.missing("word", "what to shout");
        return None;
    };
    Some(Box::new(Shout { word: word.to_owned() }))
}

#[tokio::test]
async fn an_application_brings_its_own_action() {
    let dir = hooks(&json!([
        {"target": "chat", "actions": [{"type": "shout", "word": "fire"}]},
        {"target": "chat", "actions": [{"type": "shout"}]},
        {"target": "chat", "actions": [{"type": "shout", "word": "x", "loud": true}]}
    ]));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let lines = seen.clone();
    let service = plain(Scripted::demo())
        .actions(ActionKinds::standard().with("shout", read_shout))
        .hooks_dir(dir.path())
        .observer(move |event| {
            if let ChatEvent::Log { text, .. } = event {
                lines.lock().unwrap().push((*text).to_owned());
            }
        })
        .build()
        .unwrap();
    let problems: Vec<String> = service.status().problems.iter().map(ToString::to_string).collect();
    assert!(
        problems[0].ends_with("hook 2, field `actions[0].word`: missing; expected what to shout"),
        "{problems:?}"
    );
    assert!(problems[1].contains("unknown field `loud`; expected one of type, word"), "{problems:?}");
    service.add_message(Role::User, "q");
    assert_eq!(*seen.lock().unwrap(), ["FIRE"]);
}

#[tokio::test]
async fn a_system_prompt_goes_in_front_and_is_no_message() {
    let service = plain(Scripted::demo()).system_prompt("Be kind.").build().unwrap();
    service.add_message(Role::User, "hello");
    service.send().await.unwrap();
    assert_eq!(service.history().len(), 2);
}
