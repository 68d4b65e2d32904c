//! Past sessions through hooks, from the command line.

use crate::support::{Place, Ran};
use serde_json::Value;

const HOOKS: &str = r#"[
    {"id": "no-deleting", "event": "pre_tool_use", "matcher": "exec", "if_expr": "toolInput.command.contains('rm -rf')",
     "handler": {"type": "script", "source": "function handle(e) { return { decision: 'block', reason: 'not ' + e.toolInput.command }; }"}},
    {"target": "chat", "label": "asked", "roles": ["user"], "actions": [{"type": "log", "message": "{{content}}"}]},
    {"id": "told", "event": "stop", "handler": {"type": "command", "shell": "touch ran; exit 0"}}
]"#;

const SESSION: &str = r#"{"role":"user","content":"clean up"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"exec","arguments":"{\"command\":\"rm -rf build\"}"}}]}
{"role":"tool","tool_call_id":"c","content":"<img src=x onerror=alert(1)>"}
{"role":"assistant","content":"done"}
"#;

fn place() -> Place {
    Place::new().with("hooks/a.json", HOOKS).with("history/a.jsonl", SESSION)
}

fn replay(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["replay", "history", "--hooks", "hooks"], args].concat())
}

#[test]
fn what_would_have_happened_is_a_table() {
    let place = place();
    replay(&place, &[]).is(
        0,
        "WOULD  HOOK         TIMES  SESSIONS  FIRST AT           WHAT\n\
         block  no-deleting  1      1         history/a.jsonl:2  exec: rm -rf build\n\
         ask    told         1      1         history/a.jsonl:4\n\
         log    asked        1      1         history/a.jsonl:1  clean up\n\
         http, command and prompt handlers were not asked; --live asks them\n\
         1 session in 1 file, 13 events\n",
        "",
    );
    assert!(!place.path("ran").exists(), "a dry run starts nothing");
    let live = replay(&place, &["--live"]);
    assert!(place.path("hooks/ran").exists() || place.path("ran").exists(), "{}", live.stdout);
    assert!(!live.stdout.contains("told  "), "{}", live.stdout);
}

#[test]
fn programs_get_json() {
    let report: Value = serde_json::from_str(&replay(&place(), &["--json"]).stdout).unwrap();
    assert_eq!(
        (&report["sessions"], &report["files"], &report["damaged"]),
        (&1.into(), &1.into(), &0.into())
    );
    let first = &report["rows"][0];
    assert_eq!(
        (&first["what"], &first["hook"], &first["times"]),
        (&"block".into(), &"no-deleting".into(), &1.into())
    );
    assert_eq!(first["first"]["text"], "blocked by hook no-deleting: not rm -rf build");
    assert_eq!(report["findings"].as_array().unwrap().len(), 3);
    assert_eq!(report["formats"]["messages"], 1);
}

#[test]
fn the_page_needs_nothing_and_trusts_nothing() {
    let hooks = r#"{"target": "tool", "label": "<b>h</b>", "event": "after", "actions": [{"type": "log", "message": "{{result}}"}]}"#;
    let place = place().with("hooks/b.json", hooks);
    assert_eq!(replay(&place, &["--html", "report.html"]).code, Some(0));
    let page = std::fs::read_to_string(place.path("report.html")).unwrap();
    assert!(page.contains("&lt;img src=x onerror=alert(1)&gt;") && page.contains("&lt;b&gt;h&lt;/b&gt;"));
    assert!(!page.contains("<img") && !page.contains("<b>h"));
    assert!(page.contains("Content-Security-Policy") && !page.contains("unsafe-inline"));
    replay(&place, &["--html", "no/such/folder.html"]).fails(2, "no/such/folder.html cannot be written");
}

#[test]
fn two_sets_are_compared() {
    let place = place().with("other/a.json", "[]");
    let ran = replay(&place, &["--against", "other"]);
    assert!(ran.stdout.starts_with("hooks: hooks\nagainst: other\nWOULD"), "{}", ran.stdout);
    assert!(ran.stdout.contains("block  no-deleting  1      0        1           0"), "{}", ran.stdout);
    let same = replay(&place, &["--against", "hooks"]);
    assert!(same.stdout.contains("both sets do the same\n"), "{}", same.stdout);
}

