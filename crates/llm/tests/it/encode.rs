//! Requests as they are sent. `HOOKGATE_BLESS=1` writes the files anew; review them like code.

use std::fs;
use std::path::Path;

use hookgate_llm::{Message, Provider, Reasoning, Request, ToolCall, ToolChoice, ToolSpec};
use serde_json::{Value, json};

fn check(name: &str, request: &Request, stream: bool) {
    for provider in Provider::ALL {
        let body = (provider.wire().encode)(request, stream);
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/golden/{name}.{provider}.json"));
        if std::env::var_os("HOOKGATE_BLESS").is_some() {
            fs::write(&path, serde_json::to_string_pretty(&body).unwrap() + "\n").unwrap();
        }
        let golden: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        assert_eq!(body.to_string(), golden.to_string(), "{}", path.display());
    }
}

fn call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), arguments: arguments.into() }
}

fn exec() -> ToolSpec {
    let parameters = json!({ "type": "object", "properties": { "command": { "type": "string" } }, "required": ["command"] });
    ToolSpec { name: "exec".into(), description: "Runs a command.".into(), parameters }
}

#[test]
fn a_plain_question() {
    let messages = vec![Message::system("You are terse."), Message::user("Say hi.")];
    let request = Request { model: "m-1".into(), messages, ..Request::default() };
    check("plain", &request, true);
    check("plain_whole", &request, false);
}

#[test]
fn a_tool_round() {
    let thought =
        Reasoning { text: "I need the shell.".into(), signature: Some("c2ln".into()), redacted: None };
    let hidden = Reasoning { redacted: Some("aGlk".into()), ..Reasoning::default() };
    let unsigned = Reasoning { text: "Not to be sent.".into(), ..Reasoning::default() };
    let calls =
        vec![call("c1", "exec", "{\"command\": \"ls\"}"), call("c2", "now", ""), call("c3", "exec", "oops")];
    let messages = vec![
        Message::user("What is here?"),
        Message {
            reasoning: vec![thought, hidden, unsigned],
            ..Message::assistant_calls("Let me look.", calls)
        },
        Message::tool("c1", "a.txt"),
        Message::tool_error("c2", "no clock"),
        Message::user("And be quick."),
        Message::tool("c3", "?"),
    ];
    let now = ToolSpec { name: "now".into(), ..ToolSpec::default() };
    let request = Request { model: "m-1".into(), messages, tools: vec![exec(), now], ..Request::default() };
    check("tool_round", &request, true);
}

#[test]
fn every_setting() {
    let request = Request {
        model: "m-1".into(),
        messages: vec![
            Message::user("a"),
            Message::user("b"),
            Message::assistant(""),
            Message::assistant("c"),
            Message::user(" "),
        ],
        tools: vec![exec()],
        tool_choice: ToolChoice::Named("exec".into()),
        max_tokens: Some(50),
        temperature: Some(0.5),
        stop: vec!["END".into()],
        extra: json!({ "top_p": 0.9, "temperature": null }).as_object().unwrap().clone(),
    };
    check("settings", &request, true);
    check("required", &Request { tool_choice: ToolChoice::Required, ..request.clone() }, false);
    check("no_tools", &Request { tool_choice: ToolChoice::None, ..request }, false);
}
