//! `list`, `check`, `schema`, `completions`.

use crate::support::Place;
use serde_json::{Value, json};

fn place() -> Place {
    Place::new()
        .with(
            "h/a.json",
            r#"[{"label":"log-errors","target":"chat","roles":["assistant"]},{"target":"tool","event":"before"}]"#,
        )
        .with("h/b.json", r#"{"id":"n","event":"pre_tool_use","handler":{"type":"script","source":"x"}}"#)
}

#[test]
fn list_shows_the_hooks_in_order() {
    let place = place();
    place.run(&["list", "h"]).is(
        0,
        "LABEL       TARGET  EVENT         HANDLER  FILE\n\
         log-errors  chat    message       actions  h/a.json#1\n\
         -           tool    pre_tool_use  actions  h/a.json#2\n\
         n           -       pre_tool_use  script   h/b.json#1\n",
        "",
    );
    let listing: Value = serde_json::from_str(&place.run(&["list", "--json", "h"]).stdout).unwrap();
    assert_eq!(
        listing[0],
        json!({"label":"log-errors","target":"chat","event":"message","handler":"actions","file":"h/a.json","index":0})
    );
    Place::new().with("h/README", "").run(&["list", "h"]).is(0, "no hooks\n", "");
}

#[test]
fn list_tells_problems_beside_the_list() {
    let place = place().with("h/c.json", "{\"target\":\"chat\",\"rolse\":[]}");
    let ran = place.run(&["list", "h"]);
    assert_eq!(ran.stdout.lines().count(), 4);
    ran.fails(1, "h/c.json:1:18: hook 1, field `rolse`: unknown");
    place.run(&["list", "none"]).fails(2, "the hooks folder none cannot be read: No such file");
    Place::new().run(&["list"]).fails(2, "which folder?");
    place.env("LLM_CHAT_HOOKS_DIR", "h").run(&["list"]).fails(1, "h/c.json");
}

#[test]
fn check_shows_every_problem_with_its_line() {
    let place = Place::new()
        .with(
            "h/a.json",
            "{\n  \"label\": \"leak\",\n  \"target\": \"chat\",\n  \"roles\": [\"asistant\"]\n}\n",
        )
        .with("h/b.json", r#"{"target":"chat"}"#)
        .with("h/c.json", "\u{0}\u{1}");
    let ran = place.run(&["check", "h"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let expected = "error: unknown role `asistant`; expected one of user, assistant, tool, reasoning
 --> h/a.json:4:13
  |
4 |   \"roles\": [\"asistant\"]
  |             ^^^^^^^^^^
  |
  = note: hook 1 (leak), field `roles[0]`
  = help: did you mean `assistant`?

error: not valid JSON: ";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("1 good hook, 2 problems, no warnings\n"), "{}", ran.stdout);
    let findings: Value = serde_json::from_str(&place.run(&["check", "--json", "h"]).stdout).unwrap();
    assert_eq!(findings[0]["severity"], "error");
    assert_eq!(findings[0]["place"], json!({"line": 4, "column": 13}));
    assert_eq!(findings[0]["hook"], json!({"index": 0, "label": "leak"}));
    assert_eq!(findings.as_array().unwrap().len(), 2);
}

#[test]
fn check_has_three_exit_codes() {
    Place::new().with("h/b.json", r#"{"target":"chat"}"#).run(&["check", "h"]).is(
        0,
        "1 good hook, no problems, no warnings\n",
        "",
    );
    let broken = Place::new().with("h/b.json", r#"{"target":"chat","roles":["robot"]}"#);
    broken.run(&["check", "h"]).fails(1, "");
    let place = Place::new().with("file", "");
    place.run(&["check", "none"]).fails(2, "the hooks folder none cannot be read");
    place.run(&["check", "file"]).fails(2, "the hooks folder file cannot be read: Not a directory");
}

#[test]
fn files_that_cannot_be_read_are_problems() {
    let place = Place::new().with("h/ok.json", r#"{"target":"chat"}"#);
    std::os::unix::fs::symlink("nowhere", place.path("h/link.json")).unwrap();
    let place = place.with("h/utf16.json", "");
    std::fs::write(place.path("h/utf16.json"), b"\xff\xfe{\0").unwrap();
    let ran = place.run(&["check", "h"]);
    assert_eq!(
        ran.stdout,
        "error: cannot be read: no such file or directory\n--> h/link.json\n\n\
         error: is UTF-16; hook files are UTF-8\n--> h/utf16.json\n\n\
         1 good hook, 2 problems, no warnings\n"
    );
    assert_eq!(ran.code, Some(1));
}

#[test]
fn schema_is_a_json_schema() {
    let ran = Place::new().run(&["schema"]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(schema["$schema"].as_str().unwrap().contains("json-schema.org"), "{schema}");
    assert_eq!(ran.code, Some(0));
}

#[test]
fn the_configuration_has_a_schema_of_its_own() {
    let ran = Place::new().run(&["schema", "--configuration"]);
    let schema: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(schema["additionalProperties"], false, "{schema}");
    let gateway = &schema["$defs"]["GatewayTable"]["properties"];
    assert_eq!(gateway["max_told"]["type"], serde_json::json!(["integer", "null"]), "{gateway}");
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_later_format_is_refused_and_named() {
    let later = r#"{"$schema": "https://hookgate.dev/schema/hooks-2.json", "when": "always"}"#;
    let ran = Place::new().with("h/later.json", later).run(&["check", "h"]);
    assert!(
        ran.stdout.contains("written for version 2 of the hook-file format; this program reads version 1")
    );
    assert!(ran.stdout.ends_with("no good hooks, 1 problem, no warnings\n"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn each_command_has_a_manual_page() {
    let place = Place::new();
    assert_eq!(place.run(&["man", "man"]).code, Some(0));
    let page = |name: &str| std::fs::read_to_string(place.path("man").join(name)).unwrap();
    assert!(page("hookgate.1").contains("hookgate\\-gateway(1)"));
    assert!(page("hookgate-gateway.1").contains("\\-\\-upstream"));
    assert!(page("hookgate-audit-verify.1").contains("no row was changed"));
    // not for people
    assert!(!place.path("man/hookgate-man.1").exists());
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let ran = Place::new().run(&["completions", shell]);
        assert_eq!(ran.code, Some(0));
        assert!(ran.stdout.contains("max-tool-call-rounds"), "{shell}");
    }
    Place::new().run(&["completions", "csh"]).fails(2, "possible values");
}
