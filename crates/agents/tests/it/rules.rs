//! The rules that hold for every agent, each as a test over the whole table.

use hookgate_agents::event::{Can, Effect};
use hookgate_agents::outcome::{Outcome, Said, Word};
use hookgate_agents::read::Told;
use hookgate_agents::table;
use hookgate_core::facts::LifeEvent;
use hookgate_core::point::Point;
use serde_json::{Value, json};

fn all_answers(outcome: &Outcome) -> Vec<(String, bool, Said)> {
    let events = |agent: &'static dyn hookgate_agents::agent::Agent| {
        let outcome = outcome.clone();
        agent.events().iter().map(move |event| {
            let said = agent.say(event, &agent.within_means(event, &outcome), None);
            (format!("{} {}", agent.name(), event.name), event.can(Effect::Block), said)
        })
    };
    table::ALL.iter().flat_map(|agent| events(*agent)).collect()
}

/// Rule 1: one JSON document on stdout or nothing; stderr is empty unless it is the reason.
#[test]
fn one_document_or_nothing() {
    let blocks = [Outcome::block("R"), Outcome { word: Word::Ask("R".into()), ..Outcome::default() }];
    for outcome in [Outcome::default()].iter().chain(&blocks) {
        for (about, _, said) in all_answers(outcome) {
            let plain_text = about.starts_with("kiro") && !outcome.context.is_empty();
            if !said.stdout.is_empty() && !plain_text {
                let document: Result<Value, _> = serde_json::from_str(&said.stdout);
                assert!(document.is_ok_and(|value| value.is_object()), "{about}: {}", said.stdout);
            }
            assert!(said.stderr.is_empty() || said.stderr.ends_with('R'), "{about}: {}", said.stderr);
            assert_eq!(said.stderr.is_empty(), said.exit == 0, "{about}");
        }
    }
}

/// Rule 2: no opinion is silence, and `allow` is never said where it would be consent.
#[test]
fn no_opinion_is_no_consent() {
    let must_speak = ["cursor", "antigravity", "cline", "opencode", "openclaw", "docker-agent"];
    for (about, _, said) in all_answers(&Outcome::default()) {
        assert_eq!(said.exit, 0, "{about}");
        if !must_speak.iter().any(|name| about.starts_with(name)) {
            assert_eq!(said, Said::nothing(), "{about}");
        }
        assert!(!said.stdout.contains("permissionDecision"), "{about}");
    }
}

/// Rule 3: a block always has a reason.
#[test]
fn a_block_has_a_reason() {
    for (about, gate, said) in all_answers(&Outcome::block("  ")) {
        if gate {
            let words = format!("{}{}", said.stdout, said.stderr);
            // OpenClaw has a way to stop a message that takes no reason
            assert!(
                words.contains("no reason given") || about.ends_with("message_sending"),
                "{about}: {words}"
            );
        }
    }
}

/// Rule 4: only the fields of that event's schema. Codex drops the whole answer for one unknown field.
#[test]
fn codex_gets_its_fields_and_no_others() {
    let codex = table::find("codex").unwrap();
    let allowed = |event: &str| -> (&[&str], &[&str]) {
        match event {
            "PreToolUse" => (
                &["hookSpecificOutput"],
                &[
                    "hookEventName",
                    "permissionDecision",
                    "permissionDecisionReason",
                    "updatedInput",
                    "additionalContext",
                ],
            ),
            "PostToolUse" => {
                (&["decision", "reason", "hookSpecificOutput"], &["hookEventName", "additionalContext"])
            }
            "UserPromptSubmit" => {
                (&["decision", "reason", "hookSpecificOutput"], &["hookEventName", "additionalContext"])
            }
            "SessionStart" | "SubagentStart" => {
                (&["hookSpecificOutput"], &["hookEventName", "additionalContext"])
            }
            "PermissionRequest" => (&["hookSpecificOutput"], &["hookEventName", "decision"]),
            "Stop" | "SubagentStop" => (&["decision", "reason"], &[]),
            _ => (&[], &[]),
        }
    };
    let full = Outcome {
        word: Word::Nothing,
        input: Some(json!({"command": "x"})),
        text: Some("t".into()),
        context: vec!["c".into()],
    };
    let outcomes = [
        full.clone(),
        Outcome { word: Word::Block("R".into()), ..full.clone() },
        Outcome { word: Word::Ask("R".into()), ..full },
    ];
    for event in codex.events() {
        let (top, inner) = allowed(event.name);
        for outcome in &outcomes {
            let said = codex.say(event, &codex.within_means(event, outcome), None);
            if said.stdout.is_empty() {
                continue;
            }
            let document: Value = serde_json::from_str(&said.stdout).unwrap();
            for key in document.as_object().unwrap().keys() {
                assert!(top.contains(&key.as_str()), "{}: {key}", event.name);
            }
            let inside = document.get("hookSpecificOutput").and_then(Value::as_object);
            for key in inside.into_iter().flat_map(|members| members.keys()) {
                assert!(inner.contains(&key.as_str()), "{}: {key}", event.name);
            }
            if let Some(word) = document.pointer("/hookSpecificOutput/permissionDecision") {
                assert!(
                    *word == "deny"
                        || (*word == "allow"
                            && document.pointer("/hookSpecificOutput/updatedInput").is_some())
                );
            }
        }
    }
}

