//! `hookgate.toml`, the environment, flags.

use crate::support::Place;

fn log(text: &str) -> String {
    format!(r#"{{"target":"chat","roles":["user"],"actions":[{{"type":"log","message":"{text}"}}]}}"#)
}

/// Three hooks folders, each of which says its name.
fn place() -> Place {
    Place::answering("a")
        .with("flag/h.json", &log("flag"))
        .with("env/h.json", &log("env"))
        .with("file/h.json", &log("file"))
}

#[test]
fn the_hooks_folder_of_flag_then_file_then_environment() {
    place().chat(&["x"]).is(0, "a\n", "");
    let place = place().env("LLM_CHAT_HOOKS_DIR", "env");
    place.chat(&["x"]).is(0, "a\n", "env\n");
    let place = place.with("hookgate.toml", "[hooks]\ndir = 'file'\n");
    place.chat(&["x"]).is(0, "a\n", "file\n");
    place.chat(&["--hooks", "flag", "x"]).is(0, "a\n", "flag\n");
}

#[test]
fn the_file_is_found_upward_and_paths_are_relative_to_it() {
    let place = place()
        .with("hookgate.toml", "[hooks]\ndir = 'file'\n[model]\nscript = 'script.json'\n")
        .with("deep/er/x", "");
    let mut command = place.command(&["chat", "x"]);
    let output = command.current_dir(place.path("deep/er")).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "a\n");
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "file\n");
    let place = place.with("deep/other.toml", "[model]\nscript = '../script.json'\n");
    place.run(&["chat", "--config", "deep/other.toml", "x"]).is(0, "a\n", "");
    place
        .run(&["chat", "--config", "none.toml", "x"])
        .fails(2, "the configuration file none.toml cannot be read: No such file");
    let ran = place.run(&["list"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("file/h.json"), "{}", ran.stdout);
}

#[test]
fn rounds_of_flag_then_environment_then_file() {
    let script =
        r#"{"turns":[{"tool_calls":[{"tool":"exec","args":{"command":"true"}}]}],"repeat_last":true}"#;
    let place = Place::new()
        .with("script.json", script)
        .with("hookgate.toml", "[chat]\nmax_tool_call_rounds = 2\n[tools]\nenable = ['exec']\n");
    place.chat(&["x"]).fails(2, "stopped after 2 rounds");
    let place = place.env("LLM_CHAT_MAX_TOOL_CALL_ROUNDS", "1");
    place.chat(&["x"]).fails(2, "stopped after 1 rounds");
    place.chat(&["--max-tool-call-rounds", "0", "x"]).fails(2, "stopped after 0 rounds");
    let place = place.env("LLM_CHAT_MAX_TOOL_CALL_ROUNDS", "many");
    place
        .chat(&["x"])
        .fails(2, "LLM_CHAT_MAX_TOOL_CALL_ROUNDS: expected a whole number, zero or more, found `many`");
}

#[test]
fn the_file_is_strict() {
    let check = |text: &str, expected: &str| {
        let place = Place::answering("a").with("hookgate.toml", text);
        place.chat(&["x"]).fails(2, expected);
    };
    check(
        "[hooks]\ndirr = 'x'\n",
        "hookgate.toml:2:1: unknown key `dirr`, expected one of `dir`, `trusted_dir`, `on_invalid` (did you mean `dir`?)",
    );
    check("[model]\nname = 'a'\nname = 'b'\n", "hookgate.toml:3:1: duplicate key");
    check("[chat\n", "hookgate.toml:1:6: ");
    check(
        "[model]\nmax_tokens = 'many'\n",
        "hookgate.toml:2:14: invalid type: string \"many\", expected u32",
    );
}

#[test]
fn keys_are_named_when_they_are_missing_and_never_shown() {
    let place = Place::new();
    place.run(&["chat", "--model", "m", "x"]).fails(2, "set the environment variable OPENAI_API_KEY");
    let place = place.env("OPENAI_API_KEY", "sk-very-secret");
    place.run(&["chat", "x"]).fails(2, "no model is named for openai-chat");
    let ran = place.run(&["chat", "-v", "--model", "m", "--base-url", "http://127.0.0.1:1", "x"]);
    ran.fails(2, "no connection");
    assert!(!ran.stderr.contains("secret"), "{}", ran.stderr);
}
