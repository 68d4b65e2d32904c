//! Runs the project's own corpus: no failure, and what cannot run is a known list.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

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
fn command_cases() {
    all_pass("cases/command");
}

#[test]
fn http_cases() {
    all_pass("cases/http");
}

#[test]
fn prompt_cases() {
    all_pass("cases/prompt");
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
