//! Every entry of `corpus/agents/payloads/index.json`, both ways: what the payload means, and the exact answer for each
//! verdict that the engine can have.

use crate::json;
use hookgate_agents::agent::Agent;
use hookgate_agents::event::Effect;
use hookgate_agents::outcome::{Outcome, Said, Word};
use hookgate_agents::read::{Read, Told};
use hookgate_agents::table;
use hookgate_core::facts::{GateEvent, LifeEvent};
use serde_json::{Value, json};

/// Verdicts that the engine does not have: nothing can ask an adapter to say them.
const NOT_OURS: &[&str] = &["approve", "stop_run", "answer", "retry"];
/// Other ways to say what is said already.
const OTHER_WAYS: &[&str] = &["block_exit2", "block_legacy"];

/// Answers that we give otherwise on purpose: agent, event, verdict, ours, why.
const ON_PURPOSE: &[(&str, &str, &str, &str)] = &[
    // without a decision the change is applied as well, and the user's own permission prompt still comes
    (
        "claude-code",
        "PreToolUse",
        "modify",
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"git status --short","description":"Show working tree status"}}}"#,
    ),
    (
        "claude-agent-sdk",
        "PreToolUse",
        "modify",
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"command":"git status --short"}}}"#,
    ),
    // it hangs without a terminal
    ("gemini-cli", "BeforeTool", "ask", r#"{"decision":"deny","reason":"needs a person: Needs a person"}"#),
    // no consent in the user's name: a change at the permission prompt would be one
    (
        "claude-code",
        "PermissionRequest",
        "modify",
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"a hook changes the input, which Claude Code cannot take over; so it is stopped"}}}"#,
    ),
    (
        "qwen-code",
        "PermissionRequest",
        "modify",
        r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"a hook changes the input, which Qwen Code cannot take over; so it is stopped"}}}"#,
    ),
    // a refused shell call says why, and the run goes on
    (
        "cline",
        "PreToolUse",
        "block",
        r#"{"cancel":false,"overrideInput":{"commands":["printf '%s\\n' 'Deleting build output is not allowed in this workspace'"]}}"#,
    ),
];

/// Verdicts of events that have no point of ours, or that ours cannot express there: the answer is silence.
fn has_no_words(event: &str, verdict: &str) -> bool {
    matches!(
        (event, verdict),
        ("PreCompact" | "ConfigChange", "block_exit2")
            | ("PostToolBatch" | "Elicitation" | "BeforeModel", "block")
            | (
                "MessageDisplay"
                    | "AfterModel"
                    | "BeforeModel"
                    | "BeforeToolSelection"
                    | "userPromptTransformed"
                    | "subagentStop"
                    | "shell.env"
                    | "tool_response_transform",
                "modify"
            )
            // the output of a tool is not changed by hooks
            | ("PostToolUse" | "postToolUse" | "tool.execute.after", "modify")
            // nobody adds context where a sub-agent starts or a turn ends
            | ("Stop", "add_context")
            // one who is told what it wants to hear at the start cannot be stopped there
            | ("sessionStart", "block")
    )
}

fn agent_of(entry: &Value) -> &'static dyn Agent {
    match entry["agent"].as_str().unwrap() {
        "claude-agent-sdk" => table::find("claude-code").unwrap(),
        name => table::find(name).unwrap_or_else(|| panic!("no agent {name}")),
    }
}

fn entries() -> Vec<Value> {
    json("payloads/index.json")["entries"].as_array().unwrap().clone()
}

fn read(entry: &Value) -> Read {
    let payload = json(&format!("payloads/{}", entry["input"].as_str().unwrap()));
    let (agent, event) = (agent_of(entry), entry["event"].as_str().unwrap());
    agent.read(Some(event), payload).unwrap_or_else(|error| panic!("{}: {error}", entry["input"]))
}

/// Our name of the tool that a call is about.
fn tool(read: &Read) -> Option<&str> {
    read.told.iter().find_map(|told| match told {
        Told::Gate(GateEvent::PreToolUse { tool_name, .. }) => Some(tool_name.as_str()),
        Told::Life(LifeEvent::PostToolUse { tool_name, .. } | LifeEvent::ToolError { tool_name, .. }) => {
            Some(tool_name.as_str())
        }
        _ => None,
    })
}

