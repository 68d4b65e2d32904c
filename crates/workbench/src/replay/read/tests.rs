//! What readers make of small histories as agents write them. The corpus is this project's; the shapes are theirs.

use super::{document, reader};
use crate::replay::format::Format;
use crate::replay::step::{Outcome, Step, Told};
use hookgate_core::word::Word;
use serde_json::Value;
use std::path::PathBuf;

/// A step as a short line.
fn shown(told: &Told) -> String {
    let text = match &told.step {
        Step::Begin { session } => format!("begin {}", session.as_deref().unwrap_or("-")),
        Step::Prompt(text) => format!("prompt {text}"),
        Step::Piece { is_thought, text } => {
            format!("{} {text}", if *is_thought { "thought" } else { "text" })
        }
        Step::Call { id, call } => {
            format!("call {id} {} {} {}", call.tool_name, call.tool_names.join(","), call.tool_input)
        }
        Step::AnswerEnd => "answer end".into(),
        Step::Void => "void".into(),
        Step::Result { id, outcome: Outcome::Output(output) } => format!("output {id} {output}"),
        Step::Result { id, outcome: Outcome::Error(error) } => format!("error {id} {error}"),
        Step::Message { role, origin, text } => {
            format!("message {} {} {text}", role.as_str(), origin.as_str())
        }
    };
    let agent = told.agent.as_ref().map(|agent| format!("[{agent}] ")).unwrap_or_default();
    format!("{} {agent}{}", told.line, text.replace('\n', "⏎"))
}

fn corpus(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn lines(format: Format, text: &str) -> Vec<String> {
    let mut reader = reader(format, None);
    let mut shown_lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let mut told = Vec::new();
        let value: Result<Value, _> = serde_json::from_str(line).map_err(|_| "not JSON".to_owned());
        if let Err(why) = value.and_then(|value| reader.line(number, value, &mut told)) {
            shown_lines.push(format!("{number} damaged: {why}"));
        }
        shown_lines.extend(told.iter().map(shown));
    }
    shown_lines
}

#[track_caller]
fn check(format: Format, text: &str, want: &[&str]) {
    let got = lines(format, text);
    assert_eq!(got, want, "\n{}\n", got.join("\n"));
}

#[test]
fn claude_code() {
    check(
        Format::ClaudeCode,
        &corpus("transcripts/claude-code/session.jsonl"),
        &[
            "3 begin 5b1c8f2e-6a4d-4c1b-9f3e-2d7a8c9e0b11",
            "4 prompt Please clean up the build folder",
            "5 thought The build folder is disposable.",
            "6 text I'll remove it.",
            r#"7 call toolu_01A exec Bash {"command":"rm -rf build","description":"Remove build output","cwd":"/home/me/shop"}"#,
            r#"8 output toolu_01A {"stdout":"","stderr":"","interrupted":false,"isImage":false}"#,
            "8 message tool tool ",
            "9 answer end",
            r#"9 call toolu_01B read_file Read {"file_path":"/home/me/shop/README.md","path":"/home/me/shop/README.md"}"#,
            r#"10 call toolu_01C exec Bash {"command":"make test","cwd":"/home/me/shop"}"#,
            "11 error toolu_01C Exit code 2⏎make: *** No rule to make target 'test'.",
            "11 message tool tool Exit code 2⏎make: *** No rule to make target 'test'.",
            r##"12 output toolu_01B {"type":"text","file":{"filePath":"/home/me/shop/README.md","content":"# Shop\n","numLines":1,"startLine":1,"totalLines":1}}"##,
            "12 message tool tool 1→# Shop⏎",
            "13 damaged: not JSON",
            "14 answer end",
            r#"14 call toolu_01D subagent Agent {"description":"look for tests","prompt":"Find the tests","subagent_type":"Explore","agentType":"Explore"}"#,
            "15 [a1b2c3] message user user Find the tests",
            r#"16 [a1b2c3] call toolu_02A search Grep {"pattern":"fn test","path":"/home/me/shop","query":"fn test"}"#,
            r#"17 [a1b2c3] output toolu_02A {"mode":"files_with_matches","filenames":[],"numFiles":0}"#,
            "17 [a1b2c3] message tool tool No matches found",
            "18 [a1b2c3] answer end",
            "18 [a1b2c3] text There are no tests.",
            r#"19 output toolu_01D {"status":"completed","agentId":"a1b2c3","content":[{"type":"text","text":"There are no tests."}]}"#,
            "19 message tool tool There are no tests.",
            "21 answer end",
            "21 text The build folder is gone; there are no tests.",
            "23 prompt Thanks, now push it",
            "24 answer end",
            r#"24 call toolu_01E mcp mcp__git__push {"remote":"origin","mcp":{"server":"git","tool":"push"}}"#,
            r#"25 output toolu_01E "pushed""#,
            "25 message tool tool pushed",
            "27 answer end",
            "27 text Pushed.",
        ],
    );
    check(
        Format::ClaudeCode,
        r#"{"type":"user","sessionId":"s"}"#,
        &["1 damaged: a line of type `user` has no message content"],
    );
    check(Format::ClaudeCode, "[1]", &["1 damaged: it is no object"]);
}

