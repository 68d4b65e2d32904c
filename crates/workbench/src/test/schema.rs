//! The JSON Schema of test files, for editors. The reader does not use it: its own texts are better. A test holds the two
//! together.

use hookgate_core::event::{ChunkKind, Role};
use hookgate_core::point::Point;
use hookgate_core::verdict::{Cause, WarningCode};
use hookgate_core::word::Word;
use hookgate_handlers::said;
use serde_json::{Map, Value, json};

/// The name under which the schema is published.
pub const SCHEMA_ID: &str = "https://hookgate.dev/schema/tests-1.json";

/// The schema of a test file.
pub fn test_file() -> Value {
    let tests = json!({"type": "array", "items": {"$ref": "#/$defs/test"}});
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": SCHEMA_ID,
        "title": "Tests of hooks",
        "anyOf": [
            tests,
            object(
                &[
                    ("$schema", text("for editors")),
                    ("only", names("the hooks that these tests are about; without it all that are loaded")),
                    ("answers", answers()),
                    ("live", live()),
                    ("tests", tests.clone()),
                ],
                &["tests"],
            ),
        ],
        "$defs": {"test": test(), "step": step(&[]), "expect": expect(), "text": text_wanted(), "answer": answer()},
    })
}

fn test() -> Value {
    let mut test = object(
        &[
            ("name", text("what the test shows, in words; unique in the file")),
            ("event", json!({"$ref": "#/$defs/step", "description": "one step"})),
            (
                "session",
                json!({
                    "type": "array",
                    "minItems": 1,
                    "items": step(&[("expect", json!({"$ref": "#/$defs/expect"}))]),
                    "description": "several steps",
                }),
            ),
            ("answers", answers()),
            ("live", live()),
            (
                "expect",
                json!({"$ref": "#/$defs/expect", "description": "what must come of all steps together"}),
            ),
            ("sessionId", text("the session of all steps")),
            ("tenantId", text("the tenant of all steps")),
            ("agentId", text("the agent of all steps")),
            ("depth", json!({"type": "integer", "minimum": 0})),
        ],
        &["name"],
    );
    if let Some(members) = test.as_object_mut() {
        members.insert("oneOf".into(), json!([{"required": ["event"]}, {"required": ["session"]}]));
    }
    test
}

fn step(more: &[(&str, Value)]) -> Value {
    let pieces = json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]});
    let any = || json!({});
    let mut members = vec![
        ("event", one_of::<Point>("an event as handlers get it")),
        ("chunk", one_of::<ChunkKind>("a piece of a streamed answer")),
        ("prompt", text("the user writes")),
        ("answer", pieces.clone()),
        ("reasoning", pieces),
        ("tool", text("a tool is called")),
        ("input", any()),
        ("output", any()),
        ("error", text("what a tool said that failed")),
        ("text", text("the piece's text")),
        ("reason", text("why the answer ended")),
        ("index", json!({"type": "integer", "minimum": 0})),
        ("id", text("the tool call's id")),
        ("rawInput", text("what the user wrote")),
        ("toolName", text("the tool")),
        ("nativeToolName", text("the agent's own name of the tool")),
        ("toolInput", any()),
        ("toolOutput", any()),
        ("response", text("the answer's text")),
        ("role", one_of::<Role>("who speaks")),
        ("content", text("the message's text")),
        ("subagent", any()),
        ("depth", json!({"type": "integer", "minimum": 0})),
    ];
    for id in ["eventId", "sessionId", "rootSessionId", "tenantId", "agentId", "traceId"] {
        members.push((id, json!({"type": "string"})));
    }
    members.extend(more.iter().cloned());
    object(&members, &[])
}

fn expect() -> Value {
    let wanted = || json!({"$ref": "#/$defs/text"});
    let several = || json!({"anyOf": [wanted(), {"type": "array", "items": wanted()}]});
    let effect = object(
        &[
            (
                "type",
                json!({"enum": ["log", "warn", "info", "debug", "queue-message", "interrupt", "queue-resend", "redact", "block"]}),
            ),
            ("message", wanted()),
            ("with", wanted()),
            ("role", one_of::<Role>("who speaks in it")),
            ("resend", json!({"type": "boolean"})),
            ("hook", text("whose it is")),
        ],
        &["type"],
    );
    object(
        &[
            ("decision", json!({"enum": ["allow", "block"], "description": "whether something was stopped"})),
            ("hook", text("who stopped it")),
            ("reason", wanted()),
            ("cause", one_of::<Cause>("what lies behind the block")),
            ("updatedInput", json!({"type": ["object", "null"], "description": "the changed input"})),
            ("append", several()),
            ("send", several()),
            (
                "effects",
                json!({"type": "array", "items": effect, "description": "all that JSON hooks asked for, in order"}),
            ),
            ("hooks", names("exactly the hooks that fired or were asked, in any order")),
            ("text", wanted()),
            ("reasoning", wanted()),
            ("warnings", json!({"type": "array", "items": one_of::<WarningCode>("a warning's code")})),
        ],
        &[],
    )
}

fn text_wanted() -> Value {
    json!({"anyOf": [
        {"type": "string"},
        object(&[("contains", text("a part of it"))], &["contains"]),
        object(&[("matches", text("a pattern that is found in it"))], &["matches"]),
    ]})
}

fn answers() -> Value {
    json!({
        "type": "object",
        "additionalProperties": {"anyOf": [
            {"$ref": "#/$defs/answer"},
            {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/answer"}},
        ]},
        "description": "what handlers answer, by the name of the hook",
    })
}

fn answer() -> Value {
    let members: Vec<(&str, Value)> = said::MEMBERS.into_iter().map(|name| (name, json!({}))).collect();
    json!({"anyOf": [
        {"enum": ["allow", "block", "timeout", "error"]},
        object(&[("error", text("what went wrong"))], &["error"]),
        object(&members, &[]),
    ]})
}

fn names(description: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": description})
}

fn live() -> Value {
    json!({"type": "boolean", "description": "command, http and prompt handlers without an answer really run"})
}

fn text(description: &str) -> Value {
    json!({"type": "string", "description": description})
}

fn one_of<W: Word>(description: &str) -> Value {
    let words: Vec<&str> = W::ALL.iter().map(|(word, _)| *word).collect();
    json!({"enum": words, "description": description})
}

fn object(members: &[(&str, Value)], required: &[&str]) -> Value {
    let properties: Map<String, Value> =
        members.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}
