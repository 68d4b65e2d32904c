//! What came of a test or a step, in the words of `expect`.

use crate::happened::Played;
use hookgate_core::effect::{Effect, EffectKind};
use hookgate_core::verdict::{Warning, WarningCode};
use hookgate_core::word::Word;
use serde_json::{Map, Value, json};

/// What came of a test or a step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    members: Map<String, Value>,
}

/// An effect as it is written in a test; none for the mark that a hook fired.
pub fn effect_json(effect: &Effect) -> Option<Value> {
    let hook = &*effect.hook;
    Some(match &effect.kind {
        EffectKind::Fired => return None,
        EffectKind::Log { level, text } => json!({"type": level.as_str(), "message": text, "hook": hook}),
        EffectKind::Queue { role, content } => {
            json!({"type": "queue-message", "role": role.as_str(), "message": content, "hook": hook})
        }
        EffectKind::Interrupt { resend } => json!({"type": "interrupt", "resend": resend, "hook": hook}),
        EffectKind::Resend => json!({"type": "queue-resend", "hook": hook}),
        EffectKind::Redact { with } => json!({"type": "redact", "with": with, "hook": hook}),
        EffectKind::Block { reason } => json!({"type": "block", "message": reason, "hook": hook}),
    })
}

impl Found {
    /// What came of these steps together.
    pub fn of(played: &[Played]) -> Found {
        let events = || played.iter().flat_map(|played| &played.events);
        let stopped = events().find_map(|event| event.stopped.as_ref());
        let mut updated = Map::new();
        for (name, value) in events().flat_map(|event| &event.updated) {
            updated.insert(name.clone(), value.clone());
        }
        let mut hooks: Vec<&str> = Vec::new();
        let mut warnings: Vec<&str> = Vec::new();
        for event in events() {
            event.hooks().into_iter().for_each(|hook| push_new(&mut hooks, hook));
            // a watching hook's block is the decision here
            let is_decision =
                |warning: &&Warning| warning.code == WarningCode::BlockIgnored && event.stopped.is_some();
            let codes = event.warnings().iter().filter(|warning| !is_decision(warning));
            codes.for_each(|warning| push_new(&mut warnings, warning.code.as_str()));
        }
        let text = |pick: fn(&Played) -> &Option<String>| -> Value {
            let mut texts: Vec<(u64, &str)> = Vec::new();
            for (answer, text) in
                played.iter().filter_map(|played| Some((played.answer, pick(played).as_deref()?)))
            {
                match texts.last_mut() {
                    // the same answer, a piece further
                    Some(last) if last.0 == answer => last.1 = text,
                    _ => texts.push((answer, text)),
                }
            }
            let texts: Vec<&str> = texts.into_iter().map(|(_, text)| text).collect();
            if texts.is_empty() { Value::Null } else { texts.concat().into() }
        };
        let members = json!({
            "decision": if stopped.is_some() { "block" } else { "allow" },
            "hook": stopped.map(|stopped| &stopped.by),
            "reason": stopped.map(|stopped| &stopped.reason),
            "cause": stopped.map(|stopped| stopped.cause.as_str()),
            "updatedInput": (!updated.is_empty()).then_some(updated),
            "append": events().flat_map(|event| &event.append).collect::<Vec<_>>(),
            "send": events().flat_map(|event| &event.send).collect::<Vec<_>>(),
            "effects": events().flat_map(|event| &event.effects).filter_map(effect_json).collect::<Vec<_>>(),
            "hooks": hooks,
            "text": text(|played| &played.text),
            "reasoning": text(|played| &played.reasoning),
            "warnings": warnings,
        });
        let Value::Object(members) = members else { return Found::default() };
        Found { members }
    }

    /// A field of `expect`, as it would be written; `null` where there is none.
    pub fn get(&self, field: &str) -> &Value {
        self.members.get(field).unwrap_or(&Value::Null)
    }

    pub(super) fn list(&self, field: &str) -> &[Value] {
        self.get(field).as_array().map(Vec::as_slice).unwrap_or_default()
    }

    /// All of it.
    pub fn members(&self) -> &Map<String, Value> {
        &self.members
    }

    /// What one would write into an empty `expect`.
    pub fn worth_writing(&self) -> Map<String, Value> {
        let streams = !self.list("effects").is_empty() && self.get("text").is_string();
        let is_worth = |name: &str, value: &Value| match name {
            "decision" | "hooks" => true,
            // the usual cause; and in words with times in them no two runs agree
            "cause" => !value.is_null() && *value != "decision",
            "reason" => !value.is_null() && *value != "" && *self.get("cause") == "decision",
            "text" => streams,
            "reasoning" => false,
            _ => !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty()),
        };
        let worth = self.members.iter().filter(|(name, value)| is_worth(name, value));
        worth.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

fn push_new<'a>(list: &mut Vec<&'a str>, word: &'a str) {
    if !list.contains(&word) {
        list.push(word);
    }
}
