//! The published schema and the reader agree on which definitions are well formed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use hookgate_core::action::ActionKinds;
use hookgate_core::define::{self, schema};
use hookgate_core::hook::Source;
use serde_json::{Value, json};
use std::path::PathBuf;

fn reader_accepts(definition: &Value) -> Result<(), String> {
    let read = define::read("t.json", &definition.to_string(), Source::Operator, &ActionKinds::standard());
    match read.problems.first() {
        Some(problem) => Err(problem.to_string()),
        None => Ok(()),
    }
}

/// Faults that no schema can express: broken patterns, and rules between fields.
fn is_beyond_a_schema(fault: &str) -> bool {
    [
        "not a usable pattern",
        "only one of",
        "unknown name",
        "not a CEL expression",
        "because of the scope",
        "has a mode",
        "needs `target` stream and a `regex`",
        "`source` or `file`",
        "`argv` or `shell`",
    ]
    .iter()
    .any(|words| fault.contains(words))
}

fn check(validator: &jsonschema::Validator, definition: &Value) {
    let reader = reader_accepts(definition);
    if reader.as_ref().is_err_and(|fault| is_beyond_a_schema(fault)) {
        return;
    }
    assert_eq!(validator.is_valid(definition), reader.is_ok(), "{definition}\nthe reader says {reader:?}");
}

fn validator() -> jsonschema::Validator {
    jsonschema::validator_for(&schema::hook_file().to_value()).unwrap()
}

#[test]
fn on_every_definition_of_the_vectors() {
    let corpus =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/conformance/json-hooks/vectors.jsonl");
    let validator = validator();
    let mut seen = 0;
    for line in std::fs::read_to_string(corpus).unwrap().lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let mut files: Vec<Value> = vector.get("hooks").into_iter().cloned().collect();
        files.extend(
            vector["files"].as_object().into_iter().flatten().filter_map(|(_, f)| f.get("json").cloned()),
        );
        for file in files {
            let definitions = file.as_array().cloned().unwrap_or_else(|| vec![file.clone()]);
            seen += definitions.len();
            definitions.iter().for_each(|definition| check(&validator, definition));
        }
    }
    assert!(seen > 150, "only {seen} definitions");
}

#[test]
fn on_every_field_left_out_misspelt_or_of_another_type() {
    let validator = validator();
    let good = [
        json!({"$schema": "x", "target": "chat", "label": "l", "enabled": true, "roles": ["user"], "regex": "x",
               "maxTriggers": 1, "actions": [{"type": "log", "message": "m"}]}),
        json!({"target": "stream", "chunks": ["content"], "actions": [{"type": "interrupt", "resend": true}]}),
        json!({"target": "stream", "regex": "x", "actions": [{"type": "redact", "with": "w"}]}),
        json!({"target": "tool", "tools": ["t"], "event": "error", "actions": [{"type": "queue-message",
               "role": "tool", "message": "m"}, {"type": "queue-resend"}]}),
        json!({"id": "i", "event": "pre_tool_use", "matcher": "exec", "if_expr": "true", "priority": -1,
               "scope": "agent", "tenant": "t", "agents": ["a"], "timeout_ms": 5, "on_timeout": "allow",
               "on_error": "block", "handler": {"type": "script", "source": "s", "memory_mb": 1}}),
        json!({"event": "pre_response", "mode": "send", "handler": {"type": "command", "argv": ["x"], "env": ["A"],
               "cwd": "."}}),
        json!({"event": "stop", "handler": {"type": "http", "url": "u", "headers": {"a": "b"}, "secret_env": "S",
               "allow_private": true}}),
        json!({"event": "stop", "handler": {"type": "prompt", "prompt": "p", "model": "m", "max_per_turn": 1}}),
    ];
    for definition in &good {
        assert_eq!(reader_accepts(definition), Ok(()));
        assert!(validator.is_valid(definition), "{definition}");
        for key in definition.as_object().unwrap().keys() {
            let mut without = definition.clone();
            let value = without.as_object_mut().unwrap().remove(key).unwrap();
            check(&validator, &without);
            without[format!("{key}x")] = value;
            check(&validator, &without);
            for other in [json!(null), json!(7), json!("zz"), json!([]), json!({}), json!(1.5), json!(["zz"])]
            {
                let mut changed = definition.clone();
                changed[key] = other;
                check(&validator, &changed);
            }
        }
    }
}
