//! `init`, `test`, `fire`, `why`: what the author of a hook works with.

use crate::support::{Place, Ran};
use serde_json::{Value, json};

const GATE: &str = r#"{"id": "no-rm", "event": "pre_tool_use", "matcher": "exec", "if_expr": "has(toolInput.command)",
 "handler": {"type": "script", "source": "function handle(e) { return /rm -r/.test(e.toolInput.command) ? {decision: 'block', reason: 'no rm'} : {decision: 'allow'} }"}}"#;
const ORDER: &str = r#"{"id": "order", "event": "post_tool_use", "tools": ["order"], "handler": {"type": "http", "url_env": "NOT_SET"}}"#;
const SHRUG: &str = r#"{"label": "shrug", "target": "chat", "roles": ["assistant"], "regex": "I don't know",
 "actions": [{"type": "queue-message", "role": "user", "message": "Try again."}, {"type": "interrupt", "resend": true}]}"#;

fn place(tests: &str) -> Place {
    Place::new()
        .with("h/gate.json", GATE)
        .with("h/order.json", ORDER)
        .with("h/shrug.json", SHRUG)
        .with("h/a.test.json", tests)
}

fn rm(expect: &str) -> String {
    format!(
        r#"{{"name": "rm", "event": {{"tool": "exec", "input": {{"command": "rm -r x"}}}}, "expect": {expect}}}"#
    )
}

#[track_caller]
fn has(ran: &Ran, code: i32, parts: &[&str]) {
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    for part in parts {
        assert!(ran.stdout.contains(part), "`{}` lacks `{part}`", ran.stdout);
    }
}

#[test]
fn init_writes_what_passes_check_and_test() {
    let names = ["no-destructive", "secrets", "policy-text", "slack-orders"];
    let alone = names.iter().map(|name| vec![*name]);
    for chosen in alone.chain([vec![], names.to_vec()]) {
        let place = Place::new();
        let with = chosen.join(",");
        let mut args = vec!["init"];
        if !chosen.is_empty() {
            args.extend(["--with", &with]);
        }
        let ran = place.run(&args);
        has(&ran, 0, &["wrote hookgate.toml\nwrote hooks/README.md\n", "hookgate check"]);
        let checked = place.run(&["check"]);
        has(&checked, 0, &["no problems, no warnings"]);
        let tested = place.run(&["test", "--coverage", "--require"]);
        has(&tested, 0, &["all passed", "every hook was fired, and every filter was seen to say yes and no"]);
    }
}

#[test]
fn init_writes_nothing_over() {
    let place = Place::new().with("new/hooks/no-destructive.js", "mine");
    place.run(&["init", "new"]).is(
        2,
        "",
        "error: new/hooks/no-destructive.js is there already; nothing was written: give another folder\n",
    );
    assert!(!place.path("new/hookgate.toml").exists());
    place.run(&["init", "--with", "secret"]).fails(2, "there is no `secret` to begin with");
    let ran = place.run(&["init", "other"]);
    has(&ran, 0, &["wrote other/hooks/no-destructive.js\n", "\n  cd other\n"]);
    // the folder's own configuration holds, from wherever it is asked for
    has(&place.run(&["test", "other"]), 0, &["other/hooks/no-destructive.test.json\n", "all passed"]);
    has(&place.run(&["test", "other/hooks"]), 0, &["all passed"]);
}

