//! Whole tests, played to a set with one hook of each kind.

use super::*;
use crate::desk;
use crate::test::file::{self, Names};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault as HandlerFault, Handler, HandlerType};
use hookgate_core::hook::Source;
use hookgate_handlers::folder::{Loaded, OnInvalid};
use hookgate_handlers::workshop::Workshop;

const HOOKS: &str = r#"[
    {"id": "guard", "event": "pre_tool_use", "matcher": "exec", "if_expr": "has(toolInput.command)",
     "handler": {"type": "script", "source": "no rm"}},
    {"id": "ask", "event": "pre_tool_use", "matcher": "deploy", "handler": {"type": "http", "url": "https://a.example"}},
    {"id": "told", "event": "stop", "handler": {"type": "script", "source": "no"}},
    {"id": "open", "event": "user_prompt_submit", "on_error": "allow", "handler": {"type": "command", "argv": ["x"]}},
    {"id": "notice", "event": "pre_response", "mode": "send", "on_timeout": "block",
     "handler": {"type": "command", "argv": ["x"]}},
    {"label": "shrug", "target": "chat", "roles": ["assistant"], "regex": "I don't know", "maxTriggers": 1,
     "actions": [{"type": "queue-message", "role": "user", "message": "Try again."}, {"type": "interrupt", "resend": true}]},
    {"label": "keys", "target": "stream", "chunks": ["content"], "regex": "key-[0-9]+", "actions": [{"type": "redact", "with": "[key]"}]},
    {"label": "stop", "target": "stream", "regex": "secret", "actions": [{"type": "interrupt"}]},
    {"label": "no-push", "target": "tool", "event": "before", "regex": "git push", "actions": [{"type": "block", "message": "pushing is for people"}]},
    {"label": "failed", "target": "tool", "event": "error", "actions": [{"type": "warn", "message": "{{name}}: {{error}}"}]}
]"#;

/// Says no to what the script is called, or to a command with `rm`.
#[derive(Debug)]
struct Script(bool);

