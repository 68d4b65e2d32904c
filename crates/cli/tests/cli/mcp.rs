//! `hookgate mcp`: what passes between a client and its server.

use crate::support::Place;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

/// Writes every line it gets to `got`, answers calls, and asks the client something first.
const SERVER: &str = r#"#!/bin/sh
echo '{"jsonrpc":"2.0","id":1,"method":"roots/list"}'
while IFS= read -r line; do
  printf '%s\n' "$line" >> got
  case "$line" in
    *fails*) echo '{"jsonrpc":"2.0","id":7,"result":{"isError":true,"content":[{"type":"text","text":"no such file"}]}}' ;;
    *tools/call*) printf '{"jsonrpc":"2.0", "id":  9,"result":{"content":[{"type":"text","text":"done"}]}}\n' ;;
    *quit*) exit 3 ;;
  esac
done
"#;

const HOOK: &str = r#"[{"id":"no-delete","event":"pre_tool_use","matcher":"mcp__files__delete.*",
    "handler":{"type":"command","shell":"echo 'nothing is deleted' >&2; exit 2"}},
    {"id":"seen","event":"tool_error","matcher":"mcp","handler":{"type":"command","shell":"cat >> ../errors"}}]"#;

struct Relay {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

fn place() -> Place {
    let data = tempfile::tempdir().unwrap().keep();
    Place::new()
        .with("hooks/h.json", HOOK)
        .with("server.sh", SERVER)
        .env("HOOKGATE_DATA_DIR", data.to_str().unwrap())
}

fn start(place: &Place, server: &[&str]) -> Relay {
    let args = [&["mcp", "--hooks", "hooks", "--name", "files", "--"], server].concat();
    let mut child = place.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let (stdin, stdout) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
    Relay { child, stdin, stdout }
}

impl Relay {
    fn send(&mut self, line: &str) {
        self.stdin.as_mut().unwrap().write_all(line.as_bytes()).unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.stdout.read_line(&mut line).unwrap();
        line
    }
}

#[test]
fn calls_are_judged_and_the_rest_passes_byte_for_byte() {
    let place = place();
    let mut relay = start(&place, &["sh", "server.sh"]);
    // a request of the server, with an id that the client uses as well
    assert_eq!(relay.line(), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"roots/list\"}\n");
    let initialize = "{ \"jsonrpc\": \"2.0\",\"method\":\"initialize\", \"id\":1, \"params\":{\"x\":1.0,\"x\":\"\\u00e9\"} }\n";
    relay.send(initialize);
    let call = "{\"jsonrpc\":\"2.0\",  \"id\":9,\"method\":\"tools/call\",\"params\":{\"name\":\"read\",\"arguments\":{\"n\":1e2}}}\n";
    relay.send(call);
    assert_eq!(
        relay.line(),
        "{\"jsonrpc\":\"2.0\", \"id\":  9,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"done\"}]}}\n"
    );
    for id in ["10", "\"ten\""] {
        relay.send(&format!(
            "{{\"id\":{id},\"method\":\"tools\\/call\",\"params\":{{\"name\":\"delete_all\"}}}}\n"
        ));
        let said: Value = serde_json::from_str(&relay.line()).unwrap();
        assert_eq!(said["id"].to_string(), id);
        assert_eq!(said["result"]["isError"], true);
        assert_eq!(said["result"]["content"][0]["text"], "blocked by hook no-delete: nothing is deleted");
    }
    relay.send("[{\"id\":7,\"method\":\"fails\"},{\"id\":8,\"method\":\"tools/call\",\"params\":{\"name\":\"delete\"}}]\n");
    let both = [relay.line(), relay.line()];
    assert!(
        both.iter().any(|line| line.contains("\"id\":8") && line.contains("blocked by hook")),
        "{both:?}"
    );
    assert!(both.iter().any(|line| line.contains("no such file")), "{both:?}");
    relay.send("not a message\n");
    assert!(relay.line().contains("hookgate does not pass this on"));
    drop(relay.stdin.take());
    assert!(relay.child.wait().unwrap().success());
    let got = std::fs::read_to_string(place.path("got")).unwrap();
    assert_eq!(got, format!("{initialize}{call}[{{\"id\":7,\"method\":\"fails\"}}]\n"));
}

#[test]
fn what_comes_back_is_told_to_hooks() {
    let place = place();
    let mut relay = start(&place, &["sh", "server.sh"]);
    relay.line();
    relay.send("{\"id\":7,\"method\":\"tools/call\",\"params\":{\"name\":\"fails\",\"arguments\":{\"path\":\"x\"}}}\n");
    relay.line();
    drop(relay.stdin.take());
    relay.child.wait().unwrap();
    let told: Value = serde_json::from_str(&std::fs::read_to_string(place.path("errors")).unwrap()).unwrap();
    assert_eq!((&told["toolName"], &told["nativeToolName"]), (&json!("mcp"), &json!("fails")));
    assert_eq!(told["toolInput"], json!({"path": "x", "mcp": {"server": "files", "tool": "fails"}}));
    assert_eq!(told["toolOutput"]["error"], "no such file");
    let rows = place.run(&["audit", "list", "--json"]);
    assert!(rows.stdout.contains("\"seen\""), "{}{}", rows.stdout, rows.stderr);
}

#[test]
fn the_end_of_one_side_is_the_end_of_the_other() {
    let place = place();
    let mut relay = start(&place, &["sh", "server.sh"]);
    relay.line();
    relay.send("quit\n");
    relay.send("{\"method\":\"quit\"}\n");
    assert_eq!(relay.child.wait().unwrap().code(), Some(3), "the server's own code");
    // a server that does not end with its input, and what it started, are ended
    let mut relay = start(&place, &["sh", "-c", "sleep 300 & echo $!; exec sleep 300"]);
    let sleeper: i32 = relay.line().trim().parse().unwrap();
    let pid = rustix::process::Pid::from_child(&relay.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let began = Instant::now();
    assert_eq!(relay.child.wait().unwrap().code(), Some(128 + 15));
    assert!(began.elapsed() < Duration::from_secs(4));
    let sleeper = rustix::process::Pid::from_raw(sleeper).unwrap();
    let gone = || {
        rustix::process::test_kill_process(sleeper).is_err()
            || std::fs::read_to_string(format!("/proc/{}/stat", sleeper.as_raw_nonzero()))
                .is_ok_and(|stat| stat.contains(") Z"))
    };
    let until = Instant::now() + Duration::from_secs(2);
    while !gone() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(gone());
    place.run(&["mcp", "--hooks", "hooks", "--", "/no/such/server"]).fails(2, "cannot be started");
    place.run(&["mcp", "--hooks", "nowhere", "--", "true"]).fails(2, "nowhere");
}

#[test]
fn after_a_call_hooks_only_watch_and_check_says_so() {
    for action in [
        r#""type":"interrupt""#,
        r#""type":"interrupt","resend":true"#,
        r#""type":"queue-message","message":"QUEUED""#,
        r#""type":"queue-resend""#,
    ] {
        let hook = |event: &str| format!(r#"{{"target":"tool","event":"{event}","actions":[{{{action}}}]}}"#);
        let place = place().with("hooks/h.json", &format!("[{},{}]", hook("after"), hook("error")));
        let told = place.run(&["check", "--door", "mcp", "--json", "hooks"]);
        let told: Value = serde_json::from_str(&told.stdout).unwrap();
        let rules: Vec<&Value> = told.as_array().unwrap().iter().map(|found| &found["rule"]).collect();
        assert_eq!(rules, ["door-cannot", "door-cannot"], "{action}");
        let mut relay = start(&place, &["sh", "server.sh"]);
        relay.line();
        for (name, said) in [("read", "done"), ("fails", "no such file")] {
            let call = format!("{{\"id\":7,\"method\":\"tools/call\",\"params\":{{\"name\":\"{name}\"}}}}\n");
            relay.send(&call);
            let line = relay.line();
            assert!(line.contains(said) && !line.contains("QUEUED"), "{action}: {line}");
        }
        drop(relay.stdin.take());
        assert!(relay.child.wait().unwrap().success());
        let got = std::fs::read_to_string(place.path("got")).unwrap();
        assert_eq!(got.lines().count(), 2, "{action}: each call once: {got}");
    }
}