/// Rule 6: any fault is a block at every event that can be blocked, and silence elsewhere.
#[test]
fn a_fault_is_a_block_at_gates_and_nothing_elsewhere() {
    for agent in table::ALL {
        let silent = |event| agent.say(event, &Outcome::default(), None);
        for event in agent.events() {
            let said = agent.fault(Some(event), "the hooks are broken");
            if event.can(Effect::Block) {
                let words = format!("{}{}", said.stdout, said.stderr);
                assert!(said != silent(event), "{} {}", agent.name(), event.name);
                assert!(words.contains("the hooks are broken") || event.name == "message_sending");
            } else {
                assert_eq!(said, silent(event), "{} {}", agent.name(), event.name);
            }
        }
        // not even the event is known: still a no
        let said = agent.fault(None, "R");
        assert!(said.exit == 2 || said.stdout.contains('R'), "{}", agent.name());
    }
}

/// Rule 7: the agent's own fail-closed switch is in every entry.
#[test]
fn own_switches_are_set() {
    let item = |name: &str, event: &str| {
        let agent = table::find(name).unwrap();
        agent.setup().unwrap().item(agent.event(event).unwrap(), "LINE").unwrap()
    };
    assert_eq!(item("claude-code", "PreToolUse")["hooks"][0]["onFailure"], "block");
    assert_eq!(item("cursor", "preToolUse")["failClosed"], true);
    assert_eq!(item("goose", "PreToolUse")["hooks"][0]["on_failure"], "block");
}

/// Rules 8 and 9: one entry an event, and it matches everything.
#[test]
fn entries_match_everything() {
    for agent in table::ALL {
        let Some(setup) = agent.setup() else { continue };
        let mut seen = Vec::new();
        for event in agent.events().iter().filter(|event| event.installed) {
            assert!(!seen.contains(&event.name), "{} {}", agent.name(), event.name);
            seen.push(event.name);
            let Some(item) = setup.item(event, "LINE") else { continue };
            let matcher = item.get("matcher").and_then(Value::as_str);
            assert!(matches!(matcher, None | Some(".*")), "{} {}", agent.name(), event.name);
            assert_eq!(item.to_string().matches("LINE").count(), 1);
        }
    }
}

/// Rule 11: a question to a person is a block where nobody would be asked.
#[test]
fn nobody_is_asked_where_nobody_answers() {
    let ask = Outcome { word: Word::Ask("R".into()), ..Outcome::default() };
    for name in ["codex", "gemini-cli"] {
        let agent = table::find(name).unwrap();
        for event in agent.events() {
            let said = agent.say(event, &agent.within_means(event, &ask), None);
            assert!(!said.stdout.contains("\"ask\""), "{name} {}", event.name);
            if event.can(Effect::Block) {
                assert!(said.stdout.contains("needs a person: R"), "{name} {}", event.name);
            }
        }
    }
}

