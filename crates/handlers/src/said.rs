//! What a handler says: a JSON object, alone or somewhere in a text.
//!
//! | member | value |
//! |---|---|
//! | `decision` | `allow` or `block`; other words are passed on, and the dispatcher makes a fault of them |
//! | `reason` | text |
//! | `updatedInput` | an object: what it wants to change |
//! | `append`, `appendResponse` | text or a list of texts to be joined to the answer (pre_response) |
//! | `send`, `extraMessages` | the same, each a message of its own |
//! | `output` | the same, as the hook's `mode` says |
//!
//! Other members are passed over. A member that is written twice makes the object unreadable: two readers could be
//! told two stories.

use hookgate_core::handler::{Answer, Mode};
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::error::Category;
use serde_json::{Map, Value};
use std::fmt;

/// A longer reason is cut.
const LONGEST_REASON: usize = 4 * 1024;

/// So many unreadable objects are looked past.
const MOST_BROKEN: usize = 64;

/// A JSON object in which no member is written twice.
struct Object(Map<String, Value>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Object, A::Error> {
                let mut members = Map::new();
                while let Some((key, value)) = access.next_entry::<String, Value>()? {
                    if members.contains_key(&key) {
                        return Err(A::Error::custom(format!("`{}` is written twice", cut(&key, 40))));
                    }
                    members.insert(key, value);
                }
                Ok(Object(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Reads a text that is one JSON object and nothing else.
pub(crate) fn whole(text: &str) -> Result<Answer, String> {
    match serde_json::from_str::<Object>(text.trim_start_matches('\u{feff}')) {
        Ok(Object(members)) => read(members),
        Err(error) => Err(format!("is no JSON object ({error})")),
    }
}

/// The JSON objects of a text.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// What they say, in order.
    pub(crate) answers: Vec<Answer>,
    /// Where the last one stands.
    pub(crate) last: std::ops::Range<usize>,
    /// Why something that begins like a JSON object could not be read.
    pub(crate) broken: Option<String>,
    /// There is other text beside them.
    pub(crate) noise: bool,
}

/// Looks for JSON objects in a text.
pub(crate) fn find(text: &str) -> Found {
    let mut found = Found::default();
    let mut at = 0;
    let mut unreadable = 0;
    while let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(skip) = rest.find('{') else {
            found.noise |= !rest.trim().is_empty();
            break;
        };
        let (before, object) = rest.split_at(skip);
        found.noise |= !before.trim().is_empty();
        let mut stream = serde_json::Deserializer::from_str(object).into_iter::<Object>();
        match stream.next() {
            Some(Ok(Object(members))) => {
                let start = at.saturating_add(skip);
                at = start.saturating_add(stream.byte_offset());
                found.last = start..at;
                match read(members) {
                    Ok(answer) => found.answers.push(answer),
                    Err(why) => found.broken = Some(why),
                }
            }
            Some(Err(error)) if error.classify() == Category::Eof => {
                found.broken = Some("it breaks off inside a JSON object".into());
                break;
            }
            Some(Err(error)) => {
                if begins_like_json(object) {
                    unreadable += 1;
                    found.broken = Some(format!("it holds JSON that cannot be read ({error})"));
                }
                found.noise = true;
                if unreadable == MOST_BROKEN {
                    break;
                }
                at = at.saturating_add(skip).saturating_add(1);
            }
            None => break,
        }
    }
    found
}

impl Found {
    /// The strictest of the answers that decide: a block, then what is unreadable, then a word that is no decision,
    /// then the last allow. `None`: nothing that was read decides.
    pub(crate) fn strictest(mut self) -> Result<Option<Answer>, String> {
        let place = |word: fn(&str) -> bool, answers: &[Answer]| {
            answers.iter().rposition(|answer| answer.decision.as_deref().is_some_and(word))
        };
        if let Some(at) = place(|word| word == "block", &self.answers) {
            return Ok(Some(self.answers.swap_remove(at)));
        }
        if let Some(why) = self.broken {
            return Err(why);
        }
        let at = place(|word| word != "allow", &self.answers).or_else(|| place(|_| true, &self.answers));
        Ok(at.map(|at| self.answers.swap_remove(at)))
    }
}

fn begins_like_json(text: &str) -> bool {
    text.strip_prefix('{').is_some_and(|rest| rest.trim_start().starts_with(['"', '}']))
}

/// The members that an answer may have.
pub const MEMBERS: [&str; 8] =
    ["decision", "reason", "updatedInput", "append", "appendResponse", "send", "extraMessages", "output"];

/// Takes an answer out of an object's members; others are passed over.
///
/// # Errors
/// A member has the wrong shape; one sentence.
pub fn read(mut members: Map<String, Value>) -> Result<Answer, String> {
    let mut answer = Answer {
        decision: text(&mut members, "decision")?,
        reason: text(&mut members, "reason")?.map(|reason| cut(&reason, LONGEST_REASON).to_owned()),
        ..Answer::default()
    };
    answer.updated_input = match members.remove("updatedInput") {
        None | Some(Value::Null) => None,
        Some(Value::Object(change)) => Some(change),
        Some(_) => return Err("`updatedInput` is no object".into()),
    };
    for (key, mode) in [
        ("append", Some(Mode::Append)),
        ("appendResponse", Some(Mode::Append)),
        ("send", Some(Mode::Send)),
        ("extraMessages", Some(Mode::Send)),
        ("output", None),
    ] {
        let texts = texts(&mut members, key)?;
        answer.additions.extend(texts.into_iter().map(|text| (mode, text)));
    }
    Ok(answer)
}

fn text(members: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match members.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is no text")),
    }
}

fn texts(members: &mut Map<String, Value>, key: &str) -> Result<Vec<String>, String> {
    let one = |value| match value {
        Value::String(text) => Ok(text),
        _ => Err(format!("`{key}` is no text and no list of texts")),
    };
    match members.remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.into_iter().map(one).collect(),
        Some(value) => one(value).map(|text| vec![text]),
    }
}

