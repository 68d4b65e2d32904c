//! `install`, `uninstall`, `status`, `doctor`: agents' own settings files, before and after.

use crate::support::{Place, Ran};
use hookgate_agents::table;
use serde_json::Value;
use std::path::{Path, PathBuf};

const HOOK: &str = r#"{"id":"no","event":"pre_tool_use","matcher":"exec","if_expr":"toolInput.command.contains('rm')",
    "handler":{"type":"command","shell":"echo no >&2; exit 2"}}"#;

fn place() -> Place {
    let place = Place::new().with("my hooks/h.json", HOOK).with("project/.keep", "");
    let (home, data) = (place.path("home"), place.path("data"));
    std::fs::create_dir_all(&home).unwrap();
    place.env("HOME", home.to_str().unwrap()).env("HOOKGATE_DATA_DIR", data.to_str().unwrap())
}

fn install(place: &Place, agent: &str, more: &[&str]) -> Ran {
    place.run(&[&["install", agent, "--hooks", "my hooks"], more].concat())
}

fn uninstall(place: &Place, agent: &str, more: &[&str]) -> Ran {
    place.run(&[&["uninstall", agent], more].concat())
}

/// All files below a folder with their bytes.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files.extend(tree(&path))
        } else {
            files.push((path.clone(), std::fs::read(path).unwrap()))
        }
    }
    files.sort();
    files
}

#[test]
fn every_agent_that_can_be_wired_is_and_leaves_no_trace() {
    for agent in table::ALL.iter().filter(|agent| agent.setup().is_some()) {
        let name = agent.name();
        let place = place();
        let levels: &[&str] = if name == "vscode" { &["--project"] } else { &[] };
        let before = tree(place.dir());
        let ran = install(&place, name, levels);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        assert!(ran.stdout.starts_with(&format!("wired {name}: ")), "{name}: {}", ran.stdout);
        let wired = tree(place.dir());
        assert_ne!(before, wired, "{name}");
        let again = install(&place, name, levels);
        assert!(again.stdout.starts_with(&format!("{name} is wired already")), "{name}: {}", again.stdout);
        assert_eq!(tree(place.dir()), wired, "{name}");
        let status = place.run(&["status"]);
        assert!(
            status.stdout.contains(name) && !status.stdout.contains("install it again"),
            "{name}: {}",
            status.stdout
        );
        let doctor = place.run(&["doctor"]);
        assert_eq!(doctor.code, Some(0), "{name}: {}", doctor.stdout);
        assert!(doctor.stdout.contains("exit code 0"), "{name}: {}", doctor.stdout);
        let gone = uninstall(&place, name, levels);
        assert_eq!(gone.code, Some(0), "{name}: {}", gone.stderr);
        let left: Vec<_> =
            tree(place.dir()).into_iter().filter(|(path, _)| !path.starts_with(place.path("data"))).collect();
        assert_eq!(left, before, "{name}");
        assert_eq!(place.run(&["status"]).stdout, "no agent is wired\n");
    }
}

#[test]
fn settings_are_edited_in_place_and_come_back_byte_for_byte() {
    let texts = [
        "{\n  // keep\n  \"theme\": \"dark\",\n  \"permissions\": { \"allow\": [\"Bash(npm run lint)\",], },\n}\n",
        "{\"env\":{\"A\":\"1\"},\"hooks\":{\"PreToolUse\":[{\"matcher\":\"Bash\",\"hooks\":[{\"type\":\"command\",\"command\":\"other-hook.sh\"}]}]}}",
        "\u{feff}{\r\n\t\"a\" : 1\r\n}",
        "{}",
        "",
        "{\n    \"hooks\": {\n    }\n}\n",
    ];
    for text in texts {
        let place = place().with("settings.json", text);
        let file = ["--file", "settings.json"];
        let ran = install(&place, "claude-code", &file);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let with = std::fs::read_to_string(place.path("settings.json")).unwrap();
        for kept in ["// keep", "Bash(npm run lint)", "other-hook.sh"] {
            assert_eq!(with.contains(kept), text.contains(kept), "{with}");
        }
        assert_eq!(with.matches("hook claude-code PreToolUse ").count(), 1, "{with}");
        assert_eq!(std::fs::read_to_string(place.path("settings.json.before-hookgate")).unwrap(), text);
        uninstall(&place, "claude-code", &file);
        assert_eq!(std::fs::read_to_string(place.path("settings.json")).unwrap(), text);
        assert!(!place.path("settings.json.before-hookgate").exists());
    }
}

#[test]
fn what_others_add_meanwhile_stays() {
    let place = place().with("settings.json", "{\n  \"a\": 1\n}\n");
    let file = ["--file", "settings.json"];
    install(&place, "claude-code", &file);
    let path = place.path("settings.json");
    let edited = std::fs::read_to_string(&path).unwrap().replace("\"a\": 1", "\"a\": 2, // mine");
    std::fs::write(&path, edited).unwrap();
    // another folder of hooks: still one entry an event
    let place = place.with("other/h.json", HOOK);
    let ran = place.run(&["install", "claude-code", "--hooks", "other", "--file", "settings.json"]);
    assert!(ran.stdout.starts_with("wired claude-code"), "{}", ran.stdout);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("/other ") && !text.contains("my hooks"), "{text}");
    uninstall(&place, "claude-code", &file);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"a\": 2") && text.contains("// mine") && !text.contains("hookgate"), "{text}");
}

