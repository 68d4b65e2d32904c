//! Every payload in `corpus/agents/captured` is understood, and what the real programs did with an answer is what ours
//! relies on.

use crate::{corpus, json};
use hookgate_agents::agent::Agent;
use hookgate_agents::outcome::Outcome;
use hookgate_agents::read::Told;
use hookgate_agents::table;
use serde_json::Value;

const FOLDERS: &[(&str, &str)] = &[
    ("claude-2.1.332", "claude-code"),
    ("codex-0.171.0", "codex"),
    ("gemini-0.61.0", "gemini-cli"),
    ("qwen-0.24.4", "qwen-code"),
    ("copilot-1.0.102", "copilot-cli"),
    ("cline-3.0.65", "cline"),
    ("opencode-1.18.33", "opencode"),
];

/// What a plugin sees that no hook is asked about, and what is no payload.
const NO_PAYLOAD: &[&str] = &[
    "environment.json",
    "observed.json",
    "config.json",
    "plugin-init.json",
    "messages.transform.json",
    "system.transform.json",
    "tool.definition.json",
];
const NOT_WIRED: &[&str] =
    &["event.file.edited", "event.permission.replied", "event.session.diff", "event.session.status"];

/// A recorded payload with the event that the hook was wired for.
fn recorded(folder: &str) -> Vec<(String, Value)> {
    let mut files: Vec<String> = std::fs::read_dir(corpus(&format!("captured/{folder}")))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !NO_PAYLOAD.contains(&name.as_str()))
        .collect();
    files.sort();
    let payload = |name: &String| {
        let value = json(&format!("captured/{folder}/{name}"));
        let event = name.trim_end_matches(".json").trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        match name.strip_prefix("http-") {
            Some(_) => (event.trim_start_matches("http-").to_owned(), value["body"].clone()),
            None if event == "text.complete" => ("experimental.text.complete".to_owned(), value),
            None => (event.to_owned(), value),
        }
    };
    files.iter().map(payload).collect()
}

fn agent(name: &str) -> &'static dyn Agent {
    table::find(name).unwrap()
}

#[test]
fn all_are_understood() {
    let mut n = 0;
    for (folder, name) in FOLDERS {
        for (event, payload) in recorded(folder) {
            if NOT_WIRED.contains(&event.as_str()) {
                continue;
            }
            let read = agent(name)
                .read(Some(&event), payload)
                .unwrap_or_else(|error| panic!("{folder} {event}: {error}"));
            assert_eq!(read.event.name, event, "{folder}");
            assert!(read.event.point.is_none() || read.session != "unknown", "{folder} {event}: no session");
            // what was told can be answered, and a block is heard wherever the agent has a word for it
            let quiet = agent(name).answer(&read, &Outcome::default());
            assert!(quiet.exit == 0 && quiet.stderr.is_empty(), "{folder} {event}");
            n += 1;
        }
    }
    assert!(n > 100, "{n}");
}

#[test]
fn sub_agents_have_sessions_of_their_own() {
    let check = |name: &str, event: &str, file: &str, session: &str, root: Option<&str>| {
        let read = agent(name).read(Some(event), json(&format!("captured/{file}"))).unwrap();
        assert_eq!((read.session.as_str(), read.root.as_deref()), (session, root), "{file}");
    };
    let claude = "c7dfdd31-7514-42a6-9d8b-d839fc05cc35";
    check("claude-code", "PreToolUse", "claude-2.1.332/PreToolUse.3.json", claude, None);
    let inside = format!("{claude}/acfb7f7b54258ebba");
    check("claude-code", "PreToolUse", "claude-2.1.332/PreToolUse.4.json", &inside, Some(claude));
    let qwen = "2597903d-741f-4139-8673-e3af147fe893";
    let inside = format!("{qwen}/general-purpose-call_000100");
    check("qwen-code", "PreToolUse", "qwen-0.24.4/PreToolUse.4.json", &inside, Some(qwen));
    let (copilot, sub) = ("75cc810f-ab62-4caf-b43c-9087d8faa5cc", "994560f3-db25-4bc0-a5e9-767addfaf28b");
    check("copilot-cli", "preToolUse", "copilot-1.0.102/preToolUse.3.json", copilot, None);
    check("copilot-cli", "preToolUse", "copilot-1.0.102/preToolUse.4.json", sub, Some(copilot));
}

#[test]
fn a_sub_agent_is_asked_about_where_it_can_be_refused() {
    let gates = |name: &str, event: &str, file: &str| {
        let read = agent(name).read(Some(event), json(&format!("captured/{file}"))).unwrap();
        read.told.iter().filter(|told| matches!(told, Told::Gate(_))).count()
    };
    assert_eq!(gates("claude-code", "PreToolUse", "claude-2.1.332/PreToolUse.3.json"), 2);
    assert_eq!(gates("claude-code", "SubagentStart", "claude-2.1.332/SubagentStart.json"), 0);
    assert_eq!(gates("copilot-cli", "preToolUse", "copilot-1.0.102/preToolUse.3.json"), 2);
    assert_eq!(gates("opencode", "tool.execute.before", "opencode-1.18.33/tool.execute.before.3.json"), 2);
    // the prompt that comes again after tools
    assert_eq!(gates("qwen-code", "UserPromptSubmit", "qwen-0.24.4/UserPromptSubmit.2.json"), 0);
    assert_eq!(gates("qwen-code", "UserPromptSubmit", "qwen-0.24.4/UserPromptSubmit.json"), 1);
}

/// The answers that stopped the tool in the recorded experiments, and whether ours has the same shape.
#[test]
fn our_block_is_one_that_stopped_the_tool() {
    for (folder, name) in FOLDERS {
        let observed = json(&format!("captured/{folder}/observed.json"));
        let cases = observed["cases"].as_array().unwrap();
        let gate = agent(name).events()[0].name;
        let (_, payload) = recorded(folder).into_iter().find(|(event, _)| event == gate).unwrap();
        let read = agent(name).read(Some(gate), payload).unwrap();
        let ours = agent(name).answer(&read, &Outcome::block("R"));
        let ours: Value = serde_json::from_str(&ours.stdout).unwrap();
        let same = |answer: &Value| {
            let keys =
                |value: &Value| value.as_object().map(|members| members.keys().cloned().collect::<Vec<_>>());
            let inner = |value: &Value| value.get("hookSpecificOutput").and_then(keys);
            keys(answer) == keys(&ours) && inner(answer) == inner(&ours)
        };
        let stopped = cases.iter().filter(|case| case["post_tool_event_fired"] == false);
        let answers = stopped.filter_map(|case| case.get("hook_answer")?.get(gate)?.get("stdout"));
        let answers: Vec<&Value> = answers.collect();
        // plugins throw, and cline's refusal is a changed input
        if !matches!(*name, "opencode" | "cline") {
            assert!(
                answers.iter().any(|answer| same(answer)),
                "{folder}: none of {answers:?} is like {ours}"
            );
        }
    }
}
