//! Values that nest without end. No JSON text makes one, since the reader stops at 128 levels, but a caller's code
//! can. Everything that walks a value calls itself at each level, its destructor too, so a million of them would be
//! the end of the process: such a value is turned away at the door, and taken apart without recursion.

use serde_json::{Map, Value};

/// Lists and objects in each other; as many as the reader of JSON texts lets through.
pub const DEEPEST_INPUT: u32 = 128;

/// The value, unless it nests too deep.
pub(crate) fn bounded(value: Value) -> Option<Value> {
    if fits(&value, DEEPEST_INPUT) {
        return Some(value);
    }
    take_apart(vec![value]);
    None
}

/// Whether a value nests no deeper than allowed.
pub(crate) fn is_bounded(value: &Value) -> bool {
    fits(value, DEEPEST_INPUT)
}

/// The members of an object, unless one nests too deep.
pub(crate) fn bounded_members(members: Map<String, Value>) -> Option<Map<String, Value>> {
    if members.values().all(|value| fits(value, DEEPEST_INPUT)) {
        return Some(members);
    }
    take_apart(members.into_iter().map(|(_, value)| value).collect());
    None
}

/// Looks no deeper than `levels`.
fn fits(value: &Value, levels: u32) -> bool {
    match (value, levels.checked_sub(1)) {
        (Value::Array(items), Some(levels)) => items.iter().all(|item| fits(item, levels)),
        (Value::Object(members), Some(levels)) => members.values().all(|item| fits(item, levels)),
        (Value::Array(_) | Value::Object(_), None) => false,
        _ => true,
    }
}

/// Drops values of any depth.
pub(crate) fn take_apart(mut left: Vec<Value>) {
    while let Some(value) = left.pop() {
        match value {
            Value::Array(items) => left.extend(items),
            Value::Object(members) => left.extend(members.into_iter().map(|(_, value)| value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Lists, or objects, in each other.
    fn nested(levels: u32, wrap: fn(Value) -> Value) -> Value {
        (0..levels).fold(json!("x"), |value, _| wrap(value))
    }

    fn list(value: Value) -> Value {
        Value::Array(vec![value])
    }

    #[test]
    fn a_million_levels_are_turned_away_without_a_trace() {
        let object = |value| {
            let mut members = Map::new();
            members.insert("a".into(), value);
            members
        };
        let wrap_object: fn(Value) -> Value =
            |value| Value::Object(Map::from_iter([("a".to_owned(), value)]));
        for (wrap, deep) in [(list as fn(Value) -> Value, 1_000_000), (wrap_object, 100_000)] {
            assert!(bounded(nested(DEEPEST_INPUT, wrap)).is_some());
            assert!(bounded(nested(DEEPEST_INPUT + 1, wrap)).is_none());
            assert!(bounded(nested(deep, wrap)).is_none());
            assert!(bounded_members(object(nested(deep, wrap))).is_none());
        }
        assert!(bounded_members(object(json!([{}]))).is_some());
    }

    #[test]
    fn no_text_makes_such_a_value() {
        let text = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        let read = |levels| serde_json::from_str::<Value>(&text(levels));
        assert!(bounded(read(127).unwrap()).is_some());
        for levels in [128, 1_000_000] {
            assert!(read(levels).unwrap_err().to_string().contains("recursion limit"));
        }
    }
}
