//! How many events a second one core plays, with pattern and condition hooks over a transcript made for it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs, reason = "a bench may stop")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::hook::Source;
use hookgate_handlers::clock::TokioTimer;
use hookgate_handlers::folder::{Loaded, OnInvalid};
use hookgate_handlers::workshop::Workshop;
use hookgate_workbench::replay::dry::dry;
use hookgate_workbench::replay::find;
use hookgate_workbench::replay::judge::Rules;
use hookgate_workbench::replay::run::{self, Options};
use serde_json::json;
use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

/// Patterns on every target, and conditions at the gate; few of them are ever met.
fn hooks() -> String {
    let mut hooks = Vec::new();
    for n in 0..20 {
        hooks.push(json!({"target": "stream", "label": format!("s{n}"), "chunks": ["content"],
            "regex": format!("secret-{n}\\b|api_key_{n}"), "actions": [{"type": "interrupt"}]}));
        hooks.push(json!({"target": "chat", "label": format!("c{n}"), "roles": ["user", "tool"],
            "regex": format!("password{n}|token-{n}\\d+"), "actions": [{"type": "warn", "message": "x"}]}));
        hooks.push(json!({"id": format!("g{n}"), "event": "pre_tool_use", "matcher": "exec|write_file",
            "if_expr": format!("has(toolInput.command) && toolInput.command.contains('rm -rf /srv/{n}')"),
            "handler": {"type": "command", "shell": "exit 2"}}));
    }
    hooks.push(json!({"target": "tool", "label": "t", "event": "after", "regex": "Permission denied",
        "actions": [{"type": "queue-message", "message": "x"}]}));
    serde_json::to_string(&hooks).unwrap()
}

/// A session as Claude Code writes it, about `turns` times ten events.
fn history(turns: usize) -> String {
    let mut text = String::new();
    let mut n = 0;
    let mut line = |kind: &str, message: serde_json::Value, result: Option<serde_json::Value>| {
        n += 1;
        let mut line = json!({"parentUuid": format!("00000000-0000-4000-8000-{n:012}"), "isSidechain": false,
            "userType": "external", "cwd": "/home/me/shop", "sessionId": "5b1c8f2e-6a4d-4c1b-9f3e-2d7a8c9e0b11",
            "version": "2.1.332", "gitBranch": "main", "type": kind, "message": message,
            "uuid": format!("00000000-0000-4000-9000-{n:012}"), "timestamp": "2026-11-28T09:00:00.000Z"});
        if let Some(result) = result {
            line["toolUseResult"] = result;
        }
        writeln!(text, "{line}").unwrap();
    };
    let words = "the tests of the shop run and the page is shown as it was meant to be ".repeat(4);
    for turn in 0..turns {
        let (first, last, call) = (format!("msg_{turn}a"), format!("msg_{turn}b"), format!("toolu_{turn}"));
        let answer = |id: &str, part: serde_json::Value| {
            json!({"id": id, "type": "message", "role": "assistant", "model": "m", "content": [part],
                "usage": {"input_tokens": 10, "output_tokens": 10}})
        };
        line("user", json!({"role": "user", "content": format!("step {turn}: {words}")}), None);
        line("assistant", answer(&first, json!({"type": "text", "text": words})), None);
        let input = json!({"command": format!("make -C build target-{turn}"), "description": "build"});
        line(
            "assistant",
            answer(&first, json!({"type": "tool_use", "id": call, "name": "Bash", "input": input})),
            None,
        );
        let result = json!({"stdout": words, "stderr": "", "interrupted": false});
        let part = json!({"type": "tool_result", "tool_use_id": call, "content": words});
        line("user", json!({"role": "user", "content": [part]}), Some(result));
        line("assistant", answer(&last, json!({"type": "text", "text": words})), None);
    }
    text
}

fn rules() -> Vec<Rules> {
    let read = define::read("bench.json", &hooks(), Source::User, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let loaded = Loaded { hooks: read.hooks, ..Loaded::default() };
    let loaded = dry(Workshop::empty()).equip(loaded);
    vec![Rules::new(loaded, OnInvalid::Refuse, Arc::new(TokioTimer::new())).unwrap()]
}

fn replay(c: &mut Criterion) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("session.jsonl"), history(2_000)).unwrap();
    let files = find::find(&[dir.path().to_owned()]).unwrap();
    let options = Options { threads: 1, ..Options::default() };
    let mut group = c.benchmark_group("replay");
    group.sample_size(10);
    for (name, rules) in [("61 hooks", rules()), ("no hooks", no_rules())] {
        let report = run::run(&files, &rules, &options, &|_| {}).unwrap();
        assert_eq!((report.damaged, report.rows.len()), (0, 0));
        group.throughput(Throughput::Elements(report.events));
        group.bench_function(name, |b| {
            b.iter(|| run::run(black_box(&files), &rules, &options, &|_| {}).unwrap().events);
        });
    }
    group.finish();
}

/// What reading alone costs.
fn no_rules() -> Vec<Rules> {
    vec![Rules::new(Loaded::default(), OnInvalid::Refuse, Arc::new(TokioTimer::new())).unwrap()]
}

criterion_group!(benches, replay);
criterion_main!(benches);
