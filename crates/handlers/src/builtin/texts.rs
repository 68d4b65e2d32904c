//! The texts in a tool's input.

use serde_json::Value;

/// Deepest part of an input that is looked at; the JSON reader goes no deeper either.
const DEEPEST: usize = 256;

/// Calls `see` with each text, the names of members too.
pub(super) fn each(value: &Value, see: &mut dyn FnMut(&str)) {
    each_at(value, DEEPEST, see);
}

fn each_at(value: &Value, left: usize, see: &mut dyn FnMut(&str)) {
    match value {
        _ if left == 0 => {}
        Value::String(text) => see(text),
        Value::Array(items) => items.iter().for_each(|item| each_at(item, left - 1, see)),
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            see(name);
            each_at(value, left - 1, see);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The same value with other texts. None: nothing changed.
pub(super) fn map(value: &Value, change: &dyn Fn(&str) -> Option<String>) -> Option<Value> {
    let mut copy = value.clone();
    map_at(&mut copy, DEEPEST, change).then_some(copy)
}

fn map_at(value: &mut Value, left: usize, change: &dyn Fn(&str) -> Option<String>) -> bool {
    match value {
        _ if left == 0 => false,
        Value::String(text) => match change(text) {
            Some(new) => {
                *text = new;
                true
            }
            None => false,
        },
        Value::Array(items) => {
            items.iter_mut().filter_map(|item| map_at(item, left - 1, change).then_some(())).count() > 0
        }
        Value::Object(members) => {
            members.values_mut().filter_map(|member| map_at(member, left - 1, change).then_some(())).count()
                > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