#[test]
fn a_broken_file_is_left_as_it_is() {
    let texts = [
        "{\n  \"a\": 1\n  \"b\": 2\n}\n",
        "# x\n{}\n",
        "[]",
        "{\"hooks\": 1}",
        "{\"hooks\":{},\"hooks\":{}}",
    ];
    for text in texts {
        let place = place().with("settings.json", text);
        let before = tree(place.dir());
        install(&place, "gemini-cli", &["--file", "settings.json"]).fails(2, "settings.json");
        assert_eq!(tree(place.dir()), before, "{text}");
    }
    let place = place().with("config.toml", "a = \n");
    install(&place, "codex", &["--file", "config.toml"]).fails(2, "config.toml:1: line 1 is not TOML");
    let place = place.with("home/.cursor/hooks.json", "{\"version\": 2, \"hooks\": {}}");
    install(&place, "cursor", &[]).fails(2, "`version` is 2; expected 1");
}

#[test]
fn toml_settings_of_codex() {
    let text = "# mine\nmodel = \"x\"\n\n[features]\nhooks = true # on\n";
    let place = place().with("config.toml", text);
    install(&place, "codex", &["--file", "config.toml"]);
    let with = std::fs::read_to_string(place.path("config.toml")).unwrap();
    assert!(with.starts_with(text) && with.contains("[[hooks.PreToolUse]]"), "{with}");
    uninstall(&place, "codex", &["--file", "config.toml"]);
    assert_eq!(std::fs::read_to_string(place.path("config.toml")).unwrap(), text);
}

#[test]
fn a_dry_run_shows_and_changes_nothing() {
    let place = place().with("settings.json", "{\n  \"a\": 1\n}\n");
    let before = tree(place.dir());
    let ran = install(&place, "qwen-code", &["--file", "settings.json", "--dry-run"]);
    assert!(
        ran.stdout.contains("+++ ") && ran.stdout.contains("hook qwen-code PreToolUse"),
        "{}",
        ran.stdout
    );
    assert!(!ran.stdout.contains("before-hookgate"), "{}", ran.stdout);
    assert_eq!(tree(place.dir()), before);
}

#[test]
fn the_line_works_from_anywhere_and_is_bound_to_its_rules() {
    let place = place().with("project/hookgate.toml", "[hooks]\ndir = 'none'\n");
    install(&place, "claude-code", &[]);
    let text = std::fs::read_to_string(place.path("home/.claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let entry = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
    assert_eq!((&entry["onFailure"], &entry["timeout"]), (&"block".into(), &30.into()));
    let line = entry["command"].as_str().unwrap();
    let payload = r#"{"tool_name":"Bash","tool_input":{"command":"rm x"}}"#;
    let mut child = std::process::Command::new("sh")
        .args(["-c", line])
        .current_dir(place.path("project"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOOKGATE_DATA_DIR", place.path("data"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.as_bytes()).unwrap();
    let ran = Ran::from(child.wait_with_output().unwrap());
    assert!(ran.stdout.contains("blocked by hook no: no"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn the_doctor_finds_what_is_wrong() {
    let place = place().with("home/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}");
    place.run(&["doctor"]).is(1, "problem: no agent is wired\n", "");
    let ran = install(&place, "gemini-cli", &[]);
    assert!(
        ran.stdout
            .contains("warning: `hooksConfig.enabled` in ~/.gemini/settings.json switches all hooks off"),
        "{}",
        ran.stdout
    );
    let doctor = place.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1));
    assert!(doctor.stdout.contains("problem:   `hooksConfig.enabled`"), "{}", doctor.stdout);
    std::fs::write(place.path("my hooks/h.json"), "{").unwrap();
    let doctor = place.run(&["doctor"]);
    assert!(doctor.stdout.contains("Gemini CLI would stop every call"), "{}", doctor.stdout);
    let ran = install(&place, "codex", &[]);
    assert!(ran.stdout.contains("until it is reviewed") && ran.stdout.contains("h.json:1"), "{}", ran.stdout);
}

#[test]
fn what_is_asked_for_must_be_known() {
    let place = place();
    place.run(&["install", "nobody", "--hooks", "my hooks"]).fails(2, "unknown agent `nobody`");
    place.run(&["install", "codex"]).fails(2, "which hooks? give --hooks DIR or --config FILE");
    place
        .run(&["install", "codex", "--hooks", "nowhere"])
        .fails(2, "the hooks folder nowhere cannot be found");
    install(&place, "openclaw", &[]).fails(2, "openclaw is not wired by a settings file");
    install(&place, "opencode", &["--managed"]).fails(2, "how opencode takes managed settings is not known");
    uninstall(&place, "codex", &[]).is(
        0,
        &format!("codex is not wired: {}\n", place.path("home/.codex/hooks.json").display()),
        "",
    );
}

#[test]
fn check_warns_of_what_an_agent_cannot_do() {
    let place = Place::new().with(
        "hookgate.toml",
        "[builtin]\npii_tools = true\npolicy_text = { text = \"x\" }\nsecrets_stream = true\ndestructive = true\n",
    );
    let warned = |agent: &str| place.run(&["check", "--agent", agent]).stdout;
    let qwen = warned("qwen-code");
    assert!(
        qwen.contains(
            "Qwen Code cannot take over a changed input at pre_tool_use: the hook blocks there instead"
        ),
        "{qwen}"
    );
    assert!(
        qwen.contains("Qwen Code never tells of pre_response") && qwen.contains("never tells of chunk"),
        "{qwen}"
    );
    assert!(!qwen.contains("destructive"), "{qwen}");
    let opencode = warned("opencode");
    assert!(!opencode.contains("pre_response") && opencode.contains("never tells of chunk"), "{opencode}");
    place.run(&["check", "--agent", "nobody"]).fails(2, "unknown door `nobody`");
}
