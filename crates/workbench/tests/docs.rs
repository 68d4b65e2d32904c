//! The page about test files, the starter's tests and the schema say the same as the reader does.
#![allow(clippy::unwrap_used, clippy::panic, reason = "also in the helpers, a test may stop")]

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::hook::Source;
use hookgate_core::set::HookSet;
use hookgate_handlers::builtin;
use hookgate_workbench::starter::{self, KITS};
use hookgate_workbench::test::file::{self, Names};
use hookgate_workbench::test::schema;
use serde_json::{Map, Value};

const PAGE: &str = include_str!("../../../docs/tests.md");

/// The hooks that the page and the starter speak of.
fn names() -> Names {
    let made_up =
        ["no-destructive", "no-shrug", "ask-reviewers", "correct-and-retry", "policy-text", "slack-orders"];
    let hooks = made_up.map(
        |id| serde_json::json!({"id": id, "event": "stop", "handler": {"type": "script", "source": "x"}}),
    );
    let text = Value::from(hooks.to_vec()).to_string();
    let mut hooks = define::read("h.json", &text, Source::User, &ActionKinds::standard()).hooks;
    for name in ["secrets", "secrets_stream"] {
        hooks.push(builtin::hook(name, &Map::new()).unwrap());
    }
    Names::of(&HookSet::new(hooks).unwrap())
}

/// The value of a text with comments on lines of their own.
fn plain(text: &str) -> Value {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    serde_json::from_str(&lines.join("\n")).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[track_caller]
fn check(text: &str) {
    let read = file::read("page.test.json", text, &names());
    assert!(read.is_ok(), "{text}\n{:#?}", read.err());
    let validator = jsonschema::validator_for(&schema::test_file()).unwrap();
    let value = plain(text);
    let problems: Vec<String> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{text}\n{problems:?}");
}

#[test]
fn the_page_s_examples_are_tests() {
    let mut examples = 0;
    for block in PAGE.split("```json\n").skip(1) {
        let block = block.split("```").next().unwrap();
        let test = match block.trim_start().chars().next() {
            Some('[') => block.to_owned(),
            Some('{') => format!("[{block}]"),
            // a member of `expect` alone
            _ => format!(r#"[{{"name": "a", "event": {{"event": "stop"}}, "expect": {{ {block} }} }}]"#),
        };
        check(&test);
        examples += 1;
    }
    assert!(examples >= 5, "{examples}");
}

#[test]
fn the_starter_s_tests_are_tests() {
    let kits: Vec<_> = KITS.iter().collect();
    let files = starter::files(&kits);
    let tests: Vec<_> = files.iter().filter(|file| file.path.ends_with(".test.json")).collect();
    assert_eq!(tests.len(), KITS.len(), "each has its tests");
    tests.iter().for_each(|file| check(&file.text));
}

#[test]
fn what_the_reader_refuses_the_schema_refuses() {
    let validator = jsonschema::validator_for(&schema::test_file()).unwrap();
    let with = |test: &str| format!(r#"[{{"name": "a", {test}}}]"#);
    for text in [
        "{}".to_owned(),
        r#"{"tests": [], "test": 1}"#.to_owned(),
        with(r#""event": {"event": "pre_tool"}, "expect": {}"#),
        with(r#""expect": {}"#),
        with(r#""event": {"event": "stop"}, "session": [], "expect": {}"#),
        with(r#""event": {"event": "stop"}, "expect": {"decision": "no"}"#),
        with(r#""event": {"event": "stop"}, "expect": {"reason": {"has": "x"}}"#),
        with(r#""event": {"event": "stop"}, "expect": {"effects": [{"type": "print"}]}"#),
        with(r#""event": {"event": "stop"}, "expect": {"updatedInput": 1}"#),
        with(r#""event": {"event": "stop"}, "expect": {}, "answers": {"no-shrug": {"decison": "allow"}}"#),
        with(r#""event": {"event": "stop"}, "expect": {}, "answers": {"no-shrug": []}"#),
    ] {
        assert!(file::read("a.test.json", &text, &names()).is_err(), "{text}");
        assert!(!validator.is_valid(&plain(&text)), "{text}");
    }
}

/// What the page says a step, a test or an expectation may have, the schema knows, and the other way round.
#[test]
fn the_page_names_every_field() {
    let schema = schema::test_file();
    for (pointer, of) in [("/$defs/test", "test"), ("/$defs/expect", "expect")] {
        let properties = schema.pointer(&format!("{pointer}/properties")).unwrap().as_object().unwrap();
        for name in properties.keys() {
            assert!(PAGE.contains(&format!("`{name}`")), "{of}: the page does not name `{name}`");
        }
    }
}
