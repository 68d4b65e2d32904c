//! The live view of the trail where it is no view: rows through a pipe, while a chat runs.

use crate::support::Place;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout};

const HOOKS: &str = r#"[{
    "id": "guard", "event": "pre_tool_use", "matcher": "exec",
    "handler": { "type": "script", "source": "function handle(e) { return e.toolInput.command === 'true' ? { decision: 'allow' } : { decision: 'block', reason: 'only true is true' }; }" }
}]"#;
const SCRIPT: &str = r#"{"turns": [{"tool_calls": [
    {"tool": "exec", "args": {"command": "true"}},
    {"tool": "exec", "args": {"command": "false"}}
]}, {"text": "done"}]}"#;

/// A watch that runs; it is stopped with the test, however that ends.
struct Watch {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Watch {
    fn start(place: &Place, args: &[&str]) -> Watch {
        let mut child = place.command(&[&["watch", "--data-dir", "data"], args].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Watch { child, lines }
    }

    /// The next line; waits for it.
    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }

    /// What it said on standard error until now.
    fn stop(mut self) -> String {
        self.child.kill().unwrap();
        let mut text = String::new();
        std::io::Read::read_to_string(&mut self.child.stderr.take().unwrap(), &mut text).unwrap();
        text
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn place() -> Place {
    Place::new().with("hooks/guard.json", HOOKS).with("script.json", SCRIPT)
}

fn chat(place: &Place) {
    let ran = place.chat(&["--hooks", "hooks", "--tools", "exec", "--data-dir", "data", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn rows_come_while_a_chat_runs() {
    let place = place();
    // begun before there is anything to watch
    let mut watch = Watch::start(&place, &["--last", "10"]);
    chat(&place);
    let (allowed, blocked) = (watch.line(), watch.line());
    assert!(
        allowed.contains("  allow    ") && allowed.contains(" ms  guard  pre_tool_use exec  "),
        "{allowed}"
    );
    assert!(blocked.contains("  block    ") && blocked.ends_with(": only true is true\n"), "{blocked}");
    chat(&place);
    assert!(watch.line().contains("  allow    "));
    let said = watch.stop();
    assert!(said.is_empty() || said == "no hook has left a record in data yet; waiting\n", "{said}");
}

#[test]
fn programs_get_objects_of_what_they_want() {
    let place = place();
    chat(&place);
    let mut watch = Watch::start(&place, &["--json", "--decision", "block", "--last", "5"]);
    let row: Value = serde_json::from_str(&watch.line()).unwrap();
    assert_eq!(
        (&row["decision"], &row["hook_id"], &row["tool_name"]),
        (&"block".into(), &"guard".into(), &"exec".into())
    );
    chat(&place);
    let row: Value = serde_json::from_str(&watch.line()).unwrap();
    assert_eq!(row["decision"], "block", "the allowed one is passed over");
    // without --last only what is new
    let mut watch = Watch::start(&place, &["--json", "--last", "1"]);
    assert_eq!(serde_json::from_str::<Value>(&watch.line()).unwrap()["id"], row["id"]);
}

#[test]
fn a_coding_agent_s_hook_is_seen() {
    let place = place();
    let mut watch = Watch::start(&place, &["--last", "10"]);
    let payload = br#"{"tool_name": "Bash", "tool_input": {"command": "rm x"}, "session_id": "s-9"}"#;
    let args = ["hook", "claude-code", "PreToolUse", "--hooks", "hooks", "--data-dir", "data"];
    assert!(place.pipe(payload, &args).stdout.contains("deny"));
    let line = watch.line();
    assert!(line.contains("block") && line.contains("guard") && line.contains("s-9"), "{line}");
}

#[test]
fn a_reader_that_goes_away_ends_it() {
    let place = place();
    chat(&place);
    let mut watch = Watch::start(&place, &["--last", "10"]);
    watch.line();
    let Watch { child, lines } = &mut watch;
    // the pipe breaks with the next row
    let gone = std::mem::replace(
        lines,
        BufReader::new(place.command(&["--version"]).spawn().unwrap().stdout.unwrap()),
    );
    drop(gone);
    chat(&place);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn what_is_misspelt_is_said() {
    let place = place();
    place.run(&["watch", "--decision", "blocked"]).fails(2, "which trail?");
    let args = ["watch", "--data-dir", "data", "--decision", "blocked"];
    place.run(&args).fails(2, "expected one of allow, block, error, timeout");
}
