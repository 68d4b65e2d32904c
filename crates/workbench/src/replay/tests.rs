//! Histories through hooks, from the files to the report.

use super::dry::dry;
use super::find;
use super::format::Format;
use super::judge::Rules;
use super::report::{Report, Side};
use super::run::{self, Options};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerType, ScriptText};
use hookgate_core::hook::Source;
use hookgate_core::word::Word;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::{Loaded, OnInvalid};
use hookgate_handlers::workshop::Workshop;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;

/// In the place of scripts: answers with the JSON that stands where the script would.
#[derive(Debug)]
struct Says(Value);

impl Handler for Says {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let text = |name: &str| self.0.get(name).and_then(Value::as_str).map(str::to_owned);
        let answer = Answer {
            decision: text("decision"),
            reason: text("reason").map(|reason| reason.replace("EVENT", call.json)),
            additions: text("append").into_iter().map(|text| (None, text)).collect(),
            ..Answer::default()
        };
        Box::pin(async move {
            match text("fails") {
                Some(why) => Err(Fault::failed("it fails", why)),
                None => Ok(answer),
            }
        })
    }
}

fn rules(hooks: &Value) -> Rules {
    let read = define::read("h.json", &hooks.to_string(), Source::Operator, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let workshop = dry(Workshop::empty()).with(HandlerType::Script, |spec, _| match &spec.kind {
        hookgate_core::handler::HandlerKind::Script { text: ScriptText::Inline(text), .. } => {
            Ok(Arc::new(Says(serde_json::from_str(text).unwrap())) as Arc<dyn Handler>)
        }
        _ => Err("only texts".into()),
    });
    let loaded = workshop.equip(Loaded { hooks: read.hooks, ..Loaded::default() });
    assert!(loaded.problems.is_empty(), "{:?}", loaded.problems);
    Rules::new(loaded, OnInvalid::Refuse, Arc::new(TokioTimer::new())).unwrap()
}

fn script(says: &Value) -> Value {
    json!({"type": "script", "source": says.to_string()})
}

fn corpus(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/transcripts").join(file)
}

fn replay(paths: &[PathBuf], sets: &[&Value], threads: usize) -> Report {
    let rules: Vec<Rules> = sets.iter().map(|hooks| rules(hooks)).collect();
    let files = find::find(paths).unwrap();
    run::run(&files, &rules, &Options { threads, ..Options::default() }, &|_| {}).unwrap()
}

/// `what hook line event tool|text`, one a finding.
fn shown(report: &Report) -> Vec<String> {
    let one = |finding: &super::report::Finding| {
        let side = if finding.side == Side::Second { "against " } else { "" };
        let tool = finding.tool.as_ref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let (what, hook, line, event) = (finding.what.as_str(), &finding.hook, finding.line, finding.event);
        format!("{side}{what} {hook} {line} {event}{tool}: {}", finding.text)
    };
    report.findings.iter().map(one).collect()
}

#[track_caller]
fn check(file: &str, sets: &[&Value], want: &[&str]) -> Report {
    let report = replay(&[corpus(file)], sets, 1);
    let got = shown(&report);
    assert_eq!(got, want, "\n{}\n", got.join("\n"));
    report
}

const SESSION: &str = "claude-code/session.jsonl";

#[test]
fn every_point_is_reached_in_its_order() {
    let points = [
        "session_start",
        "user_prompt_submit",
        "message",
        "pre_tool_use",
        "post_tool_use",
        "tool_error",
        "pre_response",
        "stop",
        "session_end",
        "subagent_start",
        "subagent_stop",
    ];
    let hook = |point: &&str| json!({"id": point, "event": point, "handler": {"type": "http", "url": "https://h.example/x"}});
    let hooks: Vec<Value> = points.iter().map(hook).collect();
    let report = replay(&[corpus(SESSION)], &[&json!(hooks)], 1);
    let got: Vec<String> =
        report.findings.iter().map(|finding| format!("{} {}", finding.line, finding.event)).collect();
    assert!(report.findings.iter().all(|finding| finding.what.as_str() == "ask"));
    let want = [
        "4 session_start",
        "4 user_prompt_submit",
        "4 message",
        "5 message",
        "5 message",
        "7 pre_tool_use",
        "8 post_tool_use",
        "8 message",
        "9 pre_tool_use",
        "10 pre_tool_use",
        "11 tool_error",
        "11 message",
        "12 post_tool_use",
        "12 message",
        "14 pre_tool_use",
        "14 subagent_start",
        // the sub-agent: no prompt, no turn of its own
        "15 message",
        "16 pre_tool_use",
        "17 post_tool_use",
        "17 message",
        "19 post_tool_use",
        "19 message",
        "21 message",
        "21 pre_response",
        "21 stop",
        "23 user_prompt_submit",
        "23 message",
        "24 pre_tool_use",
        "25 post_tool_use",
        "25 message",
        // its end shows with the file's
        "18 message",
        "27 subagent_stop",
        "27 message",
        "27 pre_response",
        "27 stop",
        "27 session_end",
    ];
    assert_eq!(got, want, "\n{}\n", got.join("\n"));
    assert_eq!((report.sessions, report.files, report.damaged), (1, 1, 1));
    assert_eq!(report.damage[0].line, 13);
}

#[test]
fn what_hooks_want_is_noted() {
    let hooks = json!([
        {"id": "gate", "event": "pre_tool_use", "matcher": "exec", "if_expr": "toolInput.command.contains('rm -rf')",
         "handler": script(&json!({"decision": "block", "reason": "no"}))},
        {"id": "by-their-name", "event": "pre_tool_use", "matcher": "Grep", "handler": script(&json!({"fails": "boom"}))},
        {"id": "notice", "event": "pre_response", "handler": script(&json!({"append": "-- legal"}))},
        {"id": "objects", "event": "tool_error", "handler": script(&json!({"decision": "block", "reason": "mend it"}))},
        {"target": "stream", "label": "hide", "chunks": ["content"], "regex": "there are no", "actions": [{"type": "redact", "with": "*"}]},
        {"target": "stream", "label": "ends", "regex": "gone", "actions": [{"type": "interrupt"}]},
        {"target": "chat", "label": "again", "roles": ["assistant"], "regex": "Pushed", "maxTriggers": 1,
         "actions": [{"type": "queue-message", "role": "user", "message": "sure?"}, {"type": "queue-resend"}]},
        {"target": "tool", "label": "git", "event": "before", "tools": ["mcp__git__push"], "actions": [{"type": "block", "message": "not today"}]},
        {"id": "silent", "event": "pre_tool_use", "matcher": "write_file", "handler": script(&json!({"decision": "block"}))}
    ]);
    let report = check(
        SESSION,
        &[&hooks],
        &[
            "block gate 7 pre_tool_use exec: blocked by hook gate: no",
            "object objects 11 tool_error exec: mend it",
            "block by-their-name 16 pre_tool_use search: blocked because hook by-their-name failed: it fails",
            "fault by-their-name 16 pre_tool_use search: it fails",
            "redact hide 21 chunk: *",
            "interrupt ends 21 chunk: ",
            "append notice 21 pre_response: -- legal",
            "block git 24 pre_tool_use mcp: not today",
            "queue again 27 message: sure?",
            "resend again 27 message: ",
            "append notice 27 pre_response: -- legal",
        ],
    );
    assert_eq!(report.silent.iter().map(|silent| silent.hook.as_str()).collect::<Vec<_>>(), ["silent"]);
    assert_eq!(report.rows[0].what.as_str(), "block", "the gravest first");
    assert_eq!(
        report.rows.iter().find(|row| row.hook == "notice").map(|row| (row.times, row.sessions)),
        Some((2, 1))
    );
    assert_eq!(report.findings[0].excerpt, "rm -rf build");
}

#[test]
fn two_sets_are_compared_by_what_they_do() {
    let hook = |id: &str, condition: &str, reason: &str| {
        json!({"id": id, "event": "pre_tool_use", "matcher": "exec", "if_expr": condition,
               "handler": script(&json!({"decision": "block", "reason": reason}))})
    };
    let one = json!([hook("a", "toolInput.command.contains('rm')", "no")]);
    let other =
        json!([hook("b", "toolInput.command.contains('rm') || toolInput.command.contains('make')", "never")]);
    let report =
        check(SESSION, &[&one, &other], &["against block b 10 pre_tool_use exec: blocked by hook b: never"]);
    let numbers: Vec<_> = report
        .rows
        .iter()
        .map(|row| (row.hook.as_str(), row.times, row.times_against, row.only_hooks, row.only_against))
        .collect();
    assert_eq!(numbers, [("b", 0, Some(2), Some(0), Some(1)), ("a", 1, Some(0), Some(0), Some(0))]);
    let same = replay(&[corpus("")], &[&one, &one], 1);
    assert!(same.findings.is_empty());
    let report = replay(&[corpus("")], &[&one, &json!([])], 1);
    assert!(report.findings.iter().all(|finding| finding.side == Side::First) && report.findings.len() == 2);
}

#[test]
fn the_report_does_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(corpus(SESSION)).unwrap();
    for n in 0..40 {
        // the same session many times: their events must not be taken for each other's
        std::fs::write(dir.path().join(format!("{n:02}.jsonl")), &text).unwrap();
    }
    let hooks = json!([
        {"id": "notice", "event": "pre_response", "handler": script(&json!({"append": "-- legal"}))},
        {"target": "chat", "label": "log", "actions": [{"type": "log"}]}
    ]);
    let one = replay(&[dir.path().to_owned()], &[&hooks], 1);
    let many = replay(&[dir.path().to_owned()], &[&hooks], 8);
    assert_eq!(one, many);
    assert_eq!((one.sessions, one.rows[0].times, one.rows[0].sessions), (40, 80, 40));
}

