//! What JSON hooks did, for the record: they have no handler, so nothing else tells of them.
//!
//! A firing on a message or a tool is one record. On the chunks of an answer a hook may fire with each of thousands:
//! there, one record a hook and answer says how often.

use crate::canonical;
use crate::dispatch::Occurrence;
use crate::effect::{Effect, EffectKind, HookName};
use crate::event::{Chunk, Message, ToolOutcome, ToolRun};
use crate::facts::Head;
use crate::hook::Hook;
use crate::record::{Record, hex, open_text};
use crate::verdict::Decision;
use crate::word::Word;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

/// What one hook did to one message, tool or answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fired {
    hook: Arc<str>,
    label: HookName,
    version: Arc<str>,
    event: &'static str,
    tool_name: Option<String>,
    /// The canonical JSON of what it fired on; of an answer the chunk with which it began.
    input: Vec<u8>,
    decision: Decision,
    reason: Option<String>,
    times: u64,
}

/// The firings of a session that are not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct Firings {
    done: Vec<Fired>,
    /// Those of the answer that is arriving.
    answer: Vec<Fired>,
    places: HashMap<Arc<str>, usize>,
}

impl Fired {
    /// Its record. `head` says whose event it is, `digest` is the recorder's.
    pub fn record(self, head: &Head, digest: impl FnOnce(&[u8]) -> [u8; 32]) -> Record {
        Record {
            hook: self.hook,
            label: self.label,
            hook_version: self.version,
            session_id: head.session_id.clone(),
            tenant_id: head.tenant_id.clone(),
            agent_id: head.agent_id.clone(),
            event_id: head.event_id.clone(),
            event: self.event,
            tool_name: self.tool_name,
            input_hash: hex(&digest(&self.input)),
            decision: self.decision,
            cause: None,
            // its actions only say what they want
            duration: Duration::ZERO,
            error: self.reason.as_deref().map(open_text),
            error_detail: None,
            refused_fields: Vec::new(),
            tokens: None,
            times: self.times,
            trace_id: head.trace_id.clone(),
        }
    }
}

impl Firings {
    /// Notes a firing with what its actions asked for.
    pub(crate) fn note(&mut self, hook: &Hook, event: Occurrence<'_>, wants: &[Effect]) {
        let (decision, reason) = decision_of(wants);
        let Occurrence::Chunk { chunk, .. } = event else {
            self.done.push(Fired::new(hook, event, decision, reason));
            return;
        };
        // nothing is made anew for a hook that fires with every chunk
        let place = self.places.get(&hook.key).and_then(|place| self.answer.get_mut(*place));
        if let Some(fired) = place {
            fired.times = fired.times.saturating_add(1);
            if decision == Decision::Block {
                (fired.decision, fired.reason) = (decision, reason);
            }
            return;
        }
        self.places.insert(hook.key.clone(), self.answer.len());
        let event = Occurrence::Chunk { chunk, call_id: None };
        self.answer.push(Fired::new(hook, event, decision, reason));
    }

    /// The answer is over, in whatever way.
    pub(crate) fn end_answer(&mut self) {
        self.places.clear();
        self.done.append(&mut self.answer);
    }

    pub(crate) fn take(&mut self) -> Vec<Fired> {
        std::mem::take(&mut self.done)
    }
}

impl Fired {
    fn new(hook: &Hook, event: Occurrence<'_>, decision: Decision, reason: Option<String>) -> Fired {
        let (tool_name, input) = match event {
            Occurrence::Message(message) => (None, of_message(message)),
            Occurrence::Chunk { chunk, .. } => (None, of_chunk(chunk)),
            Occurrence::Tool(run) => (Some(run.name.to_owned()), of_tool(run)),
        };
        let event = hook.listens.point().as_str();
        let mut members: Map<String, Value> =
            input.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        members.insert("event".into(), event.into());
        let mut input = Vec::with_capacity(256);
        canonical::write(&Value::Object(members), &mut input);
        Fired {
            hook: hook.key.clone(),
            label: hook.name.clone(),
            version: hook.version.clone(),
            event,
            tool_name,
            input,
            decision,
            reason,
            times: 1,
        }
    }
}

/// A hook that stops a tool or drops the answer says no; all else lets it go on.
fn decision_of(wants: &[Effect]) -> (Decision, Option<String>) {
    let mut decision = Decision::Allow;
    for effect in wants {
        match &effect.kind {
            EffectKind::Block { reason } => return (Decision::Block, Some(reason.clone())),
            EffectKind::Interrupt { .. } => decision = Decision::Block,
            EffectKind::Fired | EffectKind::Log { .. } | EffectKind::Queue { .. } | EffectKind::Resend => {}
        }
    }
    (decision, None)
}

/// The members are those of the lifecycle's events, so that the same input has the same hash.
type Members = Vec<(&'static str, Value)>;

fn of_message(message: &Message<'_>) -> Members {
    vec![("role", message.role.as_str().into()), ("content", message.content.into())]
}

fn of_chunk(chunk: &Chunk<'_>) -> Members {
    let text = match chunk {
        Chunk::Finish { reason } => reason,
        _ => chunk.text().unwrap_or_default(),
    };
    vec![("content", json!({"type": chunk.kind().as_str(), "text": text}))]
}

fn of_tool(run: &ToolRun<'_>) -> Members {
    let mut members = vec![("toolName", run.name.into()), ("toolInput", run.args.clone())];
    match run.outcome {
        ToolOutcome::Before => {}
        ToolOutcome::Result(result) => members.push(("toolOutput", result.clone())),
        ToolOutcome::Error(error) => members.push(("toolOutput", json!({"error": error}))),
    }
    members
}
