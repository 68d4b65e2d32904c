//! A prompt and its answer.

use crate::support::Place;

#[test]
fn the_prompt_is_an_argument_or_standard_input() {
    let place = Place::answering("You said {prompt}.");
    place.chat(&["hello"]).is(0, "You said hello.\n", "");
    place.chat(&["--", "-v"]).is(0, "You said -v.\n", "");
    let chat = ["chat", "--script", "script.json"];
    place.pipe(b"from a pipe\n", &chat).is(0, "You said from a pipe.\n", "");
    place.pipe(b"two\nlines\r\n", &[&chat[..], &["-"]].concat()).is(0, "You said two\nlines.\n", "");
    place.pipe(b"ignored", &[&chat[..], &["argument"]].concat()).is(0, "You said argument.\n", "");
}

#[test]
fn a_prompt_that_is_none_is_an_error() {
    let place = Place::answering("x");
    place.chat(&[]).is(2, "", "error: the prompt is empty: give it as an argument or on standard input\n");
    place.chat(&[" "]).fails(2, "the prompt is empty");
    place.pipe(b"caf\xe9 au lait", &["chat"]).fails(2, "not UTF-8 text (byte 3)");
}

#[test]
fn the_embedded_demonstration_answers_without_key_and_network() {
    let ran = Place::new().run(&["chat", "hello"]);
    assert!(ran.stdout.starts_with("Hello! You said: hello."), "{}", ran.stdout);
    ran.is(0, &ran.stdout, "");
}

#[test]
fn wrong_arguments_are_told() {
    let place = Place::new();
    place.run(&[]).fails(2, "Usage: hookgate");
    place
        .run(&["chat", "--tools", "exec,rm", "x"])
        .fails(2, "[possible values: exec, read_file, write_file, fetch_page, task]");
    place.run(&["chat", "--provider", "opnai", "x"]).fails(2, "similar value exists: 'openai'");
    place.run(&["chat", "--max-resends", "few", "x"]).fails(2, "--max-resends");
    place
        .run(&["chat", "--script", "none.json", "x"])
        .fails(2, "the script none.json cannot be read: No such file");
    let place = place.with("bad.json", "{\"turns\": [{\"txt\": \"a\"}]}");
    place.run(&["chat", "--script", "bad.json", "x"]).fails(2, "bad.json: script, line 1");
    assert!(place.run(&["--version"]).stdout.starts_with("hookgate "));
}

#[test]
fn a_model_that_fails_is_an_error() {
    let place = Place::new()
        .with("script.json", r#"{"turns": [{"text": "half an answer", "error": "it broke", "after": 2}]}"#);
    let ran = place.chat(&["x"]);
    ran.is(2, "half an\n", "error: it broke\n");
    let ran = place.run(&["chat", "--base-url", "http://127.0.0.1:1", "x"]);
    ran.fails(2, "error: no connection to 127.0.0.1:1");
}

#[test]
fn thoughts_are_shown_to_those_who_ask() {
    let place = Place::new().with("script.json", r#"{"turns": [{"reasoning": "hm so", "text": "a b"}]}"#);
    place.chat(&["x"]).is(0, "a b\n", "");
    place.chat(&["-v", "x"]).is(0, "a b\n", "hm so\n");
}

#[test]
fn no_colours_and_no_escapes_in_a_pipe() {
    let place = Place::answering("\u{1b}[31mred").with(
        "hooks/w.json",
        r#"{"target":"chat","roles":["assistant"],"actions":[{"type":"warn","message":"{{content}}"}]}"#,
    );
    place.chat(&["x", "--hooks", "hooks"]).is(0, "\u{1b}[31mred\n", "\u{1b}[31mred\n");
}