/// The beginning of a text, at most this many bytes, cut between characters.
pub(crate) fn cut(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    text.get(..end).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strictest_counts() {
        let word = |text: &str| find(text).strictest().map(|answer| answer.and_then(|a| a.decision));
        let said = |word: &str| Ok(Some(word.to_owned()));
        for (text, expected) in [
            (r#"{"decision":"allow"}"#, said("allow")),
            ("{\"decision\":\"block\"}\n{\"decision\":\"allow\"}", said("block")),
            ("{\"decision\":\"allow\"}{\"decision\":\"perhaps\"}", said("perhaps")),
            ("hi {there}\n{\"decision\":\"allow\"} bye", said("allow")),
            ("{\"type\":\"x\"}\n{\"decision\":\"allow\"}", said("allow")),
            ("{\"type\":\"x\"}", Ok(None)),
            ("nothing", Ok(None)),
            ("", Ok(None)),
            (r#"{"decision":"block"} {"decision":"#, said("block")),
        ] {
            assert_eq!(word(text), expected, "{text}");
        }
        for text in [
            r#"{"decision":"allow""#,
            r#"{"decision":"allow"} {"decision":"#,
            r#"{"decision":"block","decision":"allow"}"#,
            r#"{"decision":"allow",} {"decision":"allow"}"#,
            r#"{"decision":true}"#,
            r#"{"decision":"allow","updatedInput":[]}"#,
        ] {
            assert!(word(text).is_err(), "{text}: {:?}", word(text));
        }
    }

    #[test]
    fn hostile_texts_take_no_time() {
        let began = std::time::Instant::now();
        for text in
            ["{\"a\":".repeat(13_000), "{\"a\":[".repeat(11_000), "{".repeat(65_536), "{\"".repeat(32_768)]
        {
            assert!(find(&text).answers.is_empty());
        }
        assert!(began.elapsed().as_secs() < 5, "{:?}", began.elapsed());
    }

    #[test]
    fn additions_keep_their_order() {
        let answer =
            whole(r#"{"append":"a","appendResponse":["b","c"],"send":null,"extraMessages":["d"]}"#).unwrap();
        let texts: Vec<_> =
            answer.additions.iter().map(|(mode, text)| (mode.unwrap(), text.as_str())).collect();
        let (a, s) = (Mode::Append, Mode::Send);
        assert_eq!(texts, [(a, "a"), (a, "b"), (a, "c"), (s, "d")]);
        assert!(whole(r#"{"append":[1]}"#).is_err());
        assert!(whole(r#"{} {}"#).is_err());
        assert!(whole("").is_err());
    }

    #[test]
    fn texts_are_cut_between_characters() {
        assert_eq!(cut("aéb", 2), "a");
        assert_eq!(cut("aéb", 9), "aéb");
    }
}
