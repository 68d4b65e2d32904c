//! Changes to an event's input. Anyone may block; only built-in hooks may change, and only fields on their list.
//! A refused change is a warning and stands in the record.

use crate::facts::Facts;
use crate::hook::{Hook, Source};
use crate::point::{Point, Stage};
use crate::verdict::WarningCode;
use serde_json::{Map, Value};

/// The members that can change at all.
const CHANGEABLE: [&str; 2] = ["toolInput", "rawInput"];

/// What became of a proposed change.
#[derive(Debug, Default)]
pub(crate) struct Vetted {
    /// The members that change, each whole. Only [`vet`] makes these.
    changes: Vec<(String, Value)>,
    /// Why something was refused.
    pub(crate) refusals: Vec<(WarningCode, String)>,
    /// The refused fields, by path.
    pub(crate) refused_fields: Vec<String>,
}

impl Vetted {
    /// Applies the changes and names the changed members.
    pub(crate) fn apply(self, facts: &mut Facts) -> Vec<String> {
        self.changes
            .into_iter()
            .map(|(name, value)| {
                facts.set(&name, value);
                name
            })
            .collect()
    }
}

/// Looks at what a hook wants to change.
///
/// `proposed` is `{"toolInput": {…}}` or `{"rawInput": …}`; at pre_tool_use also the tool's own fields without the
/// wrapping.
pub(crate) fn vet(hook: &Hook, facts: &Facts, proposed: &Map<String, Value>) -> Vetted {
    let mut vetted = Vetted::default();
    if proposed.is_empty() {
        return vetted;
    }
    if facts.point().stage() != Stage::Gate {
        let text = format!("at {} nothing can be changed any more", facts.point());
        vetted.refuse(WarningCode::MutationIgnored, text, proposed.keys().cloned());
        return vetted;
    }
    if hook.source != Source::Builtin {
        let text = "only built-in hooks may change the input".to_owned();
        vetted.refuse(WarningCode::MutationStripped, text, proposed.keys().cloned());
        return vetted;
    }
    let wrapped =
        proposed.keys().any(|key| CHANGEABLE.contains(&key.as_str())) || facts.point() != Point::PreToolUse;
    if wrapped {
        for (key, value) in proposed {
            vetted.member(hook, facts, key, value);
        }
    } else {
        vetted.member(hook, facts, "toolInput", &Value::Object(proposed.clone()));
    }
    vetted
}

impl Vetted {
    fn refuse(&mut self, code: WarningCode, text: String, fields: impl Iterator<Item = String>) {
        self.refused_fields.extend(fields);
        self.refusals.push((code, text));
    }

    /// One member of the event.
    fn member(&mut self, hook: &Hook, facts: &Facts, name: &str, proposed: &Value) {
        let mut dropped = Vec::new();
        if CHANGEABLE.contains(&name)
            && let Some(now) = facts.get(name)
        {
            let mut merged = now.clone();
            if merge(&mut merged, proposed, name, &hook.mutable_fields, &mut dropped) && merged != *now {
                self.changes.push((name.to_owned(), merged));
            }
        } else {
            dropped.push(name.to_owned());
        }
        if !dropped.is_empty() {
            let text = format!("not on this hook's list of changeable fields: {}", dropped.join(", "));
            self.refuse(WarningCode::MutationFieldDropped, text, dropped.into_iter());
        }
    }
}

/// Merges the allowed leaves of `proposed` into `target`. True if any was taken.
fn merge(
    target: &mut Value,
    proposed: &Value,
    path: &str,
    allowed: &[String],
    dropped: &mut Vec<String>,
) -> bool {
    if is_open(path, allowed) {
        overlay(target, proposed);
        return true;
    }
    match (target, proposed) {
        (Value::Object(target), Value::Object(proposed)) => {
            let mut taken = false;
            for (key, value) in proposed {
                let path = format!("{path}.{key}");
                let known = target.contains_key(key);
                let slot = target.entry(key.clone()).or_insert(Value::Null);
                let this = merge(slot, value, &path, allowed, dropped);
                if !this && !known {
                    target.shift_remove(key);
                }
                taken |= this;
            }
            taken
        }
        (target, proposed) => {
            if target != proposed {
                dropped.push(path.to_owned());
            }
            false
        }
    }
}

/// Puts a value over another: objects member by member, everything else whole.
fn overlay(target: &mut Value, proposed: &Value) {
    match (target, proposed) {
        (Value::Object(target), Value::Object(proposed)) => {
            for (key, value) in proposed {
                overlay(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (target, proposed) => *target = proposed.clone(),
    }
}

/// Naming a parent opens all under it.
fn is_open(path: &str, allowed: &[String]) -> bool {
    allowed.iter().any(|open| {
        path == open || path.strip_prefix(open.as_str()).is_some_and(|rest| rest.starts_with('.'))
    })
}
