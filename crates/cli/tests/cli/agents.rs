//! `hookgate hook`: the answers that a coding agent gets, whatever happens.

use crate::support::{Place, Ran};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Blocks shell lines with `rm`, and lets everything else pass.
const GUARD: &str = r#"{"id":"no-rm","event":"pre_tool_use","matcher":"exec","timeout_ms":5000,
    "handler":{"type":"command","shell":"if grep -q 'rm -rf'; then echo 'not that' >&2; exit 2; fi"}}"#;

fn place() -> Place {
    let data = tempfile::tempdir().unwrap().keep();
    Place::new().env("HOOKGATE_DATA_DIR", data.to_str().unwrap())
}

fn guarded() -> Place {
    place().with("hooks/guard.json", GUARD)
}

fn call(place: &Place, agent: &str, event: &str, payload: &Value) -> Ran {
    place.pipe(payload.to_string().as_bytes(), &["hook", agent, event, "--hooks", "hooks"])
}

fn bash(command: &str) -> Value {
    json!({"session_id": "s", "cwd": "/w", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": command}, "tool_use_id": "t1"})
}

/// The reason of a deny in Claude Code's shape.
#[track_caller]
fn denied(ran: &Ran) -> String {
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{}", ran.stdout);
    let said: Value = serde_json::from_str(&ran.stdout).unwrap();
    let inner = &said["hookSpecificOutput"];
    assert_eq!(
        (&inner["hookEventName"], &inner["permissionDecision"]),
        (&json!("PreToolUse"), &json!("deny"))
    );
    inner["permissionDecisionReason"].as_str().unwrap().to_owned()
}

#[test]
fn a_block_and_silence() {
    let place = guarded();
    let reason = denied(&call(&place, "claude-code", "PreToolUse", &bash("rm -rf build")));
    assert_eq!(reason, "blocked by hook no-rm: not that");
    call(&place, "claude-code", "PreToolUse", &bash("ls")).is(0, "", "");
    // another tool, and an event that nobody listens to
    let edit = json!({"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {}});
    call(&place, "claude-code", "PreToolUse", &edit).is(0, "", "");
    call(&place, "claude-code", "SessionStart", &json!({"hook_event_name": "SessionStart"})).is(0, "", "");
}

#[test]
fn both_programs_answer_alike() {
    let place = guarded();
    let (block, pass) = (bash("rm -rf build").to_string(), bash("ls").to_string());
    let hook = ["hook", "claude-code", "PreToolUse", "--hooks", "hooks"];
    let cases: [(&[&str], &str); 7] = [
        (&hook, &block),
        (&hook, &pass),
        (&hook, "no JSON"),
        (&["hook", "claude-code", "PreToolUse", "--hooks", "nowhere"], &block),
        (&["hook", "claude-code", "PreToolUse", "--from-a-later-version"], &block),
        (&["hook", "codex", "--from-a-later-version"], &block),
        (&["hook", "nobody", "--hooks", "hooks"], &block),
    ];
    for (args, payload) in cases {
        let ran = |program| {
            let ran = Place::feed(place.command_of(program, args), payload.as_bytes());
            (ran.code, ran.stdout, ran.stderr)
        };
        assert_eq!(
            ran(env!("CARGO_BIN_EXE_hookgate-hook")),
            ran(env!("CARGO_BIN_EXE_hookgate")),
            "{args:?} {payload}"
        );
    }
    let other = Place::feed(place.command_of(env!("CARGO_BIN_EXE_hookgate-hook"), &["list"]), b"");
    other.fails(2, "this program is for coding agents: `hookgate-hook hook AGENT [EVENT]`");
}

/// The small program cannot find a name's address (`build.rs`); the whole one beside it goes on with its call.
#[cfg(one_piece)]
#[test]
fn a_hook_that_talks_to_the_network_is_asked_by_the_whole_program() {
    let hook = r#"{"id":"ask","event":"pre_tool_use","matcher":"exec",
        "handler":{"type":"http","url":"http://policy.example/judge"}}"#;
    let place = place().with("hooks/ask.json", hook).with("bin/hookgate", "#!/bin/sh\necho \"$@\"\ncat\n");
    let whole = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(place.path("bin/hookgate"), whole).unwrap();
    let small = place.path("bin/hookgate-hook");
    std::fs::copy(env!("CARGO_BIN_EXE_hookgate-hook"), &small).unwrap();
    let ask = |payload: &Value| {
        let args = ["hook", "claude-code", "PreToolUse", "--hooks", "hooks"];
        Place::feed(place.command_of(small.to_str().unwrap(), &args), payload.to_string().as_bytes())
    };
    // more than a pipe holds
    let long = bash(&"x".repeat(200_000));
    ask(&long).is(0, &format!("hook claude-code PreToolUse --hooks hooks\n{long}"), "");
    let edit = json!({"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {}});
    ask(&edit).is(0, "", "");
    // where there is no other program, this one says no
    std::fs::remove_file(place.path("bin/hookgate")).unwrap();
    assert!(denied(&ask(&bash("ls"))).contains("ask"), "the hook is named");
}

#[test]
fn one_folder_guards_them_all() {
    let place = guarded();
    let command = "rm -rf build";
    let shell = |tool: &str| json!({"tool_name": tool, "tool_input": {"command": command}});
    let calls = [
        ("codex", "PreToolUse", shell("Bash"), "permissionDecision"),
        ("gemini-cli", "BeforeTool", shell("run_shell_command"), "\"decision\":\"deny\""),
        ("qwen-code", "PreToolUse", shell("run_shell_command"), "\"deny\""),
        (
            "copilot-cli",
            "preToolUse",
            json!({"toolName": "bash", "toolArgs": {"command": command}}),
            "\"deny\"",
        ),
        ("cursor", "preToolUse", shell("Shell"), "\"permission\":\"deny\""),
        (
            "opencode",
            "tool.execute.before",
            json!({"input": {"tool": "bash", "sessionID": "s"}, "output": {"args": {"command": command}}}),
            "\"throw\":\"Error: ",
        ),
        (
            "cline",
            "PreToolUse",
            json!({"tool_call": {"name": "run_commands", "input": {"commands": [command]}}}),
            "printf",
        ),
        (
            "openclaw",
            "before_tool_call",
            json!({"toolName": "exec", "params": {"command": command}}),
            "\"block\":true",
        ),
        (
            "antigravity",
            "PreToolUse",
            json!({"toolCall": {"name": "run_command", "args": {"CommandLine": command}}}),
            "deny",
        ),
    ];
    for (agent, event, payload, words) in calls {
        let ran = call(&place, agent, event, &payload);
        assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{agent}");
        assert!(ran.stdout.contains(words) && ran.stdout.contains("not that"), "{agent}: {}", ran.stdout);
    }
    for (agent, event, payload) in [
        ("kiro", "preToolUse", shell("execute_bash")),
        ("windsurf", "pre_run_command", json!({"tool_info": {"command_line": command}})),
        ("grok", "PreToolUse", shell("run_terminal_command")),
    ] {
        call(&place, agent, event, &payload).fails(2, "blocked by hook no-rm: not that");
    }
}

#[test]
fn matchers_and_conditions_see_both_names() {
    let hook = |id: &str, more: &str| {
        format!(
            r#"{{"id":"{id}","event":"pre_tool_use",{more},"handler":{{"type":"command","shell":"echo {id} >&2; exit 2"}}}}"#
        )
    };
    let check = |more: &str, tool: &str, blocks: bool| {
        let place = place().with("hooks/h.json", &hook("h", more));
        let payload =
            json!({"tool_name": tool, "tool_input": {"command": "x", "file_path": "a.txt"}, "cwd": "/w"});
        let ran = call(&place, "claude-code", "PreToolUse", &payload);
        assert_eq!(!ran.stdout.is_empty(), blocks, "{more} {tool}: {}", ran.stdout);
    };
    check(r#""matcher":"exec""#, "Bash", true);
    check(r#""matcher":"Bash""#, "Bash", true);
    check(r#""matcher":"bash""#, "Bash", false);
    check(r#""matcher":"mcp""#, "mcp__tracker__lookup", true);
    check(r#""matcher":"mcp__tracker__.*""#, "mcp__tracker__lookup", true);
    check(r#""if_expr":"nativeToolName == 'Bash' && toolName == 'exec'""#, "Bash", true);
    check(r#""if_expr":"toolInput.path == '/w/a.txt'""#, "Write", true);
    check(r#""if_expr":"toolInput.mcp.server == 'tracker'""#, "mcp__tracker__lookup", true);
}

#[test]
fn every_fault_is_a_no_in_the_agents_words() {
    let broken = place().with("hooks/broken.json", r#"{"event": "pre_tool_use", "handler": "#);
    let reason = denied(&call(&broken, "claude-code", "PreToolUse", &bash("ls")));
    assert!(reason.contains("broken.json"), "{reason}");
    let missing = place();
    let reason = denied(&call(&missing, "codex", "PreToolUse", &bash("ls")));
    assert!(reason.contains("hooks folder cannot be read"), "{reason}");
    let none = place();
    let ran = none.pipe(bash("ls").to_string().as_bytes(), &["hook", "claude-code", "PreToolUse"]);
    assert!(denied(&ran).contains("no hooks are configured"), "{}", ran.stdout);
    let config = guarded().with("hookgate.toml", "[hook]\n");
    let ran = config.pipe(bash("ls").to_string().as_bytes(), &["hook", "claude-code", "PreToolUse"]);
    assert!(denied(&ran).contains("unknown key `hook`"), "{}", ran.stdout);
    // a script that does not compile is found when it is needed
    let script = place().with(
        "hooks/s.json",
        r#"{"id":"s","event":"pre_tool_use","handler":{"type":"script","source":"function handle( {"}}"#,
    );
    let reason = denied(&call(&script, "claude-code", "PreToolUse", &bash("ls")));
    assert!(reason.contains("hook s failed: its script failed"), "{reason}");
    // what only watches is let pass
    let stop = json!({"hook_event_name": "Stop", "stop_hook_active": false});
    call(&broken, "claude-code", "Stop", &stop).is(0, "", "");
}

#[test]
fn odd_payloads() {
    let place = guarded();
    let hook =
        |input: &[u8], event: &str| place.pipe(input, &["hook", "claude-code", event, "--hooks", "hooks"]);
    for input in [&b"not json"[..], b"", b"[]", b"{\"tool_name\":", b"\xff\xfe", b"{\"tool_name\":\"\xff\"}"]
    {
        let reason = denied(&hook(input, "PreToolUse"));
        assert!(reason.contains("the agent's payload cannot be read"), "{reason}");
    }
    hook(b"not json", "Stop").is(0, "", "");
    hook(b"not json", "NoSuchEvent").fails(2, "the agent's payload cannot be read");
    hook(br#"{"hook_event_name":"Tomorrow"}"#, "Tomorrow").is(0, "", "");
    let mut with_bom = b"\xef\xbb\xbf".to_vec();
    with_bom.extend(bash("rm -rf /").to_string().as_bytes());
    assert_eq!(denied(&hook(&with_bom, "PreToolUse")), "blocked by hook no-rm: not that");
    let long = bash(&format!("rm -rf {}", "x".repeat(4 << 20)));
    assert_eq!(denied(&hook(long.to_string().as_bytes(), "PreToolUse")), "blocked by hook no-rm: not that");
    let deep = format!("{}{}", r#"{"tool_name":"Bash","tool_input":"#, "[".repeat(100_000));
    denied(&hook(deep.as_bytes(), "PreToolUse"));
    // a line of another version
    let ran = place.pipe(b"{}", &["hook", "claude-code", "PreToolUse", "--hoks", "hooks"]);
    assert!(denied(&ran).contains("does not know its arguments"), "{}", ran.stdout);
    let ran = place.pipe(b"{}", &["hook", "cline", "PreToolUse", "--hoks", "hooks"]);
    assert!(ran.stdout.contains("\"cancel\":true"), "{}", ran.stdout);
    place
        .run(&["hook", "no-such-agent"])
        .fails(2, "unknown agent `no-such-agent`; expected one of claude-code, codex");
}

#[test]
fn the_answer_comes_before_the_agents_limit() {
    let slow = place().with(
        "hooks/slow.json",
        r#"{"id":"slow","event":"pre_tool_use","timeout_ms":60000,"handler":{"type":"command","argv":["sleep","60"]}}"#,
    );
    let args = ["hook", "copilot-cli", "preToolUse", "--hooks", "hooks", "--timeout-ms", "4000"];
    let started = Instant::now();
    let ran = slow.pipe(br#"{"toolName":"bash","toolArgs":{"command":"x"}}"#, &args);
    let took = started.elapsed();
    assert!(ran.stdout.contains("\"permissionDecision\":\"deny\""), "{}", ran.stdout);
    assert!(ran.stdout.contains("slow gave no answer in time"), "{}", ran.stdout);
    assert!(took < Duration::from_millis(4000), "{took:?}");
}

#[test]
fn a_caller_that_sends_nothing_gets_a_no() {
    let place = guarded();
    let args = ["hook", "claude-code", "PreToolUse", "--hooks", "hooks", "--timeout-ms", "800"];
    let mut child = place.command(&args).stdin(Stdio::piped()).spawn().unwrap();
    let held = child.stdin.take().unwrap();
    let started = Instant::now();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(started.elapsed() < Duration::from_millis(800));
    drop(held);
    assert_eq!(denied(&ran), "blocked because hookgate had no answer in time");
}

#[test]
fn a_turn_is_made_to_go_on_once_and_never_for_ever() {
    let place = place().with(
        "hooks/stop.json",
        r#"{"id":"tests","event":"stop","handler":{"type":"command","shell":"echo 'run the tests' >&2; exit 2"}}"#,
    );
    let stop = |agent: &str, event: &str, turn: Option<&str>, active: Option<bool>| {
        let payload = json!({"session_id": "s", "hook_event_name": event, "event": event, "prompt_id": turn, "stop_hook_active": active});
        call(&place, agent, event, &payload).stdout.trim_end().to_owned()
    };
    let words = r#"{"decision":"block","reason":"blocked by hook tests: run the tests"}"#;
    assert_eq!(stop("claude-code", "Stop", Some("t"), Some(false)), words);
    assert_eq!(stop("claude-code", "Stop", Some("t"), Some(true)), "");
    // the agent's flag falls back to false after a tool: the count does not
    assert_eq!(stop("claude-code", "Stop", Some("t"), Some(false)), words);
    assert_eq!(stop("claude-code", "Stop", Some("t"), Some(false)), words);
    assert_eq!(stop("claude-code", "Stop", Some("t"), Some(false)), "");
    assert_eq!(stop("claude-code", "Stop", Some("t2"), Some(false)), words);
    // an agent without a flag
    let rounds: Vec<bool> = (0..5).map(|_| !stop("goose", "Stop", None, None).is_empty()).collect();
    assert_eq!(rounds, [true, true, true, false, false]);
}

#[test]
fn json_hooks_count_over_processes() {
    let place = place().with(
        "hooks/h.json",
        r#"{"label":"twice","target":"tool","event":"before","tools":["exec"],"maxTriggers":2,
            "actions":[{"type":"interrupt"}]}"#,
    );
    let blocked = |session: &str| {
        let payload = json!({"session_id": session, "tool_name": "Bash", "tool_input": {"command": "ls"}});
        !call(&place, "claude-code", "PreToolUse", &payload).stdout.is_empty()
    };
    assert_eq!([blocked("a"), blocked("a"), blocked("a"), blocked("b")], [true, true, false, true]);
}

#[test]
fn changes_reach_the_agent_in_its_own_shape_or_block() {
    let config = "[builtin]\npii_tools = true\npii_prompt = true\n";
    let place = place().with("hookgate.toml", config);
    let hook = |agent: &str, event: &str, payload: &Value| {
        place
            .pipe(payload.to_string().as_bytes(), &["hook", agent, event, "--config", "hookgate.toml"])
            .stdout
    };
    let write = |key: &str| {
        let mut input = json!({"content": "mail jane.doe@example.com"});
        input[key] = json!("a.txt");
        input
    };
    let claude = hook(
        "claude-code",
        "PreToolUse",
        &json!({"tool_name": "Write", "tool_input": write("file_path"), "cwd": "/w"}),
    );
    let said: Value = serde_json::from_str(&claude).unwrap();
    let input = &said["hookSpecificOutput"]["updatedInput"];
    assert_eq!(input["file_path"], "a.txt", "{claude}");
    assert!(input.get("path").is_none() && !input["content"].as_str().unwrap().contains("jane"), "{claude}");
    assert!(said["hookSpecificOutput"].get("permissionDecision").is_none(), "{claude}");
    let qwen = hook(
        "qwen-code",
        "PreToolUse",
        &json!({"tool_name": "write_file", "tool_input": write("file_path")}),
    );
    assert!(qwen.contains("\"deny\"") && qwen.contains("Qwen Code cannot take over"), "{qwen}");
    let copilot = hook("copilot-cli", "userPromptSubmitted", &json!({"prompt": "I am jane.doe@example.com"}));
    assert!(copilot.contains("modifiedPrompt") && !copilot.contains("jane"), "{copilot}");
    let claude = hook("claude-code", "UserPromptSubmit", &json!({"prompt": "I am jane.doe@example.com"}));
    assert!(claude.contains("\"decision\":\"block\""), "{claude}");
}

#[test]
fn settings_that_switch_hooks_off_are_guarded() {
    let place = place().with("hookgate.toml", "[builtin]\nprotected_paths = true\n");
    let hook = |agent: &str, event: &str, payload: &Value| {
        place
            .pipe(payload.to_string().as_bytes(), &["hook", agent, event, "--config", "hookgate.toml"])
            .stdout
    };
    let write = |path: &str| json!({"tool_name": "Write", "tool_input": {"file_path": path, "content": "{}"}, "cwd": "/w"});
    for path in [
        ".claude/settings.json",
        "/w/.gemini/settings.json",
        ".qwen/settings.json",
        ".codex/config.toml",
        "hookgate.toml",
    ] {
        assert!(hook("claude-code", "PreToolUse", &write(path)).contains("\"deny\""), "{path}");
    }
    assert_eq!(hook("claude-code", "PreToolUse", &write("src/main.rs")), "");
    assert!(
        hook("claude-code", "PreToolUse", &bash("echo '{}' > .claude/settings.json")).contains("\"deny\"")
    );
    let patch = "*** Begin Patch\n*** Add File: .codex/config.toml\n+x\n*** End Patch\n";
    let patch = json!({"tool_name": "apply_patch", "tool_input": {"command": patch}, "cwd": "/w"});
    assert!(hook("codex", "PreToolUse", &patch).contains("\"deny\""));
}

#[test]
fn records_tell_sessions_and_sub_agents_apart() {
    let place = guarded();
    let mut inside = bash("ls");
    inside["agent_id"] = json!("sub");
    call(&place, "claude-code", "PreToolUse", &bash("rm -rf x"));
    // the agent repeats the call: one record
    call(&place, "claude-code", "PreToolUse", &bash("rm -rf x"));
    call(&place, "claude-code", "PreToolUse", &inside);
    let rows = place.run(&["audit", "list", "--json"]);
    let rows: Value = serde_json::from_str(&rows.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let seen: Vec<(&str, &str, &str)> = rows
        .iter()
        .map(|row| {
            let text = |key: &str| row[key].as_str().unwrap_or_default();
            (text("session_id"), text("decision"), text("tool_name"))
        })
        .collect();
    assert_eq!(seen, [("s/sub", "allow", "exec"), ("s", "block", "exec")]);
    assert_eq!(rows[0]["agent_id"], "claude-code");
}

#[test]
fn what_hooks_log_is_in_the_journal_and_nowhere_else() {
    let data = tempfile::tempdir().unwrap();
    let place = Place::new().with(
        "hooks/h.json",
        r#"{"label":"l","target":"tool","event":"before","actions":[{"type":"log","message":"ran {{name}}"}]}"#,
    );
    let args = [
        "hook",
        "claude-code",
        "PreToolUse",
        "--hooks",
        "hooks",
        "--data-dir",
        data.path().to_str().unwrap(),
    ];
    std::fs::create_dir_all(data.path()).unwrap();
    place.pipe(bash("ls").to_string().as_bytes(), &args).is(0, "", "");
    let journal = std::fs::read_to_string(data.path().join("agents.log")).unwrap();
    assert!(journal.ends_with("claude-code log: ran exec\n"), "{journal}");
}

#[test]
fn a_configuration_in_the_opened_project_does_not_replace_the_users() {
    let user = guarded();
    let project = place().with("hookgate.toml", "[hooks]\ndir = 'empty'\n").with("empty/readme.md", "");
    let hooks = user.path("hooks");
    let args = ["hook", "claude-code", "PreToolUse", "--hooks", hooks.to_str().unwrap()];
    assert_eq!(
        denied(&project.pipe(bash("rm -rf x").to_string().as_bytes(), &args)),
        "blocked by hook no-rm: not that"
    );
}