#[test]
fn payloads_mean_what_the_index_says() {
    let mut n_tools = 0;
    for entry in entries() {
        let read = read(&entry);
        let about = format!("{}", entry["input"]);
        assert_eq!(read.event.means, entry["canonical"], "{about}");
        // PermissionDenied is watched by nobody
        if let Some(want) = entry.get("canonical_tool").and_then(Value::as_str)
            && read.event.point.is_some()
            && entry["event"] != "tool_response_transform"
        {
            assert_eq!(tool(&read), Some(want), "{about}");
            n_tools += 1;
        }
    }
    assert!(n_tools > 80, "{n_tools}");
}

#[test]
fn the_event_is_known_without_a_hint_where_the_payload_shows_it() {
    // what names no event in its payload
    let needs_hint = |entry: &Value| {
        matches!(entry["agent"].as_str().unwrap(), "opencode" | "openclaw")
            || matches!(entry["event"].as_str().unwrap(), "errorOccurred" | "notification" | "preCompact")
    };
    for entry in entries().into_iter().filter(|entry| !needs_hint(entry)) {
        let payload = json(&format!("payloads/{}", entry["input"].as_str().unwrap()));
        let read = agent_of(&entry)
            .read(None, payload)
            .unwrap_or_else(|error| panic!("{}: {error}", entry["input"]));
        assert_eq!(read.event.name, entry["event"], "{}", entry["input"]);
    }
}

/// What the engine would have said for a verdict of the index.
fn outcome(verdict: &str, wanted: &Value, stderr: &str) -> Outcome {
    let find = |names: &[&str]| find(wanted, names).cloned();
    let text = |names: &[&str]| {
        let found = find(names).and_then(|value| value.as_str().map(str::to_owned));
        found.unwrap_or_else(|| stderr.to_owned())
    };
    let reason = [
        "permissionDecisionReason",
        "permission_decision_reason",
        "reason",
        "errorMessage",
        "message",
        "agent_message",
        "user_message",
        "blockReason",
        "followup_message",
        "description",
    ];
    match verdict {
        "block" => {
            let reason = match find(&["throw"]) {
                Some(thrown) => thrown.as_str().unwrap().trim_start_matches("Error: ").to_owned(),
                None => text(&reason),
            };
            Outcome::block(reason)
        }
        "ask" => {
            let words = [
                "permissionDecisionReason",
                "permission_decision_reason",
                "description",
                "user_message",
                "reason",
            ];
            Outcome { word: Word::Ask(text(&words)), ..Outcome::default() }
        }
        "modify" => {
            let names = [
                "updatedInput",
                "updated_input",
                "modifiedArgs",
                "tool_input",
                "overrideInput",
                "args",
                "params",
                "overwrite",
            ];
            Outcome {
                input: find(&names),
                text: find(&["content", "text"]).and_then(|t| t.as_str().map(str::to_owned)),
                ..Outcome::default()
            }
        }
        "add_context" => {
            let context = match find(&["parts"]) {
                Some(parts) => parts.as_array().unwrap().last().unwrap()["text"].as_str().unwrap().to_owned(),
                None => text(&["additionalContext", "additional_context", "context"]),
            };
            Outcome { context: vec![context], ..Outcome::default() }
        }
        _ => Outcome::default(),
    }
}

/// The first member of one of these names, at any depth.
fn find<'v>(value: &'v Value, names: &[&str]) -> Option<&'v Value> {
    let members = value.as_object()?;
    names
        .iter()
        .find_map(|name| members.get(*name))
        .or_else(|| members.values().find_map(|inner| find(inner, names)))
}

fn said(stdout: &str) -> Value {
    if stdout.is_empty() { Value::Null } else { serde_json::from_str(stdout).unwrap() }
}