#[test]
fn tests_pass_or_say_why_not() {
    let place = place(&format!("[{}]", rm(r#"{"decision": "block", "hook": "no-rm", "reason": "no rm"}"#)));
    place.run(&["test", "h"]).is(0, "h/a.test.json\n  ok       rm\n1 test in 1 file, all passed\n", "");
    let wrong = place.with(
        "h/a.test.json",
        r#"[{"name": "ls", "event": {"tool": "ls"}, "expect": {"decision": "block", "hooks": ["no-rm"]}}]"#,
    );
    wrong.run(&["test", "h"]).is(
        1,
        "h/a.test.json\n  failed   ls\n           decision\n             expected  \"block\"\n             found     \"allow\"\n\
         \u{20}          hooks\n             expected  \"no-rm\"\n             found     none\n\
         \u{20}          what the hooks made of it:\n             pre_tool_use of ls\n\
         \u{20}              hook no-rm was ruled out by matcher `exec`: tool `ls`\n               -> allow\n\
         1 test in 1 file, 1 failed\n",
        "",
    );
}

#[test]
fn what_cannot_be_read_is_told_with_its_place() {
    let place = place("// a comment\n[{\"name\": \"a\", \"evnt\": {}, \"expect\": {}}]");
    let ran = place.run(&["test", "h"]);
    ran.fails(2, "h/a.test.json:2:16: field `tests[0].evnt`: unknown field `evnt`, and `event` is missing; ");
    ran.fails(2, "(did you mean `event`?)\n  2 | [{\"name\": \"a\", \"evnt\": {}");
    place.run(&["test", "none"]).fails(2, "the hooks folder none cannot be read: No such file");
    let place = place.with("h/bad.json", "{\"target\": \"chta\"}");
    place.run(&["test", "h"]).fails(2, "h/bad.json:1:12: hook 1, field `target`: unknown target `chta`");
    Place::new().run(&["test"]).fails(2, "which folder?");
    let above = Place::new().with("x/script.json", "{}").with("x/hooks/a.json", SHRUG);
    above.run(&["test", "x"]).fails(2, "x: is taken for a hooks folder; was x/hooks meant?");
}

#[test]
fn a_folder_without_tests_says_so() {
    let place = Place::new().with("h/gate.json", GATE);
    has(&place.run(&["test", "h"]), 0, &["no tests in h\n", "NAME.test.json"]);
    has(&place.run(&["test", "h", "--require"]), 1, &["no tests in h\n"]);
    has(&place.run(&["test", "h", "--filter", "x"]), 0, &["no test has `x` in its name\n"]);
}

#[test]
fn no_door_takes_tests_for_hooks() {
    let place = place("[{\"name\": 1").with("script.json", r#"{"turns": [{"text": "Hello"}]}"#);
    let ran = place.env("NOT_SET", "https://a.example").run(&[
        "chat",
        "--hooks",
        "h",
        "--script",
        "script.json",
        "hi",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello\n"), "{}", ran.stderr);
    let place = Place::new().with("h/gate.json", GATE).with("h/a.test.json", "[{\"name\": 1");
    // only who checks the folder reads it, and as what it is
    has(&place.run(&["check", "h"]), 1, &["h/a.test.json:1:11", "1 good hook, 1 problem"]);
    assert_eq!(place.run(&["list", "h"]).stdout.lines().count(), 2);
    let call = place.pipe(
        br#"{"tool_name": "Bash", "tool_input": {"command": "ls"}, "session_id": "s"}"#,
        &["hook", "claude-code", "PreToolUse", "--hooks", "h", "--data-dir", "d"],
    );
    assert_eq!((call.code, call.stderr.as_str()), (Some(0), ""));
    assert!(!call.stdout.contains("deny"), "{}", call.stdout);
}

#[test]
fn a_handler_outside_needs_an_answer() {
    let order = |more: &str| {
        format!(
            r#"[{{"name": "o", "event": {{"tool": "order", "output": "ok"}}, "expect": {{"hooks": ["order"]}}{more}}}]"#
        )
    };
    let unanswered = place(&order(""));
    has(
        &unanswered.run(&["test", "h"]),
        1,
        &[
            "hook order would run its http handler",
            r#""answers": { "order": { "decision": "allow" } }"#,
            "--live",
        ],
    );
    has(&place(&order(r#", "answers": {"order": "allow"}"#)).run(&["test", "h"]), 0, &["all passed"]);
    // live, its fault is one of a hook at an event that is only watched
    has(&unanswered.run(&["test", "h", "--live"]), 0, &["all passed"]);
    let json: Value =
        serde_json::from_str(&unanswered.run(&["test", "h", "--live", "--json"]).stdout).unwrap();
    assert_eq!(json["files"][0]["tests"][0]["found"]["hooks"], json!(["order"]));
}

#[test]
fn update_writes_what_happened() {
    let tests = format!(
        "// kept\n[\n    {}, // and this\n    {}\n]\n",
        rm(r#"{"decision": "allow"}"#),
        r#"{"name": "shrug", "event": {"answer": "I don't know."}, "expect": {}}"#
    );
    let place = place(&tests);
    let ran = place.run(&["test", "h", "--update"]);
    has(
        &ran,
        0,
        &["  written  rm\n  written  shrug\n", "h/a.test.json was written anew", "2 written anew\n"],
    );
    let text = std::fs::read_to_string(place.path("h/a.test.json")).unwrap();
    assert!(text.starts_with("// kept\n[\n") && text.contains("}, // and this\n"), "{text}");
    assert!(text.contains(r#""message": "Try again.""#), "{text}");
    has(&place.run(&["test", "h"]), 0, &["2 tests in 1 file, all passed"]);
    has(&place.run(&["test", "h", "--update"]), 0, &["all passed"]);
    assert_eq!(std::fs::read_to_string(place.path("h/a.test.json")).unwrap(), text, "nothing to write");
    // what would happen is not known without an answer
    let unknown = r#"[{"name": "o", "event": {"tool": "order", "output": "ok"}, "expect": {}}]"#;
    let place = place.with("h/a.test.json", unknown);
    has(&place.run(&["test", "h", "--update"]), 1, &["would run its http handler"]);
    assert_eq!(std::fs::read_to_string(place.path("h/a.test.json")).unwrap(), unknown);
}

#[test]
fn machines_can_read_the_results() {
    let place = place(&format!(
        "[{},{}]",
        rm(r#"{"decision": "allow"}"#),
        r#"{"name": "<b>", "event": {"tool": "x"}, "expect": {"hooks": []}}"#
    ));
    let ran = place.run(&["test", "h", "--json", "--coverage", "--junit", "out.xml"]);
    assert_eq!(ran.code, Some(1));
    let json: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&json["tests"], &json["failed"]), (&json!(2), &json!(1)));
    let fault =
        json!({"fault": "differs", "step": null, "field": "decision", "expected": "allow", "found": "block"});
    assert_eq!(json["files"][0]["tests"][0]["faults"], json!([fault]));
    assert_eq!(json["coverage"][0]["hook"], "no-rm");
    assert_eq!(
        json["coverage"][0]["filters"][0],
        json!({"field": "matcher", "wanted": "exec", "said_yes": true, "said_no": true})
    );
    let xml = std::fs::read_to_string(place.path("out.xml")).unwrap();
    assert!(xml.contains(r#"<testsuites name="hookgate" tests="2" failures="1" errors="0">"#), "{xml}");
    assert!(xml.contains("<testcase name=\"&lt;b&gt;\""), "{xml}");
    assert!(xml.contains("expected  &quot;allow&quot;"), "{xml}");
    let text = place.run(&["test", "h", "--coverage"]).stdout;
    assert!(text.contains("1 of 3 hooks were fired by a test\n"), "{text}");
    assert!(text.contains("hook no-rm, if_expr `has(toolInput.command)`: no test saw it say no\n"), "{text}");
}

#[test]
fn a_file_may_be_about_some_hooks() {
    let second = r#"{"id": "second", "event": "pre_tool_use", "handler": {"type": "http", "url": "https://a.example"}}"#;
    let tests = |only: &str| {
        format!(
            "{{{only}\"tests\": [{}]}}",
            r#"{"name": "ls", "event": {"tool": "exec", "input": {"command": "ls"}}, "expect": {"hooks": ["no-rm"]}}"#
        )
    };
    let place = place(&tests("")).with("h/second.json", second);
    has(&place.run(&["test", "h"]), 1, &["hook second would run"]);
    let place = place.with("h/a.test.json", &tests("\"only\": [\"no-rm\"], "));
    has(&place.run(&["test", "h"]), 0, &["all passed"]);
}

/// Only an operator's hook may change what is shown: trust follows from what hookgate.toml says of the folder.
#[test]
fn each_folder_is_trusted_as_configured() {
    let hook =
        r#"{"label": "keys", "target": "stream", "regex": "key-[0-9]+", "actions": [{"type": "redact"}]}"#;
    let test = r#"[{"name": "cut", "event": {"answer": ["ke", "y-1", "2!"]}, "expect": {"text": "[redacted]!", "hooks": ["keys"]}}]"#;
    let place = Place::new().with("own/keys.json", hook).with("own/keys.test.json", test);
    place.run(&["test", "own"]).fails(2, "redact");
    let place = place.with("hookgate.toml", "[hooks]\ntrusted_dir = 'own'\n");
    has(&place.run(&["test", "own"]), 0, &["all passed"]);
    has(&place.run(&["test"]), 0, &["own/keys.test.json\n", "all passed"]);
    let place = place.with("hookgate.toml", "[[tenants]]\nid = 'acme'\nhooks_dir = 'acme'\n").with(
        "acme/a.json",
        r#"{"id": "a", "event": "stop", "scope": "tenant", "tenant": "acme", "handler": {"type": "http", "url": "https://a.example"}}"#,
    );
    let test = r#"[{"name": "s", "event": {"event": "stop"}, "answers": {"a": "block"}, "expect": {"hooks": ["a"], "decision": "block"}}]"#;
    let place = place.with("acme/a.test.json", test).with("user/b.json", SHRUG);
    let place =
        place.with("hookgate.toml", "[hooks]\ndir = 'user'\n[[tenants]]\nid = 'acme'\nhooks_dir = 'acme'\n");
    has(&place.run(&["test", "acme"]), 0, &["all passed"]);
}

#[test]
fn hooks_of_the_program_are_tested_beside_the_configuration() {
    let test = r#"[{"name": "a", "event": {"tool": "exec", "input": {"command": "rm -rf /"}}, "expect": {"hook": "builtin/destructive"}}]"#;
    let place = Place::new()
        .with("x/hookgate.toml", "[builtin]\ndestructive = true\n")
        .with("x/rules.test.json", test);
    has(&place.run(&["test", "x"]), 0, &["x/rules.test.json\n", "all passed"]);
    has(&place.run(&["test", "--config", "x/hookgate.toml"]), 0, &["x/rules.test.json\n"]);
}

#[test]
fn fire_tells_what_every_hook_made_of_an_event() {
    let place =
        place("[]").with("e.json", r#"{"event": "pre_tool_use", "toolName": "exec", "toolInput": {}}"#);
    place.run(&["fire", "e.json", "--hooks", "h"]).is(
        0,
        "pre_tool_use of exec\n  hook no-rm was ruled out by if_expr `has(toolInput.command)`: toolInput.command is not there\n  -> allow\n",
        "",
    );
    let rm =
        place.pipe(br#"{"tool": "exec", "input": {"command": "rm -r x"}}"#, &["fire", "-", "--hooks", "h"]);
    has(&rm, 0, &["  hook no-rm (script) said block ", ": no rm\n  -> block, by hook no-rm: no rm\n"]);
    let lines = b"{\"tool\": \"order\", \"output\": \"ok\"}\n{\"answer\": \"I don't know.\"}\n";
    let session = place.pipe(lines, &["fire", "-", "--hooks", "h"]);
    session.is(
        0,
        "pre_tool_use of order\n  hook no-rm was ruled out by matcher `exec`: tool `order`\n  -> allow\n\
         post_tool_use of order\n  hook order (http) would run; only --live runs it\n\
         message\n  hook shrug was ruled out by roles `assistant`: role `tool`\n\
         message\n  hook shrug fired\n\
         \u{20} asked for: {\"type\":\"queue-message\",\"role\":\"user\",\"message\":\"Try again.\",\"hook\":\"shrug\"}\n\
         \u{20} asked for: {\"type\":\"interrupt\",\"resend\":true,\"hook\":\"shrug\"}\n  -> block, by hook shrug\n",
        "",
    );
    let live = place.pipe(
        br#"{"event": "post_tool_use", "toolName": "order"}"#,
        &["fire", "-", "--hooks", "h", "--live"],
    );
    has(&live, 0, &["hook order (http) said error", "NOT_SET"]);
    let json = place.pipe(br#"{"tool": "order"}"#, &["fire", "-", "--hooks", "h", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json[0]["decision"], "allow");
    let out = json!({"hook": "no-rm", "became": "ruled_out", "by": "matcher", "wanted": "exec", "found": "tool `order`"});
    assert_eq!(json[0]["hooks"], json!([out]));
}

#[test]
fn a_dry_gate_says_that_it_is_open() {
    let place = Place::new().with(
        "h/a.json",
        r#"{"id": "ask", "event": "pre_tool_use", "handler": {"type": "command", "argv": ["touch", "ran"]}}"#,
    );
    let dry = place.pipe(br#"{"tool": "exec"}"#, &["fire", "-", "--hooks", "h"]);
    has(
        &dry,
        0,
        &["hook ask (command) would run; only --live runs it\n  -> allow, unless ask says otherwise\n"],
    );
    assert!(!place.path("h/ran").exists());
    let live = place.pipe(br#"{"tool": "exec"}"#, &["fire", "-", "--hooks", "h", "--live"]);
    has(&live, 0, &["hook ask (command) said allow", "-> allow\n"]);
    assert!(place.path("h/ran").exists());
}

#[test]
fn why_takes_a_file_or_an_id() {
    let place = place("[]").with("e.json", r#"{"tool": "ls"}"#);
    let fired = place.run(&["fire", "e.json", "--hooks", "h"]).stdout;
    assert!(fired.contains("ruled out by matcher"), "{fired}");
    assert_eq!(place.run(&["why", "e.json", "--hooks", "h"]).stdout, fired);
    place.run(&["why", "no.json", "--hooks", "h"]).fails(2, "there is no file no.json");
    place
        .pipe(b"{\"tol\": 1}", &["why", "-", "--hooks", "h"])
        .fails(2, "standard input:1:2: field `tol`: unknown field");
    let place = Place::new().with("h/gate.json", GATE);
    let call = br#"{"tool_name": "Bash", "tool_input": {"command": "rm -r x"}, "session_id": "s1"}"#;
    place.pipe(call, &["hook", "claude-code", "PreToolUse", "--hooks", "h", "--data-dir", "d"]);
    let told = place.run(&["audit", "why", "s1", "--data-dir", "d"]).stdout;
    assert!(told.contains("hook no-rm said no"), "{told}");
    assert_eq!(place.run(&["why", "s1", "--data-dir", "d"]).stdout, told);
    place.run(&["why", "s2", "--data-dir", "d"]).fails(2, "the trail has no session and no event `s2`");
}

#[test]
fn the_schema_of_tests_is_one() {
    let ran = Place::new().run(&["schema", "--tests"]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(schema["title"], "Tests of hooks");
}
