//! What is new in a request, and what hooks say to it before anything goes on.
//!
//! New is what stands behind the model's last answer: what the user wrote since, and what tools gave. The user's words are
//! asked about each time they come (a repeated request meets the same hooks); of results and messages the hooks that only
//! watch are told once, by the place that they have in the conversation. Older messages are not judged again, except
//! where a hook may change prompts: the agent's history holds the user's words as they were written, so what was changed
//! once is changed again in every later request. What the client puts into the model's mouth behind the user's last words
//! is no answer: it makes nothing old.

use super::door::Door;
use hookgate_core::event::{Origin, Role};
use hookgate_core::facts::{GateEvent, LifeEvent};
use hookgate_core::point::Point;
use hookgate_core::verdict::Block;
use hookgate_llm::proxy::{Asked, Call, Place, RequestChange, Said, What};
use serde_json::Value;

/// Whether a request goes on.
#[derive(Debug)]
pub(super) enum Admitted {
    /// It does, with these changes.
    Forward(Vec<RequestChange>),
    /// A hook stopped the prompt.
    Blocked(Block),
    /// A hook interrupted.
    Interrupted(String),
}

/// Shows a request to the hooks.
pub(super) async fn admit(door: &Door, asked: &Asked) -> Admitted {
    let chain = door.tenant.sessions.chain(&asked.messages);
    let is_input = |said: &Said| matches!(said.what, What::User(_) | What::Result { .. });
    let is_answer = |said: &Said| matches!(said.what, What::Assistant { .. });
    // what the client puts into the model's mouth behind it makes nothing old
    let inputs = asked.messages.iter().rposition(is_input).and_then(|last| asked.messages.get(..last));
    let new_from = inputs.unwrap_or_default().iter().rposition(is_answer);
    let new_from = new_from.map_or(0, |last| last.saturating_add(1));
    if !std::mem::replace(&mut door.conversation.state().started, true) {
        door.watch(LifeEvent::SessionStart);
    }
    let mut changes = Vec::new();
    let changers = changes_prompts(door);
    for (n, (said, link)) in asked.messages.iter().zip(&chain).enumerate() {
        let outcome = match &said.what {
            What::User(text) if n >= new_from => {
                new_prompt(door, said.place, text, *link, &mut changes).await
            }
            What::User(text) if changers => old_prompt(door, said.place, text, &mut changes).await,
            What::Result { .. } if n >= new_from => new_result(door, asked, n, *link),
            _ => None,
        };
        if let Some(stop) = outcome {
            return stop;
        }
    }
    changes.extend(door.tenant.sessions.provider_name(asked).map(RequestChange::From));
    changes.extend(door.conversation.state().take_queued());
    Admitted::Forward(changes)
}

/// Whether some hook may change what a user wrote.
fn changes_prompts(door: &Door) -> bool {
    door.listens_at(Point::UserPromptSubmit) && {
        let set = door.hooks.current();
        set.hooks()
            .iter()
            .any(|hook| hook.listens.point() == Point::UserPromptSubmit && !hook.mutable_fields.is_empty())
    }
}

async fn new_prompt(
    door: &Door,
    place: Place,
    text: &str,
    link: u64,
    changes: &mut Vec<RequestChange>,
) -> Option<Admitted> {
    let is_new = door.conversation.state().show(link);
    if is_new {
        door.shared.turns.begin_of(door.tenant.id.as_deref(), &door.conversation.id);
    }
    let admitted = match ask(door, text).await {
        Ok(changed) => changed,
        Err(block) => return Some(Admitted::Blocked(block)),
    };
    let mut state = door.conversation.state();
    state.admit(door.tenant.sessions.hash(text), admitted.clone());
    let text = match &admitted {
        Some(changed) => {
            changes.push(RequestChange::UserText { place, text: changed.clone() });
            changed
        }
        None => text,
    };
    if !is_new {
        return None;
    }
    let wishes = door.message(&mut state, Role::User, text, Origin::User);
    stop(wishes, &mut state, link)
}

/// A prompt of an earlier turn: its text as it went on then, or what hooks make of it now.
async fn old_prompt(
    door: &Door,
    place: Place,
    text: &str,
    changes: &mut Vec<RequestChange>,
) -> Option<Admitted> {
    let hash = door.tenant.sessions.hash(text);
    let known = door.conversation.state().admitted.get(&hash).cloned();
    let admitted = match known {
        Some(known) => known,
        None => match ask(door, text).await {
            Ok(changed) => changed,
            Err(block) => return Some(Admitted::Blocked(block)),
        },
    };
    door.conversation.state().admit(hash, admitted.clone());
    changes.extend(admitted.map(|text| RequestChange::UserText { place, text }));
    None
}

/// Asks the gate; gives the text that hooks made of it, where they did.
async fn ask(door: &Door, text: &str) -> Result<Option<String>, Block> {
    let mut ruling = door.ask(GateEvent::UserPromptSubmit { raw_input: text.to_owned() }).await;
    if let Some(block) = ruling.block() {
        return Err(block.clone());
    }
    let changed = ruling.updated.drain(..).find(|(field, _)| field == "rawInput");
    Ok(changed.and_then(|(_, value)| value.as_str().map(str::to_owned)))
}

/// What a tool gave. Hooks are told once.
fn new_result(door: &Door, asked: &Asked, n: usize, link: u64) -> Option<Admitted> {
    let Some(Said { what: What::Result { call_id, name, output, is_error }, .. }) = asked.messages.get(n)
    else {
        return None;
    };
    let mut state = door.conversation.state();
    if !state.show(link) {
        return None;
    }
    let call = call_of(asked, n, call_id).cloned().or_else(|| state.call_of(call_id)).unwrap_or_default();
    let name = name.as_deref().unwrap_or(&call.name);
    let input = arguments(&call.arguments);
    let mut wishes = door.tool_ran(&mut state, name, &input, output, *is_error);
    if wishes.stops.is_none() {
        wishes.join(door.message(&mut state, Role::Tool, output, Origin::Tool));
    }
    stop(wishes, &mut state, link)
}

/// The call that a result answers.
fn call_of<'a>(asked: &'a Asked, before: usize, id: &str) -> Option<&'a Call> {
    let earlier = asked.messages.get(..before)?.iter().rev();
    let mut calls = earlier.filter_map(|said| match &said.what {
        What::Assistant { calls, .. } => Some(calls),
        _ => None,
    });
    calls.find_map(|calls| calls.iter().find(|call| call.id == id))
}

/// The arguments as hooks see them: the parsed value, or the text where it is no JSON.
pub(super) fn arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    hookgate_llm::proxy::read_json(text.as_bytes()).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Before anything is asked an interrupt that asks again changes nothing: the request is still to go out. What was
/// stopped counts as never shown: a repeat of the request meets the same hooks.
fn stop(wishes: super::door::Wishes, state: &mut super::sessions::State, link: u64) -> Option<Admitted> {
    let hook = wishes.stops?;
    state.unshow(link);
    Some(Admitted::Interrupted(hook))
}