impl Handler for Script {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, HandlerFault>> {
        let no = self.0 || call.json.contains("rm -r");
        let answer = Answer {
            decision: Some(if no { "block" } else { "allow" }.into()),
            reason: no.then(|| "not that".into()),
            ..Answer::default()
        };
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn stage() -> Arc<Stage> {
    let read = define::read("h.json", HOOKS, Source::Operator, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let workshop = Workshop::empty().with(HandlerType::Script, |spec, _| {
        Ok(Arc::new(Script(format!("{:?}", spec.kind).contains("\"no\""))))
    });
    let loaded = Loaded { hooks: read.hooks, ..Loaded::default() };
    let loaded = desk::stand_in(desk::late(&workshop).equip(loaded));
    let (set, problems) = loaded.into_set(OnInvalid::Refuse);
    Arc::new(Stage::new(set.unwrap_or_else(|| panic!("{problems:?}")), Duration::from_secs(5)))
}

async fn report(tests: &str, options: Options) -> Report {
    let stage = stage();
    let file = file::read("a.test.json", tests, &Names::of(&stage.set())).unwrap();
    let file = TestFile { name: "a.test.json".into(), tests: file.tests, stage: stage.clone() };
    run(&stage.set(), vec![file], &options).await
}

fn told(fault: &Fault) -> String {
    match fault {
        Fault::Differs { step, difference } => {
            let step = step.map(|step| format!("{step} ")).unwrap_or_default();
            format!("{step}{} {} {}", difference.field, difference.expected, difference.found)
        }
        Fault::ExpectsNothing { .. } => "expects nothing".into(),
        Fault::NoAnswer { hook, kind } => format!("no answer of {hook} {kind}"),
        Fault::BrokeOff => "broke off".into(),
    }
}

/// A test without its name; what is wrong with it, a line each.
async fn check(test: &str, want: &[&str]) {
    let tests = format!(r#"[{{"name": "t", {test}}}]"#);
    let report = report(&tests, Options::default()).await;
    let got: Vec<String> = report.files[0].tests[0].faults.iter().map(told).collect();
    assert_eq!(got, want, "{test}");
}

const RM: &str = r#""event": {"tool": "exec", "input": {"command": "rm -r x"}}"#;

#[tokio::test]
async fn gates_are_compared() {
    let with = |expect: &str| format!(r#"{RM}, "expect": {expect}"#);
    let whole = r#"{"decision": "block", "hook": "guard", "reason": "not that", "cause": "decision", "hooks": ["guard"]}"#;
    check(&with(whole), &[]).await;
    check(&with(r#"{"reason": {"contains": "that"}}"#), &[]).await;
    check(&with(r#"{"reason": {"matches": "^not t"}}"#), &[]).await;
    check(&with(r#"{"decision": "allow"}"#), &[r#"decision "allow" "block""#]).await;
    check(&with(r#"{"reason": "that"}"#), &[r#"reason "that" "not that""#]).await;
    check(&with(r#"{"hooks": []}"#), &[r#"hooks [] ["guard"]"#]).await;
    check(&with("{}"), &["expects nothing"]).await;
    let ls = r#""event": {"event": "pre_tool_use", "toolName": "exec", "toolInput": {"command": "ls"}}"#;
    check(
        &format!(r#"{ls}, "expect": {{"decision": "block", "hook": "guard", "reason": "x"}}"#),
        &[r#"decision "block" "allow""#, r#"hook "guard" null"#, r#"reason "x" null"#],
    )
    .await;
}

#[tokio::test]
async fn json_hooks_stop_tools_before_the_gate_is_asked() {
    let event = r#""event": {"tool": "exec", "input": {"command": "git push"}, "output": "done"}"#;
    let expect = r#""expect": {"decision": "block", "hook": "no-push", "reason": "pushing is for people", "hooks": ["no-push"],
        "effects": [{"type": "block", "message": "pushing is for people"}]}"#;
    check(&format!("{event}, {expect}"), &[]).await;
    let error = r#""event": {"tool": "ls", "error": "no such file"}, "expect": {"effects": [{"type": "warn", "message": "ls: no such file"}]}"#;
    check(error, &[]).await;
    let differs = r#""event": {"tool": "ls", "error": "bad"}, "expect": {"effects": [{"type": "log"}]}"#;
    check(differs, &[r#"effects [{"type":"log"}] [{"type":"warn","message":"ls: bad","hook":"failed"}]"#])
        .await;
}

#[tokio::test]
async fn answers_come_in_the_place_of_handlers() {
    let deploy = |answer: &str, expect: &str| {
        format!(r#""event": {{"tool": "deploy"}}, "answers": {{"ask": {answer}}}, "expect": {expect}"#)
    };
    check(&deploy(r#""allow""#, r#"{"decision": "allow", "hooks": ["ask"]}"#), &[]).await;
    check(&deploy(r#""timeout""#, r#"{"decision": "block", "cause": "timeout"}"#), &[]).await;
    check(&deploy(r#"{"error": "down"}"#, r#"{"decision": "block", "cause": "error"}"#), &[]).await;
    check(&deploy(r#"{"decision": "block", "reason": "no"}"#, r#"{"hook": "ask", "reason": "no"}"#), &[])
        .await;
    // anyone may block, only hooks of the program may change
    let change = r#"{"decision": "allow", "updatedInput": {"to": "x"}}"#;
    check(&deploy(change, r#"{"updatedInput": null, "warnings": ["mutation_stripped"]}"#), &[]).await;
    let twice = r#""session": [{"tool": "deploy", "expect": {"decision": "block"}}, {"tool": "deploy", "expect": {"decision": "block"}}],
        "answers": {"ask": ["block", "allow"]}"#;
    check(twice, &[r#"1 decision "block" "allow""#]).await;
    let script = format!(r#"{RM}, "answers": {{"guard": "allow"}}, "expect": {{"decision": "allow"}}"#);
    check(&script, &[]).await;
    let none = r#""event": {"tool": "deploy"}, "expect": {"decision": "block"}"#;
    check(none, &["no answer of ask http"]).await;
}

#[tokio::test]
async fn a_handler_that_cannot_run_is_a_fault_of_a_live_test() {
    let live =
        r#""event": {"tool": "deploy"}, "live": true, "expect": {"decision": "block", "cause": "error"}"#;
    check(live, &[]).await;
    let opens = r#""event": {"prompt": "hi"}, "live": true,
        "expect": {"decision": "allow", "hooks": ["open"], "warnings": ["error_allowed"]}"#;
    check(opens, &[]).await;
}

#[tokio::test]
async fn answers_are_streamed() {
    let quiet = r#""answers": {"notice": {"output": "N."}}"#;
    let with = |event: &str, expect: &str| format!(r#""event": {event}, {quiet}, "expect": {expect}"#);
    check(
        &with(
            r#"{"answer": ["it is key", "-1", "2 ok"]}"#,
            r#"{"text": "it is [key] ok", "decision": "allow"}"#,
        ),
        &[],
    )
    .await;
    check(&with(r#"{"answer": "ok"}"#, r#"{"send": "N.", "append": [], "hooks": ["notice"]}"#), &[]).await;
    check(
        &with(
            r#"{"answer": ["a sec", "ret"], "reasoning": "hm"}"#,
            r#"{"decision": "block", "hook": "stop", "text": "", "hooks": ["stop"]}"#,
        ),
        &[],
    )
    .await;
    check(&with(r#"{"answer": "ok", "reasoning": ["h", "m"]}"#, r#"{"reasoning": "hm", "text": "ok"}"#), &[])
        .await;
    let withheld = r#""event": {"answer": "ok"}, "answers": {"notice": "timeout"},
        "expect": {"decision": "block", "hook": "notice", "cause": "timeout", "text": ""}"#;
    check(withheld, &[]).await;
    let pieces = r#""session": [{"chunk": "content", "text": "a sec"}, {"chunk": "content", "text": "ret", "expect": {"hooks": ["stop"]}}]"#;
    check(pieces, &[]).await;
    let two = r#""session": [{"chunk": "content", "text": "a key"}, {"chunk": "content", "text": "-1"},
            {"chunk": "finish", "expect": {"text": "a [key]"}}, {"chunk": "content", "text": "secret"},
            {"chunk": "content", "text": "b"}],
        "expect": {"text": "a [key]b"}"#;
    check(two, &[]).await;
}

#[tokio::test]
async fn hooks_on_messages_see_the_model_s_own_words() {
    let shrug = r#""event": {"answer": "I don't know key-1"}, "expect": {"hook": "shrug", "text": ""}"#;
    check(shrug, &[]).await;
}

#[tokio::test]
async fn a_session_remembers() {
    let session = r#""session": [
            {"prompt": "Where?", "expect": {"decision": "allow"}},
            {"answer": "I don't know.", "expect": {"decision": "block", "hook": "shrug",
                "effects": [{"type": "queue-message", "role": "user"}, {"type": "interrupt", "resend": true, "hook": "shrug"}]}},
            {"answer": "I don't know.", "expect": {"decision": "allow", "hooks": ["notice"]}}
        ], "answers": {"open": "allow", "notice": "allow"}, "expect": {"hooks": ["notice", "open", "shrug"]}"#;
    check(session, &[]).await;
}

#[tokio::test]
async fn a_watching_hook_s_no_is_a_decision() {
    let stop = r#""event": {"event": "stop"}, "expect": {"decision": "block", "hook": "told", "reason": "not that", "warnings": []}"#;
    check(stop, &[]).await;
}

#[tokio::test]
async fn coverage_tells_what_nobody_touched() {
    let tests = r#"[{"name": "t", "event": {"tool": "exec", "input": {"command": "ls"}}, "expect": {"decision": "allow"}},
        {"name": "u", "event": {"answer": ["secr", "et"]}, "expect": {"decision": "block"}}]"#;
    let report = report(tests, Options::default()).await;
    let line = |name: &str| {
        let hook = report.coverage.hooks().iter().find(|hook| hook.hook == name).unwrap();
        let filters = hook.filters.iter().map(|filter| {
            format!(" {} {}/{}", filter.field, u8::from(filter.said_yes), u8::from(filter.said_no))
        });
        format!("{}{}", u8::from(hook.fired), filters.collect::<String>())
    };
    assert_eq!(line("guard"), "1 matcher 1/0 if_expr 1/0");
    assert_eq!(line("ask"), "0 matcher 0/1");
    assert_eq!(line("stop"), "1 regex 1/0", "what comes before a match is no no");
    assert_eq!(line("keys"), "0 chunks 1/0 regex 0/1");
    assert_eq!(line("no-push"), "0 regex 0/1");
    assert_eq!(line("told"), "0");
}

#[tokio::test]
async fn a_filter_takes_tests_by_name() {
    let tests = r#"[{"name": "one", "event": {"event": "stop"}, "expect": {"decision": "block"}},
        {"name": "two", "event": {"event": "stop"}, "expect": {"decision": "allow"}}]"#;
    let n_tests = async |part: &str| {
        let options = Options { filter: Some(part.into()), ..Options::default() };
        let report = report(tests, options).await;
        (report.n_tests(), report.n_failed(), report.files.len())
    };
    assert_eq!(n_tests("tw").await, (1, 1, 1));
    assert_eq!(n_tests("a.test").await, (2, 1, 1));
    assert_eq!(n_tests("x").await, (0, 0, 0));
}
