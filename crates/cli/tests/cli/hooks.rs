//! What hooks do to an answer: the examples of the text.

use crate::support::Place;

const WATCH_CONTENT: &str = r#"{
    "target": "stream",
    "chunks": ["content"],
    "actions": [
        { "type": "log", "message": "[stream] {{text}}" }
    ]
}"#;

const STOP_ON_SECRET: &str = r#"{
    "label": "stop-on-secret",
    "target": "stream",
    "chunks": ["content"],
    "regex": "api_key|password|secret",
    "actions": [
        { "type": "interrupt" }
    ]
}"#;

#[test]
fn the_minimal_example() {
    let place = Place::answering("Hello World !").with("hooks/watch-content.json", WATCH_CONTENT);
    let log = "[stream] Hello\n[stream]  World\n[stream]  !\n";
    place.chat(&["--hooks", "hooks", "hi"]).is(0, "Hello World !\n", log);
    place.env("LLM_CHAT_HOOKS_DIR", "./hooks").chat(&["hi"]).is(0, "Hello World !\n", log);
}

#[test]
fn levels() {
    let actions = r#"{"target":"chat","roles":["user"],"actions":[
        {"type":"debug","message":"d"},{"type":"info","message":"i"},{"type":"warn","message":"w"}]}"#;
    let place = Place::answering("a").with("hooks/a.json", actions);
    place.chat(&["--hooks", "hooks", "hi"]).is(0, "a\n", "i\nw\n");
    place.chat(&["--hooks", "hooks", "-v", "hi"]).is(0, "a\n", "d\ni\nw\n");
}

#[test]
fn stop_on_secret_with_the_demonstration() {
    let place = Place::new().with("hooks/stop-on-secret.json", STOP_ON_SECRET);
    let ran = place.run(&["chat", "--hooks", "hooks", "tell me the secret"]);
    ran.is(
        1,
        "Sure, here is the configuration you asked for:\n",
        "[answer withdrawn by hook stop-on-secret]\nhook stop-on-secret interrupted\n",
    );
}

#[test]
fn an_interrupt_with_resend_asks_again() {
    let hook = r#"{"label":"again","target":"stream","chunks":["content"],"regex":"error","maxTriggers":1,
        "actions":[{"type":"queue-message","role":"user","message":"No errors."},{"type":"interrupt","resend":true}]}"#;
    let script = r#"{"order":"sequence","turns":[{"text":"an error came"},{"text":"all is well"}]}"#;
    let place = Place::new().with("script.json", script).with("hooks/a.json", hook);
    place.chat(&["--hooks", "hooks", "hi"]).is(
        0,
        "an\nall is well\n",
        "[answer withdrawn by hook again]\nhook again interrupted; asking again\n",
    );
}

#[test]
fn resends_have_a_limit() {
    let hook =
        r#"{"label":"again","target":"chat","roles":["assistant"],"actions":[{"type":"queue-resend"}]}"#;
    let place = Place::answering("a").with("hooks/a.json", hook);
    let ran = place.chat(&["--hooks", "hooks", "--max-resends", "1", "hi"]);
    assert_eq!(ran.stdout, "a\na\n");
    ran.fails(2, "hook again asks for one more answer\nhook again asks for one more answer\nerror: stopped after 1 resends: hook `again`");
}

#[test]
fn a_hook_may_interrupt_on_the_prompt() {
    let hook = r#"{"label":"no","target":"chat","roles":["user"],"regex":"password","actions":[{"type":"interrupt"}]}"#;
    let place = Place::answering("a").with("hooks/a.json", hook);
    place.chat(&["--hooks", "hooks", "my password"]).is(1, "", "hook no interrupted\n");
}

#[test]
fn bad_hooks_are_refused_or_skipped() {
    let place = Place::answering("Hi")
        .with("hooks/a.json", "{\n  \"target\": \"stream\",\n  \"chunk\": [\"content\"]\n}\n")
        .with("hooks/b.json", WATCH_CONTENT);
    let ran = place.chat(&["--hooks", "hooks", "x"]);
    ran.fails(2, "hooks/a.json:3:3: hook 1, field `chunk`: ");
    ran.fails(2, "  3 |   \"chunk\": [\"content\"]\n    |   ^\n");
    assert_eq!(ran.stdout, "");
    let ran = place.chat(&["--hooks", "hooks", "--on-invalid", "skip", "x"]);
    assert_eq!(ran.stdout, "Hi\n");
    ran.fails(0, "hooks/a.json:3:3");
    ran.fails(0, "[stream] Hi\n");
    place
        .chat(&["--hooks", "none", "x"])
        .fails(2, "none: the hooks folder cannot be read: no such file or directory");
}