#[test]
fn codex() {
    let id = "019e763f-ff0c-7683-a4e9-a17e2bf964fb";
    check(
        Format::Codex,
        &corpus(&format!("transcripts/codex/rollout-2026-11-28T10-00-00-{id}.jsonl")),
        &[
            "1 begin 019e763f-ff0c-7683-a4e9-a17e2bf964fb",
            "4 prompt Show me the disk",
            "7 thought **Looking at the disk**",
            "8 text I look.",
            r#"9 call call_1 exec shell {"command":"df -h","workdir":"/srv","cwd":"/srv"}"#,
            r#"10 call call_2 exec exec_command {"cmd":"rm -rf /srv/data","command":"rm -rf /srv/data","cwd":"/home/me/shop/web"}"#,
            r#"12 output call_1 "80% full\n""#,
            "12 message tool tool 80% full⏎",
            r#"13 output call_2 "gone\n""#,
            "13 message tool tool Chunk ID: c9df88⏎Wall time: 0.0000 seconds⏎Process exited with code 0⏎Original token count: 1⏎Output:⏎gone⏎",
            r#"14 call call_3 edit_file apply_patch {"patch":"*** Begin Patch\n*** Update File: notes.md\n@@\n-a\n+b\n*** End Patch\n","path":"/home/me/shop/web/notes.md","paths":["/home/me/shop/web/notes.md"],"content":"*** Begin Patch\n*** Update File: notes.md\n@@\n-a\n+b\n*** End Patch\n"}"#,
            r#"15 output call_3 "Success. Updated the following files:\nM notes.md\n""#,
            "15 message tool tool Success. Updated the following files:⏎M notes.md⏎",
            r#"16 call call_4 exec shell {"type":"exec","command":"ls 'a b'","timeout_ms":1000,"cwd":"/home/me/shop/web"}"#,
            "17 error call_4 no such file",
            "17 message tool tool no such file",
            "19 text It is 80% full.",
        ],
    );
    check(
        Format::Codex,
        &corpus("transcripts/codex/old.jsonl"),
        &["1 begin old-1", "3 prompt hello", "4 text Hi."],
    );
    check(
        Format::Codex,
        r#"{"type":"response_item"}"#,
        &["1 damaged: a line of type `response_item` has no payload"],
    );
}

const CHAT: &str = r#"{"type":"message","message":{"role":"user","content":"go","origin":"user"}}
{"type":"request","messages":1}
{"type":"chunk","chunk":"reasoning","text":"hm"}
{"type":"chunk","chunk":"content","text":"a "}
{"type":"chunk","chunk":"content","text":"b"}
{"type":"chunk","chunk":"finish","reason":"tool_calls"}
{"type":"message","message":{"role":"reasoning","content":"hm","origin":"model"}}
{"type":"message","message":{"role":"assistant","content":"a b","origin":"model","tool_calls":[{"id":"c","name":"exec","arguments":"{\"command\":\"ls\"}"},{"id":"c","name":"exec","arguments":"{}"}]}}
{"type":"tool","event":"before","name":"exec","args":{"command":"ls"}}
{"type":"tool","event":"after","name":"exec","args":{"command":"ls"},"result":{"stdout":"x"}}
{"type":"message","message":{"role":"tool","content":"x","origin":"tool","tool_call_id":"c"}}
{"type":"blocked","what":"exec","hook":"h","reason":"r","cause":"decision"}
{"type":"tool","event":"error","name":"exec","args":{},"error":"r"}
{"type":"message","message":{"role":"tool","content":"error: r","origin":"tool","tool_call_id":"c","is_error":true}}
{"type":"request","messages":5}
{"type":"chunk","chunk":"content","text":"bad"}
{"type":"interrupt","hook":"h","resend":true}
{"type":"queued","hook":"h","message":{"role":"user","content":"again","origin":"hook"}}
{"type":"message","message":{"role":"user","content":"again","origin":"hook"}}
{"type":"message","message":{"role":"assistant","content":"good","origin":"model"}}
{"type":"end","outcome":"answered","text":"good","finish":"stop","usage":null}
{"type":"message","message":{"role":"user","content":"another run","origin":"user"}}
{"type":"tool","event":"after","name":"exec","args":{},"result":1}
{"type":"message","message":{"role":"nobody"}}
"#;

#[test]
fn chat_log() {
    check(
        Format::ChatLog,
        CHAT,
        &[
            "1 begin -",
            "1 prompt go",
            "2 void",
            "3 thought hm",
            "4 text a ",
            "5 text b",
            r#"8 call 1 exec  {"command":"ls"}"#,
            "8 call 2 exec  {}",
            "8 answer end",
            r#"10 output 1 {"stdout":"x"}"#,
            "11 message tool tool x",
            "14 message tool tool error: r",
            "15 void",
            "16 text bad",
            "17 void",
            "19 message user hook again",
            "20 text good",
            "20 answer end",
            "22 begin -",
            "22 prompt another run",
            "23 damaged: no answer before it calls `exec`",
            "24 damaged: its message has no role",
        ],
    );
}