#[test]
fn answers_are_those_of_the_index() {
    let mut n_checked = 0;
    for entry in entries() {
        let (agent, read) = (agent_of(&entry), read(&entry));
        for output in entry["outputs"].as_array().into_iter().flatten() {
            let verdict = output["verdict"].as_str().unwrap();
            let event = entry["event"].as_str().unwrap();
            let about = format!("{} {event} {verdict}", entry["agent"]);
            if NOT_OURS.contains(&verdict) || OTHER_WAYS.contains(&verdict) || verdict == "soft_block" {
                continue;
            }
            let file = output.get("file").and_then(Value::as_str);
            let mut want = file.map_or(Value::Null, |file| json(&format!("payloads/{file}")));
            let stderr = output.get("stderr").and_then(Value::as_str).unwrap_or_default();
            let got: Said = agent.answer(&read, &outcome(verdict, &want, stderr));
            if has_no_words(event, verdict) {
                let quiet = agent.answer(&read, &Outcome::default());
                assert_eq!(got, quiet, "{about}: nothing can be said there");
                continue;
            }
            let on_purpose = ON_PURPOSE
                .iter()
                .find(|(name, at, of, _)| entry["agent"] == *name && event == *at && verdict == *of);
            if let Some((_, _, _, ours)) = on_purpose {
                assert_eq!(said(&got.stdout), said(ours), "{about}");
                continue;
            }
            if entry["agent"] == "kiro" && verdict == "add_context" {
                assert!(got.exit == 0 && got.stderr.is_empty(), "{about}");
                continue;
            }
            adjust(&entry, verdict, &mut want);
            assert_eq!(said(&got.stdout), want, "{about}");
            let exit = output["exit"].as_u64().unwrap_or(0);
            let reason = if exit == 2 { stderr } else { "" };
            assert_eq!((u64::from(got.exit), got.stderr.as_str()), (exit, reason), "{about}");
            n_checked += 1;
        }
    }
    assert!(n_checked > 150, "{n_checked}");
}

/// Parts of the index's answers that stand for something else.
fn adjust(entry: &Value, verdict: &str, want: &mut Value) {
    match (entry["agent"].as_str().unwrap(), entry["event"].as_str().unwrap(), verdict) {
        // a callback returns an object, a program prints nothing
        ("claude-agent-sdk", _, "allow") => *want = Value::Null,
        // the environment is no matter of hooks
        ("cursor", "sessionStart", "add_context") => {
            want.as_object_mut().unwrap().remove("env");
        }
        // the words in front are ours
        ("codex", "PreToolUse", "ask") => {
            want["hookSpecificOutput"]["permissionDecisionReason"] = json!(
                "needs a person: Needs a person: Deleting build output is not allowed in this workspace"
            );
        }
        ("opencode", "chat.message", "add_context") => {
            let payload = json("payloads/opencode/chat.message.json");
            let mut parts = payload["output"]["parts"].as_array().unwrap().clone();
            let mut last = want["output"]["parts"].as_array().unwrap().last().unwrap().clone();
            last["id"] = json!("prt_0001-hookgate");
            parts.push(last);
            *want = json!({"output": {"parts": parts}});
        }
        ("antigravity", "PreToolUse", "modify") => want["reason"] = json!("no objection"),
        _ => {}
    }
}

#[test]
fn no_answer_is_one_of_the_traps() {
    for entry in entries() {
        let traps: Vec<String> = entry["traps"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|trap| trap.get("stdout").and_then(Value::as_str).map(str::to_owned))
            .collect();
        let (agent, read) = (agent_of(&entry), read(&entry));
        let changed = Outcome { input: Some(json!({"command": "x"})), ..Outcome::default() };
        let context = Outcome { context: vec!["c".into()], ..Outcome::default() };
        for outcome in [Outcome::default(), Outcome::block("x"), changed, context] {
            let got = agent.answer(&read, &outcome);
            assert!(
                !traps.iter().any(|trap| trap.trim_end() == got.stdout.trim_end() && !trap.is_empty()),
                "{}: {}",
                entry["input"],
                got.stdout
            );
            if outcome.word != Word::Nothing && read.event.can(Effect::Block) {
                let refuses = got.exit == 2 || !got.stdout.is_empty();
                assert!(refuses, "{}: a block is never silence", entry["input"]);
            }
        }
    }
}
