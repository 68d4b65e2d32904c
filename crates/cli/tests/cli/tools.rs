//! `chat --tools`.

use crate::support::Place;

fn calling(tool: &str, args: &str) -> Place {
    let script = format!(
        r#"{{"turns":[{{"tool_calls":[{{"tool":"{tool}","args":{args}}}]}},{{"text":"It said: {{last_tool}}"}}]}}"#
    );
    Place::new().with("script.json", &script)
}

#[test]
fn tools_are_off_unless_named() {
    let place = calling("exec", r#"{"command":"echo hi"}"#);
    let ran = place.chat(&["x"]);
    assert!(!ran.stdout.contains("hi\\n"), "{}", ran.stdout);
    place.chat(&["--tools", "exec", "x"]).is(
        0,
        "It said: {\"exit_code\":0,\"stdout\":\"hi\\n\"}\n",
        "tool exec {\"command\":\"echo hi\"}\n",
    );
    let place = place.with("hookgate.toml", "[tools]\nenable = ['exec']\n");
    assert!(place.chat(&["x"]).stdout.contains("hi\\n"));
    assert!(!place.chat(&["--no-tools", "x"]).stdout.contains("hi\\n"));
}

#[test]
fn keys_are_not_for_commands() {
    let place = calling("exec", r#"{"command":"env"}"#)
        .env("OPENAI_API_KEY", "sk-1")
        .env("MY_MODEL_PASS", "sk-2")
        .env("OTHER", "shown")
        .with("hookgate.toml", "[model]\nprovider = 'scripted'\napi_key_env = 'MY_MODEL_PASS'\n");
    let ran = place.chat(&["--tools", "exec", "x"]);
    assert!(ran.stdout.contains("OTHER=shown"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("sk-"), "{}", ran.stdout);
}

#[test]
fn files_stay_in_the_working_directory() {
    let place = calling("write_file", r#"{"path":"a/b.txt","content":"x"}"#).with("work/README", "");
    place.chat(&["--tools", "read_file,write_file", "--workdir", "work", "x"]).is(
        0,
        "It said: created `a/b.txt` (1 bytes)\n",
        "tool write_file {\"path\":\"a/b.txt\",\"content\":\"x\"}\n",
    );
    assert_eq!(std::fs::read_to_string(place.path("work/a/b.txt")).unwrap(), "x");
    let place = calling("read_file", r#"{"path":"../script.json"}"#).with("work/README", "");
    let ran = place.chat(&["--tools", "read_file", "--workdir", "work", "x"]);
    assert!(ran.stdout.contains("outside of the working directory"), "{}", ran.stdout);
    ran.fails(0, "tool read_file failed: `../script.json` leads outside");
    place
        .chat(&["--tools", "read_file", "--workdir", "none", "x"])
        .fails(2, "the working directory none cannot be opened");
}

#[test]
fn this_machine_is_not_the_web() {
    let place = calling("fetch_page", r#"{"url":"http://127.0.0.1:1/"}"#);
    let ran = place.chat(&["--tools", "fetch_page", "x"]);
    assert!(ran.stdout.contains("127.0.0.1 is a loopback address"), "{}", ran.stdout);
    let place = place.with("hookgate.toml", "[tools]\nallow_private = true\n");
    let ran = place.chat(&["--tools", "fetch_page", "x"]);
    assert!(ran.stdout.contains("cannot be fetched"), "{}", ran.stdout);
}
