//! `chat --json`: events for programs.

use crate::support::Place;
use serde_json::{Value, json};

fn types(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["type"].as_str().unwrap()).collect()
}

#[test]
fn every_line_is_an_event_and_the_last_is_the_end() {
    let place = Place::answering("Hi you");
    let ran = place.chat(&["--json", "hello"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let lines = ran.lines();
    assert_eq!(types(&lines), ["message", "request", "chunk", "chunk", "chunk", "message", "end"]);
    assert_eq!(
        lines[0],
        json!({"type":"message","message":{"role":"user","content":"hello","origin":"user"}})
    );
    assert_eq!(lines[2], json!({"type":"chunk","chunk":"content","text":"Hi"}));
    assert_eq!(
        lines[6],
        json!({"type":"end","outcome":"answered","text":"Hi you","finish":"stop","usage":null})
    );
}

#[test]
fn hooks_are_events_too() {
    let hook = r#"{"label":"h","target":"stream","regex":"you","actions":[{"type":"warn","message":"{{match}}"},{"type":"interrupt"}]}"#;
    let place = Place::answering("Hi you").with("hooks/a.json", hook);
    let ran = place.chat(&["--json", "--hooks", "hooks", "hello"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let lines = ran.lines();
    let from = lines.len() - 3;
    assert_eq!(
        lines[from..],
        [
            json!({"type":"log","hook":"h","level":"warn","text":"you"}),
            json!({"type":"interrupt","hook":"h","resend":false}),
            json!({"type":"end","outcome":"interrupted","hook":"h"}),
        ]
    );
}

#[test]
fn tools_are_events_too() {
    let script =
        r#"{"turns":[{"tool_calls":[{"tool":"exec","args":{"command":"echo hi"}}]},{"text":"{last_tool}"}]}"#;
    let place = Place::new().with("script.json", script);
    let ran = place.chat(&["--json", "--tools", "exec", "x"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let tools: Vec<Value> = ran.lines().into_iter().filter(|line| line["type"] == "tool").collect();
    assert_eq!(
        tools,
        [
            json!({"type":"tool","event":"before","name":"exec","args":{"command":"echo hi"}}),
            json!({"type":"tool","event":"after","name":"exec","args":{"command":"echo hi"},
                   "result":{"exit_code":0,"stdout":"hi\n"}}),
        ]
    );
}

#[test]
fn errors_end_it_too() {
    let place =
        Place::new().with("script.json", r#"{"turns":[{"error":"it broke"}]}"#).with("hooks/a.json", "{");
    let ran = place.chat(&["--json", "x"]);
    ran.fails(2, "error: it broke");
    assert_eq!(ran.lines().last(), Some(&json!({"type":"end","outcome":"error","message":"it broke"})));
    let ran = place.chat(&["--json", "--hooks", "hooks", "x"]);
    ran.fails(2, "hooks/a.json:1");
    let lines = ran.lines();
    assert_eq!((lines.len(), &lines[0]["outcome"]), (1, &json!("error")));
    assert!(lines[0]["message"].as_str().unwrap().starts_with("hooks/a.json:1"), "{}", lines[0]);
}
