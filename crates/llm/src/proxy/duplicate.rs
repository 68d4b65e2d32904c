//! Keys that an object has twice.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::wire::json::readable;

/// The first key that one object of this JSON text has twice, at any depth. Readers disagree about which of the two
/// counts, so whoever judges such a text may judge another one than the provider reads. `None` also for what is no
/// JSON.
///
/// ```
/// use hookgate_llm::proxy::has_duplicate_keys;
/// assert_eq!(has_duplicate_keys(br#"{"messages":[{"content":"a","\u0063ontent":"b"}]}"#).as_deref(), Some("content"));
/// assert_eq!(has_duplicate_keys(br#"{"a":{"b":1},"b":2}"#), None);
/// ```
pub fn has_duplicate_keys(json: &[u8]) -> Option<String> {
    let text = str::from_utf8(json).ok()?;
    search(text).unwrap_or_else(|| search(&readable(text)?)?)
}

/// What was found; `None` when it could not be read to its end.
fn search(json: &str) -> Option<Option<String>> {
    let found = RefCell::new(None);
    let mut reader = serde_json::Deserializer::from_str(json);
    let read = Search { found: &found }.deserialize(&mut reader);
    let found = found.into_inner();
    (read.is_ok() || found.is_some()).then_some(found)
}

/// Few keys are compared one by one; for objects with many a set takes over.
const FEW: usize = 16;

#[derive(Clone, Copy)]
struct Search<'f> {
    found: &'f RefCell<Option<String>>,
}

impl<'de> DeserializeSeed<'de> for Search<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while items.next_element_seed(self)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let mut few: Vec<Key<'de>> = Vec::new();
        let mut many = std::collections::HashSet::new();
        while let Some(key) = members.next_key::<Key<'de>>()? {
            let twice = if few.len() < FEW {
                few.contains(&key)
            } else {
                many.contains(&key.0) || few.contains(&key)
            };
            if twice {
                *self.found.borrow_mut() = Some(key.0.into_owned());
                return Err(A::Error::custom("a key stands twice"));
            }
            if few.len() < FEW {
                few.push(key);
            } else {
                many.insert(key.0);
            }
            members.next_value_seed(self)?;
        }
        Ok(())
    }
}

/// A key, borrowed where it has no escapes.
#[derive(PartialEq, Eq, serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] std::borrow::Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_twice_in_one_object_is_found_at_any_depth() {
        for (json, expected) in [
            (r#"{"a":1,"b":2}"#, None),
            (r#"{"a":1,"a":2}"#, Some("a")),
            (r#"[{"x":[{"k":1,"\u006b":2}]}]"#, Some("k")),
            (r#"{"a":{"k":1},"b":{"k":1},"k":[{"k":1}]}"#, None),
            (r#"{"a":"a","b":["b","b"]}"#, None),
            (r#"{"a":1,"a":"#, Some("a")),
            (r#"{"a":1"#, None),
            (r#"{"a":"\ud800","b":1,"b":2}"#, Some("b")),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(has_duplicate_keys(json.as_bytes()).as_deref(), expected, "{json}");
        }
        let many: String = (0..100).map(|n| format!("\"k{n}\":{n},")).collect();
        assert_eq!(has_duplicate_keys(format!("{{{many}\"z\":0}}").as_bytes()), None);
        for twice in ["k3", "k70"] {
            let found = has_duplicate_keys(format!("{{{many}\"{twice}\":0}}").as_bytes());
            assert_eq!(found.as_deref(), Some(twice));
        }
    }
}