#[test]
fn files_that_are_no_history_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let good = r#"{"messages":[{"role":"user","content":"hi"}]}"#;
    let long = format!("{}\n{good}", "{\"x\": 1}\n".repeat(60));
    for (name, bytes) in [
        ("binary.jsonl", &b"\x00\xff\x7fELF\n\x00"[..]),
        ("empty.jsonl", b""),
        ("blank.jsonl", b"\n \n"),
        ("good.jsonl", good.as_bytes()),
        ("late.jsonl", long.as_bytes()),
        ("other.json", b"{\n\"a\": 1\n}"),
        ("text.log", b"hello\n"),
        ("torn.json", b"{\"messages\": [\n{\"role\": \"user\", \"content\": \"hi\"}\n"),
    ] {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let report = replay(&[dir.path().to_owned()], &[&json!([])], 2);
    let unread: Vec<String> = report
        .unread
        .iter()
        .map(|unread| {
            format!("{}: {}", PathBuf::from(&unread.file).file_name().unwrap().display(), unread.why)
        })
        .collect();
    let none = "it is no history that is known: none of claude-code, codex, chat-log, messages";
    assert_eq!(
        unread,
        [
            format!("binary.jsonl: {none}"),
            "blank.jsonl: it is empty".into(),
            "empty.jsonl: it is empty".into(),
            format!("late.jsonl: {none}"),
            format!("other.json: {none} (it holds no list of messages)"),
            format!("text.log: {none}"),
        ]
    );
    // what can be read of a torn list is read
    assert_eq!((report.files, report.sessions, report.damaged), (2, 2, 1));
    let files = find::find(&[dir.path().join("late.jsonl")]).unwrap();
    let options = Options { format: Some(Format::Messages), threads: 1, ..Options::default() };
    let report = run::run(&files, &[rules(&json!([]))], &options, &|_| {}).unwrap();
    assert_eq!((report.sessions, report.damaged), (2, 60));
}