#[test]
fn what_cannot_be_read_is_said() {
    let torn = SESSION.replace("{\"role\":\"tool\"", "{\"role\":\"to");
    let place =
        place().with("history/a.jsonl", &torn).with("history/notes.json", "{}").with("empty.jsonl", "");
    let ran = replay(&place, &[]);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        ran.stderr,
        "warning: history/notes.json: it is no history that is known: none of claude-code, codex, chat-log, messages\n\
         warning: history/a.jsonl:3: it is not JSON (column 14)\n"
    );
    assert!(ran.stdout.ends_with("; 1 damaged line, 1 file not read\n"), "{}", ran.stdout);
    assert_eq!(replay(&place, &["--strict"]).code, Some(1));
    let whole = self::place().with("history/notes.json", "{}");
    assert_eq!(replay(&whole, &["--strict"]).code, Some(0), "something else in a folder is no fault");
    let named = ["replay", "history/notes.json", "history/a.jsonl", "--hooks", "hooks", "--strict"];
    assert_eq!(whole.run(&named).code, Some(1), "what is named is meant");
    let alone = |args: &[&str]| place.run(&[&["replay", "--hooks", "hooks"], args].concat());
    alone(&["empty.jsonl"]).fails(2, "nothing to replay: empty.jsonl: it is empty");
    alone(&["hooks"]).fails(2, "nothing to replay: hooks/a.json: it is no history");
    alone(&["nowhere"]).fails(2, "nowhere cannot be read");
    alone(&["history", "--format", "xml"]).fails(2, "expected one of claude-code, codex, chat-log, messages");
    alone(&["history", "--tools-of", "nobody"])
        .fails(2, "unknown agent `nobody`; expected one of claude-code");
    place.run(&["replay", "history"]).fails(2, "which hooks? give --hooks");
    let broken = place.with("broken/a.json", "[{]");
    broken.run(&["replay", "history", "--hooks", "broken"]).fails(2, "broken/a.json");
}

#[test]
fn a_chat_s_own_log_can_be_replayed() {
    let script = r#"{"turns": [{"text": "one moment", "tool_calls": [{"tool": "exec", "args": {"command": "true"}}]}, {"text": "the secret is out"}]}"#;
    let hooks = r#"[{"target": "stream", "label": "leak", "regex": "secret is", "actions": [{"type": "interrupt"}]},
        {"target": "tool", "label": "ran", "actions": [{"type": "log", "message": "{{name}}"}]}]"#;
    let place =
        Place::new().with("script.json", script).with("hooks/a.json", hooks).with("none/a.json", "[]");
    let log = place.chat(&["--hooks", "none", "--tools", "exec", "--json", "go"]);
    assert_eq!(log.code, Some(0), "{}", log.stderr);
    // two runs in one file are two sessions
    let place = place.with("history/log.jsonl", &log.stdout.repeat(2));
    let ran = place.run(&["replay", "history", "--hooks", "hooks"]);
    assert!(ran.stdout.contains("interrupt  leak  2      2"), "{}", ran.stdout);
    assert!(ran.stdout.contains("log        ran   2      2"), "{}", ran.stdout);
    assert!(ran.stdout.contains("2 sessions in 1 file"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn only_the_operator_s_hooks_redact() {
    let hooks = r#"{"target": "stream", "label": "hide", "chunks": ["content"], "regex": "done", "actions": [{"type": "redact"}]}"#;
    let place = Place::new().with("hooks/a.json", hooks).with("history/a.jsonl", SESSION);
    replay(&place, &[]).fails(2, "redact");
    let ran = replay(&place, &["--trusted"]);
    assert!(ran.stdout.contains("redact  hide  1"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_configuration_s_hooks_are_used() {
    let toml = "[builtin]\ndestructive = true\n\n[builtin.policy_text]\ntext = \"No advice.\"\n";
    let session = SESSION.replace("rm -rf build", "rm -rf /srv/data");
    let place = Place::new().with("hookgate.toml", toml).with("history/a.jsonl", &session);
    let ran = place.run(&["replay", "history"]);
    assert!(ran.stdout.contains("block   builtin/destructive  1"), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("append  builtin/policy_text  1"), "{}{}", ran.stdout, ran.stderr);
}
