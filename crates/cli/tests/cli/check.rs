//! `check`: findings for people, for programs and for code scanning; the warnings of docs/check.md.

use crate::support::{Place, Ran};
use hookgate_workbench::lint::{AGENT_CANNOT, DOOR_CANNOT, RULES};
use serde_json::{Value, json};
use std::path::PathBuf;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The rules of the warnings in a JSON report.
fn rules(ran: &Ran) -> Vec<String> {
    let findings: Value = serde_json::from_str(&ran.stdout).unwrap();
    let warnings = findings.as_array().unwrap().iter().filter(|finding| finding["severity"] == "warning");
    warnings.map(|warning| warning["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_warning_has_its_place_and_its_rule() {
    let place = Place::new()
        .with("h/a.json", "{\n  \"label\": \"x\",\n  \"target\": \"tool\",\n  \"tools\": [\"Bash\"]\n}\n");
    let ran = place.run(&["check", "h"]);
    let expected = "warning[canonical-tool-name]: `Bash` is a name that Claude Code, ";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(" --> h/a.json:4:12\n  |\n4 |   \"tools\": [\"Bash\"]\n  |            ^\n"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.ends_with("1 good hook, no problems, 1 warning\n"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(0));
    assert_eq!(place.run(&["check", "--deny-warnings", "h"]).code, Some(1));
    assert_eq!(rules(&place.run(&["check", "--json", "h"])), ["canonical-tool-name"]);
    let fine = Place::new().with("h/a.json", r#"{"target":"chat"}"#);
    assert_eq!(fine.run(&["check", "--deny-warnings", "h"]).code, Some(0));
}

#[test]
fn what_is_wrong_with_a_handler_has_a_place() {
    let place = Place::new().with(
        "h/a.json",
        "[\n{\"id\":\"s\",\"event\":\"stop\",\"handler\":{\"type\":\"script\",\"file\":\"gone.js\"}}\n]",
    );
    let ran = place.run(&["check", "h"]);
    assert!(ran.stdout.contains(" --> h/a.json:2:60\n"), "{}", ran.stdout);
    assert!(ran.stdout.contains("the script file `gone.js` cannot be read"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn test_files_are_read() {
    let hook = r#"{"target":"chat","label":"a"}"#;
    let place = Place::new().with("h/a.json", hook).with("h/a.test.json", "[{\"name\": ]");
    let ran = place.run(&["check", "h"]);
    assert!(
        ran.stdout.contains("error: not valid JSON: expected value\n --> h/a.test.json:1:11\n"),
        "{}",
        ran.stdout
    );
    assert_eq!(ran.code, Some(1));
    let test = r#"[{"name": "t", "event": {"message": "hi", "role": "user"}, "expect": {"hooks": ["b"]}}]"#;
    let ran = Place::new().with("h/a.json", hook).with("h/a.test.json", test).run(&["check", "h"]);
    assert!(ran.stdout.contains("h/a.test.json:1:"), "{}", ran.stdout);
    // what only all hooks together could tell is left out while some are broken
    let broken = place.with("h/b.json", "{").with("h/a.test.json", test).run(&["check", "h"]);
    assert!(!broken.stdout.contains("a.test.json"), "{}", broken.stdout);
}

#[test]
fn no_escape_sequence_from_a_file_is_shown() {
    let place = Place::new()
        .with("h/a.json", "{\"target\":\"chat\",\"roles\":[\"\u{9b}31m\u{202e}\"],\"label\":\"\\u001b[2J\"}");
    let ran = place.run(&["check", "h"]);
    assert_eq!(ran.code, Some(1));
    let bad = ran.stdout.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
    assert_eq!(bad, None, "{:?}", ran.stdout);
}

#[test]
fn the_examples_have_no_warnings() {
    let mut n_folders = 0;
    for entry in std::fs::read_dir(root().join("examples")).unwrap() {
        for name in ["hooks", "trusted"] {
            let hooks = entry.as_ref().unwrap().path().join(name);
            if hooks.is_dir() {
                let ran = Place::new().run(&["check", "--json", hooks.to_str().unwrap()]);
                assert_eq!(rules(&ran), Vec::<String>::new(), "{}", hooks.display());
                n_folders += 1;
            }
        }
    }
    assert!(n_folders >= 19, "{n_folders}");
}

/// The sections of docs/check.md: rule, mistake, and what is better.
fn sections() -> Vec<(String, Vec<String>)> {
    let page = std::fs::read_to_string(root().join("docs/check.md")).unwrap();
    let sections = page.split("\n## ").skip(1).map(|section| {
        let (rule, rest) = section.split_once('\n').unwrap();
        let blocks =
            rest.split("```json\n").skip(1).map(|block| block.split("```").next().unwrap().to_owned());
        (rule.to_owned(), blocks.collect())
    });
    sections.collect()
}

#[test]
fn the_page_shows_each_rule_and_how_to_mend_it() {
    let sections = sections();
    let names: Vec<&str> = sections.iter().map(|(rule, _)| rule.as_str()).collect();
    assert_eq!(names, RULES.iter().map(|rule| rule.id).collect::<Vec<_>>());
    for (rule, blocks) in sections {
        let [mistake, better] = blocks.as_slice() else { panic!("{rule}: two examples") };
        let place = Place::new().with("bad/a.json", mistake).with("good/a.json", better);
        let door: &[&str] = match rule.as_str() {
            AGENT_CANNOT => &["--door", "claude-code"],
            DOOR_CANNOT => &["--door", "gateway"],
            _ => &[],
        };
        let of = |folder: &str| place.run(&[&["check", "--json", folder], door].concat());
        assert!(rules(&of("bad")).contains(&rule), "{rule}: {}", of("bad").stdout);
        assert_eq!(of("good").stdout.trim(), "[]", "{rule}");
    }
}

/// What SARIF 2.1.0 requires of the parts that are used here, and what GitHub requires beyond it.
fn essential_schema() -> Value {
    serde_json::from_str(include_str!("sarif.schema.json")).unwrap()
}

#[test]
fn sarif_is_what_code_scanning_reads() {
    let place = Place::new()
        .with("h/a b.json", "{\n  \"target\": \"chat\",\n  \"roles\": [\"asistant\"]\n}\n")
        .with("h/c.json", r#"[{"target":"tool","tools":["Bash"]},{"target":"tool","tools":["Bash"]}]"#);
    std::os::unix::fs::symlink("nowhere", place.path("h/link.json")).unwrap();
    let ran = place.run(&["check", "--sarif", "h"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let log: Value = serde_json::from_str(&ran.stdout).unwrap();
    let validator = jsonschema::validator_for(&essential_schema()).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(&log).map(|fault| format!("{fault} at {}", fault.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    // the schema is no pushover
    assert!(!validator.is_valid(&json!({"version": "2.1.0", "runs": [{}]})));
    let (results, known) =
        (log["runs"][0]["results"].as_array().unwrap(), &log["runs"][0]["tool"]["driver"]["rules"]);
    assert_eq!(results.len(), 4);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(known[index]["id"], result["ruleId"]);
    }
    let place_of = |at: usize| &results[at]["locations"][0]["physicalLocation"];
    assert_eq!(place_of(0)["artifactLocation"]["uri"], "h/a%20b.json");
    assert_eq!(
        place_of(0)["region"],
        json!({"startLine": 3, "startColumn": 13, "endLine": 3, "endColumn": 23})
    );
    assert_eq!(place_of(1)["region"], json!({"startLine": 1}));
    assert_eq!((&results[0]["level"], &results[2]["level"]), (&json!("error"), &json!("warning")));
    let mut prints: Vec<String> =
        results.iter().map(|result| result["partialFingerprints"].to_string()).collect();
    prints.sort();
    prints.dedup();
    assert_eq!(prints.len(), 4);
    // nothing found is a log too
    let fine = Place::new().with("h/a.json", r#"{"target":"chat"}"#).run(&["check", "--sarif", "h"]);
    let log: Value = serde_json::from_str(&fine.stdout).unwrap();
    assert!(validator.is_valid(&log) && log["runs"][0]["results"] == json!([]), "{log}");
    assert_eq!(fine.code, Some(0));
}

#[test]
fn an_agent_s_limits_are_told() {
    let place = Place::new().with(
        "h/a.json",
        r#"{"id":"a","event":"pre_tool_use","timeout_ms":40000,"handler":{"type":"command","argv":["/bin/true"]}}"#,
    );
    let ran = place.run(&["check", "--agent", "claude-code", "h"]);
    assert!(ran.stdout.contains("Claude Code waits 30 seconds at pre_tool_use"), "{}", ran.stdout);
    place.run(&["check", "h"]).is(0, "1 good hook, no problems, no warnings\n", "");
    place.run(&["check", "--agent", "robot", "h"]).fails(2, "robot");
}

#[test]
fn what_a_door_cannot_do_is_told_of_each_that_is_named() {
    let resend = "{\n  \"label\": \"again\",\n  \"target\": \"chat\",\n  \"roles\": [\"user\"],\n  \"actions\": [\n    \
                  { \"type\": \"interrupt\", \"resend\": true }\n  ]\n}\n";
    let place = Place::new().with("h/a.json", resend);
    let ran = place.run(&["check", "--door", "gateway", "h"]);
    let expected = "warning[door-cannot]: `hookgate gateway` cannot carry out `interrupt` with `resend` at `user` messages: \
                    the request has not gone out yet, and it goes on as if nothing had been wished\n \
                    --> h/a.json:6:38\n  |\n6 |     { \"type\": \"interrupt\", \"resend\": true }\n";
    assert!(ran.stdout.starts_with(expected), "{}", ran.stdout);
    assert!(ran.stdout.contains("hook 1 (again), field `actions[0].resend`"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(0));
    assert_eq!(place.run(&["check", "--door", "gateway", "--deny-warnings", "h"]).code, Some(1));
    // the send loop of the chat is ours
    place.run(&["check", "--door", "chat", "h"]).is(0, "1 good hook, no problems, no warnings\n", "");
    let several = place.run(&["check", "--json", "--door", "chat,gateway,codex", "--door", "mcp", "h"]);
    // in the order of the text: `mcp` about the target, the others about the action
    assert_eq!(rules(&several), ["door-cannot", "door-cannot", "agent-cannot"]);
    let sarif = place.run(&["check", "--sarif", "--door", "gateway", "h"]);
    let log: Value = serde_json::from_str(&sarif.stdout).unwrap();
    let result = &log["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("door-cannot"), &json!("warning")));
    assert_eq!(result["locations"][0]["physicalLocation"]["region"]["startLine"], 6);
    let typo = place.run(&["check", "--door", "gatway", "h"]);
    typo.fails(2, "unknown door `gatway`; expected one of chat, gateway, mcp, claude-code, ");
    typo.fails(2, "(did you mean `gateway`?)");
}

#[test]
fn built_in_hooks_are_compared_with_a_door_too() {
    let place = Place::new().with("hookgate.toml", "[builtin.secrets_stream]\nredact = true\n");
    let ran = place.run(&["check", "--json", "--door", "mcp"]);
    assert!(rules(&ran).contains(&"door-cannot".to_owned()), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_mistyped_required_field_is_told_once() {
    let place = Place::new()
        .with("h/a.json", r#"[{"event":"stop","handler":{"type":"script","sorce":"x"}},{"targt":"chat"}]"#);
    let ran = place.run(&["check", "h"]);
    assert!(ran.stdout.ends_with("no good hooks, 2 problems, no warnings\n"), "{}", ran.stdout);
    for help in ["help: did you mean `source`?", "help: did you mean `target`?"] {
        assert!(ran.stdout.contains(help), "{}", ran.stdout);
    }
}

#[test]
fn a_file_that_is_one_long_line_is_shown_in_part() {
    let filler = r#"{"target":"chat"},"#.repeat(20_000);
    let text = format!("[{filler}{{\"target\":\"chat\",\"roles\":[\"asistant\"]}},{filler}{{}}]");
    let ran = Place::new().with("h/a.json", &text).run(&["check", "h"]);
    let longest = ran.stdout.lines().map(str::len).max().unwrap();
    assert!(longest < 300, "{longest}");
    assert!(ran.stdout.contains("\"roles\":[\"asistant\"]"), "{}", ran.stdout);
}
