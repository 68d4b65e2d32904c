//! Reads what a script returned.

use hookgate_core::handler::{Answer, Mode};
use hookgate_core::point::Stage;
use serde_json::{Map, Value};

/// The longest reason, in characters.
const LONGEST_REASON: usize = 1024;

/// Takes an answer out of a result's JSON text. At a gate anything but a verdict is a fault.
pub(super) fn read(json: &str, stage: Stage) -> Result<Answer, String> {
    let result: Value =
        serde_json::from_str(&mended(json)).map_err(|error| format!("the result cannot be read: {error}"))?;
    let Value::Object(mut members) = result else {
        return Err(format!("the result is {}; expected an object with `decision`", kind(&result)));
    };
    let decision = match (members.remove("decision"), stage) {
        (Some(Value::String(word)), _) if word == "allow" || word == "block" => Some(word),
        (Some(Value::String(word)), _) => {
            let word: String = word.chars().take(40).collect();
            return Err(format!("`{word}` is no decision; expected allow or block"));
        }
        (Some(other), _) => return Err(format!("`decision` is {}; expected allow or block", kind(&other))),
        (None, Stage::Gate) => return Err("the result has no `decision`".into()),
        (None, Stage::Shape | Stage::Watch) => None,
    };
    let reason = match members.remove("reason") {
        Some(Value::String(text)) => Some(text.chars().take(LONGEST_REASON).collect()),
        _ => None,
    };
    let updated_input = match members.remove("updatedInput") {
        None => None,
        Some(Value::Object(change)) => Some(change),
        // a block stands, whatever is written beside it
        Some(_) if decision.as_deref() == Some("block") => None,
        Some(other) => return Err(format!("`updatedInput` is {}; expected an object", kind(&other))),
    };
    let additions = if stage == Stage::Shape { additions(&mut members)? } else { Vec::new() };
    Ok(Answer { decision, reason, updated_input, additions, ..Answer::default() })
}

/// Texts for the answer, in the order in which the members are listed here.
fn additions(members: &mut Map<String, Value>) -> Result<Vec<(Option<Mode>, String)>, String> {
    let mut all = Vec::new();
    for (name, mode) in [
        ("output", None),
        ("append", Some(Mode::Append)),
        ("appendResponse", Some(Mode::Append)),
        ("send", Some(Mode::Send)),
        ("extraMessages", Some(Mode::Send)),
    ] {
        let items = match members.remove(name) {
            None | Some(Value::Null) => continue,
            Some(Value::Array(items)) => items,
            Some(item) => vec![item],
        };
        for item in items {
            let Value::String(text) = item else {
                return Err(format!(
                    "`{name}` is or holds {}; expected text or a list of texts",
                    kind(&item)
                ));
            };
            all.push((mode, text));
        }
    }
    Ok(all)
}

/// What is returned with no text in JSON: an answer where silence is fine.
pub(super) fn nothing(stage: Stage) -> Result<Answer, String> {
    match stage {
        Stage::Gate => Err("nothing was returned; expected an object with `decision`".into()),
        Stage::Shape | Stage::Watch => Ok(Answer::default()),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Half a surrogate pair, which the engine writes as an escape, is no character: U+FFFD takes its place. Whole pairs
/// are never written as escapes.
fn mended(json: &str) -> std::borrow::Cow<'_, str> {
    if !json.contains("\\ud") {
        return json.into();
    }
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let half = escape.as_bytes().get(..6).is_some_and(|bytes| {
            matches!(bytes, [_, b'u', b'd', b'8'..=b'9' | b'a'..=b'f', c, d] if c.is_ascii_hexdigit() && d.is_ascii_hexdigit())
        });
        // an escape's second byte is taken with it, so that `\\ud800` stays what it is
        let length = if half { 6 } else { 2 };
        let (escape, after) = escape.split_at_checked(length).unwrap_or((escape, ""));
        out.push_str(if half { "\\ufffd" } else { escape });
        rest = after;
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_mended_and_nothing_else() {
        for (json, expected) in [
            (r#"{"a":"\ud800"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\\ud800"}"#, r#"{"a":"\\ud800"}"#),
            (r#"{"a":"\\\udfff\n"}"#, r#"{"a":"\\\ufffd\n"}"#),
            (r#"{"a":"\ud7ff"}"#, r#"{"a":"\ud7ff"}"#),
            (r#"{"a":"é\udc00é"}"#, r#"{"a":"é\ufffdé"}"#),
        ] {
            assert_eq!(mended(json), expected);
        }
    }

    #[test]
    fn only_a_verdict_passes_a_gate() {
        let gate = |json: &str| read(json, Stage::Gate);
        assert_eq!(gate(r#"{"decision":"allow","x":1}"#), Ok(Answer::with_decision("allow")));
        assert_eq!(
            gate(r#"{"decision":"block","reason":4,"updatedInput":5}"#),
            Ok(Answer::with_decision("block"))
        );
        for json in [
            "null",
            "[]",
            "{}",
            r#"{"decision":"timeout"}"#,
            r#"{"decision":true}"#,
            r#"{"decision":"allow","updatedInput":null}"#,
        ] {
            assert!(gate(json).is_err(), "{json}");
        }
        let long = format!(r#"{{"decision":"block","reason":"{}"}}"#, "é".repeat(2000));
        assert_eq!(gate(&long).unwrap().reason.unwrap().chars().count(), 1024);
    }

    #[test]
    fn additions_are_for_answers() {
        let json = r#"{"append":"a","extraMessages":["b"],"output":"c"}"#;
        let additions = read(json, Stage::Shape).unwrap().additions;
        let text = |text: &str| text.to_owned();
        assert_eq!(
            additions,
            [(None, text("c")), (Some(Mode::Append), text("a")), (Some(Mode::Send), text("b"))]
        );
        assert_eq!(read(json, Stage::Watch), Ok(Answer::default()));
        assert!(read(r#"{"append":[1]}"#, Stage::Shape).is_err());
    }
}