#[track_caller]
fn check_document(text: &str, want: &[&str]) {
    let mut reader = reader(Format::Messages, None);
    let mut told = Vec::new();
    for (line, part) in document(text).unwrap() {
        reader.line(line, part, &mut told).unwrap();
    }
    let got: Vec<String> = told.iter().map(shown).collect();
    assert_eq!(got, want, "\n{}\n", got.join("\n"));
}

#[test]
fn lists_of_messages() {
    check_document(
        &corpus("transcripts/messages/openai.json"),
        &[
            "1 begin -",
            "8 prompt What is in it?",
            "12 answer end",
            "12 thought I list it.",
            r#"12 call c1 exec  {"command":"ls"}"#,
            r#"12 call c2 fetch_page  "not json""#,
            r#"35 output c1 "a.txt""#,
            "35 message tool tool a.txt",
            r#"40 output c2 "page""#,
            "40 message tool tool page",
            "50 answer end",
            "50 text a.txt",
        ],
    );
    check_document(
        &corpus("transcripts/messages/anthropic.json"),
        &[
            "2 begin -",
            "2 prompt What is in it?",
            "11 answer end",
            "11 thought I list it.",
            "11 text I look.",
            r#"11 call t1 exec  {"command":"ls"}"#,
            "33 error t1 no",
            "33 message tool tool no",
            "33 prompt go on",
            "53 answer end",
            "53 text Nothing.",
        ],
    );
    check(
        Format::Messages,
        &corpus("transcripts/messages/lines.jsonl"),
        &[
            "1 begin one",
            "1 prompt What is in it?",
            "1 thought I list it.",
            "1 answer end",
            "1 text I look.",
            r#"1 call f1 exec  {"command":"ls"}"#,
            r#"1 output f1 "a.txt""#,
            "1 message tool tool a.txt",
            "1 answer end",
            "1 text a.txt",
            "2 begin -",
            "2 prompt hi",
            "2 answer end",
            "2 text Hi.",
            "3 begin -",
            "3 prompt alone",
        ],
    );
    let one_a_line = lines(Format::Messages, &corpus("transcripts/messages/one-a-line.jsonl"));
    assert_eq!(one_a_line.iter().filter(|line| line.contains("begin")).count(), 1);
    assert_eq!(one_a_line.last().unwrap(), "5 text a.txt");
    check(
        Format::Messages,
        "{\"role\":\"wizard\",\"content\":\"x\"}\n3\n{}",
        &[
            "1 damaged: unknown role `wizard`",
            "1 begin -",
            "2 damaged: it is no message",
            "3 damaged: it is no message",
        ],
    );
}

#[test]
fn real_requests_are_read() {
    let request = |file: &str| {
        let mut reader = reader(Format::Messages, None);
        let mut told = Vec::new();
        for (line, part) in document(&corpus(file)).unwrap() {
            reader.line(line, part, &mut told).unwrap();
        }
        told.iter().filter(|told| matches!(told.step, Step::Call { .. } | Step::Result { .. })).count()
    };
    for file in [
        "captures/openai-responses/agent-codex-all-2.request.json",
        "captures/anthropic-messages/agent-claude-all-2.request.json",
        "captures/openai-chat/agent-cline-all-2.request.json",
        "captures/openai-chat/agent-opencode-all-3.request.json",
        "captures/openai-chat/py-openai_chat_tool_roundtrip_stream-2.request.json",
    ] {
        assert_eq!(request(file), 2, "a call and its result in {file}");
    }
}

#[test]
fn documents_without_messages_are_none() {
    for (text, want) in [
        ("{\n\"a\": 1}", "it holds no list of messages"),
        ("[\n1, 2]", "it holds no list of messages"),
        ("[\n]", "it holds no list of messages"),
        ("{\n\"messages\": [{\"role\": \"user\"", "it is not JSON (line 2"),
        ("{\n\"messages\": \"x\"}", "it holds no list of messages"),
        ("{\n# Readme", "it is not JSON (line 2"),
    ] {
        let error = document(text).unwrap_err();
        assert!(error.starts_with(want), "{text}: {error}");
    }
    // a long one takes time with its length, not with the square of it
    let message = "{\"role\": \"user\",\n\"content\": \"x\"}";
    let long = format!("[\n{}]", vec![message; 100_000].join(",\n"));
    assert_eq!(document(&long).unwrap().last().unwrap().0, 200_000);
    let conversations =
        "[\n{\"messages\": [\n{\"role\": \"user\", \"content\": \"a\"}]},\n{\"messages\": []}]";
    assert_eq!(document(conversations).unwrap().iter().map(|(line, _)| *line).collect::<Vec<_>>(), [2, 3, 4]);
}