/// Rule 13: odd input.
#[test]
fn odd_input_is_understood() {
    let read =
        |name: &str, hint: Option<&str>, payload: Value| table::find(name).unwrap().read(hint, payload);
    // arguments as JSON text, in payloads that name no event
    let payload =
        json!({"timestamp": 1, "cwd": "/w", "toolName": "bash", "toolArgs": "{\"command\":\"rm -rf /\"}"});
    let copilot = read("copilot-cli", None, payload).unwrap();
    assert_eq!((copilot.event.name, &copilot.native_input), ("preToolUse", &json!({"command": "rm -rf /"})));
    // unknown members and events
    let unknown = read("claude-code", None, json!({"hook_event_name": "Tomorrow", "x": 1})).unwrap_err();
    assert_eq!(unknown.to_string(), "unknown event `Tomorrow`");
    // the settings name the event that the payload does not
    let hinted = read("claude-code", Some("PreToolUse"), json!({"tool_name": "Bash", "y": 2})).unwrap();
    assert_eq!((hinted.event.name, hinted.session.as_str()), ("PreToolUse", "unknown"));
    let lacks = read("claude-code", Some("PreToolUse"), json!({})).unwrap_err();
    assert_eq!(lacks.to_string(), "the agent's payload for PreToolUse has no usable `tool name`");
    let cut = read(
        "grok",
        None,
        json!({"hook_event_name": "PreToolUse", "toolName": "x", "toolInputTruncated": true}),
    );
    assert_eq!(cut.unwrap_err().to_string(), "the agent shows only a part of the tool's input");
}

/// A change that an agent cannot take over is a block, never silence.
#[test]
fn no_change_is_lost() {
    let changed =
        Outcome { input: Some(json!({"command": "x"})), text: Some("t".into()), ..Outcome::default() };
    for agent in table::ALL {
        for event in agent.events().iter().filter(|event| event.can(Effect::Block)) {
            let able = event.can(Effect::ChangeInput) || event.can(Effect::ChangeText);
            let said = agent.say(event, &agent.within_means(event, &changed), None);
            let words = format!("{}{}", said.stdout, said.stderr);
            assert!(able || words.contains("cannot take over"), "{} {}: {words}", agent.name(), event.name);
        }
    }
}

#[test]
fn what_agents_can_do() {
    let can = |name: &str, point, effect| table::find(name).unwrap().can(point, effect);
    assert_eq!(can("claude-code", Point::PreToolUse, Effect::Block), Can::Yes);
    assert_eq!(can("claude-code", Point::PreToolUse, Effect::ChangeInput), Can::Sometimes);
    assert_eq!(can("claude-code", Point::PreResponse, Effect::ChangeText), Can::Never);
    assert_eq!(can("qwen-code", Point::PreToolUse, Effect::ChangeInput), Can::No);
    assert_eq!(can("kiro", Point::UserPromptSubmit, Effect::Block), Can::No);
}

/// An agent without an event of its own for failures tells of them with results, or never.
#[test]
fn failures_come_with_results_where_the_agent_says_so() {
    let payloads = [
        ("gemini-cli", "AfterTool", "/tool_response/error", json!({"message": "x"})),
        ("kiro", "postToolUse", "/tool_response/success", json!(false)),
        ("docker-agent", "post_tool_use", "/tool_error", json!(true)),
        ("cline", "PostToolUse", "/tool_result/output", json!([{"success": false, "error": "x"}])),
        ("opencode", "tool.execute.after", "/output/isError", json!(true)),
        ("openclaw", "after_tool_call", "/error", json!("x")),
    ];
    for (name, event, pointer, value) in &payloads {
        let agent = table::find(name).unwrap();
        let mut payload = crate::json(&format!("payloads/{name}/{event}.json"));
        let (parent, member) = pointer.rsplit_once('/').unwrap();
        payload.pointer_mut(parent).unwrap_or_else(|| panic!("{name}: no {parent}"))[member] = value.clone();
        let read = agent.read(Some(event), payload).unwrap();
        let failed = read.told.iter().any(|told| matches!(told, Told::Life(LifeEvent::ToolError { .. })));
        assert!(failed, "{name}: {:?}", read.told);
        assert!(agent.tells(read.event, Point::ToolError) && agent.fails_with_results(), "{name}");
        assert_ne!(agent.can(Point::ToolError, Effect::Block), Can::Never, "{name}");
    }
    let saying = table::ALL.iter().filter(|agent| agent.fails_with_results()).count();
    assert_eq!(saying, payloads.len());
    for agent in table::ALL.iter().filter(|agent| agent.fails_with_results()) {
        assert!(agent.events().iter().all(|event| event.point != Some(Point::ToolError)), "{}", agent.name());
    }
}
