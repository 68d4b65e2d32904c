//! The shape of answer that Claude Code began and others took over: `decision` and `reason` at the top, the rest in
//! `hookSpecificOutput` with the event's name.

use crate::event::{Effect, Event};
use crate::outcome::{Outcome, Said, Word};
use hookgate_core::point::Point;
use serde_json::{Map, Value, json};

/// How an agent differs from the others that speak so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    /// Whether a changed input counts only beside an `allow`.
    pub(crate) change_needs_allow: bool,
    /// Whether the decision at the end of a turn stands inside.
    pub(crate) stop_inside: bool,
}

/// Writes an answer.
pub(crate) fn say(manner: Manner, event: &Event, outcome: &Outcome) -> Said {
    let mut top = Map::new();
    let mut inner = Map::new();
    match &outcome.word {
        Word::Nothing => {}
        Word::Ask(reason) => {
            inner.insert("permissionDecision".into(), "ask".into());
            inner.insert("permissionDecisionReason".into(), reason.as_str().into());
        }
        Word::Block(reason) if event.means == "permission_request" => {
            inner.insert("decision".into(), json!({"behavior": "deny", "message": reason}));
        }
        Word::Block(reason) if event.point == Some(Point::PreToolUse) => {
            inner.insert("permissionDecision".into(), "deny".into());
            inner.insert("permissionDecisionReason".into(), reason.as_str().into());
        }
        Word::Block(reason) => {
            let inside = manner.stop_inside && event.point == Some(Point::Stop);
            let place = if inside { &mut inner } else { &mut top };
            place.insert("decision".into(), "block".into());
            place.insert("reason".into(), reason.as_str().into());
        }
    }
    if let Some(input) = &outcome.input {
        if manner.change_needs_allow {
            inner.insert("permissionDecision".into(), "allow".into());
        }
        inner.insert("updatedInput".into(), input.clone());
    }
    if let Some(context) = outcome.joined_context() {
        inner.insert("additionalContext".into(), context.into());
    }
    if !inner.is_empty() {
        inner.shift_insert(0, "hookEventName".into(), event.name.into());
        top.insert("hookSpecificOutput".into(), Value::Object(inner));
    }
    if top.is_empty() { Said::nothing() } else { Said::json(&Value::Object(top)) }
}

/// What a gate before a tool can do where everything works.
pub(crate) const GATE: &[Effect] = &[Effect::Block, Effect::Ask, Effect::ChangeInput, Effect::AddContext];
/// What can be done after a tool ran.
pub(crate) const AFTER: &[Effect] = &[Effect::Feedback, Effect::AddContext];
/// What can be done with a prompt.
pub(crate) const PROMPT: &[Effect] = &[Effect::Block, Effect::AddContext];
/// What can be done at the end of a turn.
pub(crate) const END: &[Effect] = &[Effect::KeepGoing];
/// The model can be told something.
pub(crate) const CONTEXT: &[Effect] = &[Effect::AddContext];
/// It can be stopped.
pub(crate) const BLOCK: &[Effect] = &[Effect::Block];
