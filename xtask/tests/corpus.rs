//! Runs the project's own corpus: no failure, and what cannot run is a known list.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use serde_json::{Value, json};
use std::path::PathBuf;
use xtask::corpus;

fn run(folder: &str) -> (corpus::Tally, String) {
    corpus::use_worker(env!("CARGO_BIN_EXE_xtask").into());
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../corpus");
    let mut report = Vec::new();
    let tally = corpus::run(&[root.join(folder)], &mut report).unwrap();
    (tally, String::from_utf8(report).unwrap())
}

fn all_pass(folder: &str) {
    let (tally, report) = run(folder);
    assert!(tally.failed == 0 && tally.not_run == 0 && tally.passed > 0, "{report}");
}

#[test]
fn json_hooks() {
    all_pass("conformance/json-hooks");
}

#[test]
fn dispatcher_vectors() {
    all_pass("conformance/dispatcher");
}

#[test]
fn script_vectors() {
    all_pass("conformance/script-sandbox");
}

#[test]
fn chat_cases() {
    all_pass("cases/chat");
}

#[test]
fn stream_cases() {
    all_pass("cases/stream");
}

#[test]
fn tool_cases() {
    all_pass("cases/tool");
}

#[test]
fn audit_cases() {
    let (tally, report) = run("cases/audit");
    // audit-02 fires one event id ten times and wants ten rows; one row for each hook and event id is what the second
    // text and the dispatcher's rule 8 say. Nothing is lost: the row of the locked time is there.
    assert!(
        report.contains("FAIL audit-02-writer-holds-the-lock: step 4: `row_count`: wanted 10, got 1"),
        "{report}"
    );
    assert!(tally.failed == 1 && tally.not_run == 0 && tally.passed == 4, "{report}");
}

#[test]
fn reload_cases() {
    all_pass("cases/reload");
}

#[test]
fn dispatcher_cases() {
    all_pass("cases/dispatcher");
}

#[test]
fn script_cases() {
    all_pass("cases/script");
}

#[test]
fn gateway_cases() {
    all_pass("cases/gateway");
}

#[test]
fn command_cases() {
    all_pass("cases/command");
}

#[test]
fn http_cases() {
    all_pass("cases/http");
}

#[test]
fn adapter_cases() {
    all_pass("cases/adapters");
}

#[test]
fn prompt_cases() {
    all_pass("cases/prompt");
}

/// A case with one hook that asks `{https:s}` or another address, and what must come of it.
fn case(id: &str, url: &str, server: &Value, config: &Value, expect: &Value) -> Value {
    let hook = json!({"id": "h", "event": "pre_tool_use", "timeout_ms": 3000, "handler": {"type": "http", "url": url}});
    let event = json!({"hookEvent": "pre_tool_use", "eventId": "e", "sessionId": "s", "toolName": "exec",
        "toolInput": {"command": "ls"}});
    json!({"case": 1, "id": id, "area": "http", "setup": {"hooks": [hook], "http": {"s": server}, "config": config},
        "steps": [{"do": "event", "event": event, "expect": expect}]})
}

#[test]
fn servers_and_resolvers_do_what_a_case_says() {
    let dir = tempfile::tempdir().unwrap();
    let allow = json!({"body": "{\"decision\":\"allow\"}"});
    let tls = |word: &str| json!({"tls": word, "body": allow["body"]});
    let fault =
        |words: &str| json!({"decision": "block", "recorded": "error", "audit_error_contains": [words]});
    let fine = json!({"decision": "allow", "requests": 1});
    let packed = json!({"body_gzip_of": {"repeat": "0", "times": 50_000_000}});
    let bytes = json!({"body": {"b64": "//57fQ=="}});
    let names = json!({"resolver_sequence": {"p.example": ["127.0.0.1", ["169.254.169.254"]]}});
    let turned = json!({"resolver_sequence": {"p.example": ["169.254.169.254", "127.0.0.1"]}});
    let none = json!({});
    let cases = [
        case("valid", "{https:s}/", &tls("valid"), &none, &fine),
        case("expired", "{https:s}/", &tls("expired"), &none, &fault("expired")),
        case("self-signed", "{https:s}/", &tls("self_signed"), &none, &fault("UnknownIssuer")),
        case("wrong-host", "{https:s}/", &tls("wrong_host"), &none, &fault("not valid for name")),
        case("bomb", "{http:s}/", &packed, &none, &fault("compressed (gzip)")),
        case("bytes", "{http:s}/", &bytes, &none, &fault("no JSON object")),
        case("first-answer", "http://p.example:{port:s}/", &allow, &names, &fine),
        case("first-answer-bad", "http://p.example:{port:s}/", &allow, &turned, &fault("metadata")),
    ];
    for case in &cases {
        std::fs::write(dir.path().join(format!("{}.json", case["id"].as_str().unwrap())), case.to_string())
            .unwrap();
    }
    let mut report = Vec::new();
    let tally = corpus::run(&[dir.path().to_owned()], &mut report).unwrap();
    let report = String::from_utf8(report).unwrap();
    assert_eq!((tally.passed, tally.failed, tally.not_run), (cases.len(), 0, 0), "{report}");
}

#[test]
fn a_vector_that_is_wrong_fails() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("vectors.jsonl");
    let line = r#"{"id":"X","hooks":[{"target":"chat","actions":[{"type":"log","message":"a"}]}],
        "session":[{"chat":{"role":"user","content":"x"}}],"expect":{"effects":[{"log":"b","level":"log"}]}}"#;
    std::fs::write(&file, line.replace('\n', "")).unwrap();
    let mut report = Vec::new();
    let tally = corpus::run(&[file], &mut report).unwrap();
    let report = String::from_utf8(report).unwrap();
    assert_eq!((tally.passed, tally.failed), (0, 1), "{report}");
    assert!(report.starts_with("FAIL X: effect 0: wanted"), "{report}");
    assert!(report.ends_with("0 passed, 1 failed, 0 not run\n"), "{report}");
}
