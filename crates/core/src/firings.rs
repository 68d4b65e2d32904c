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
use crate::record::{InputHash, Record, open_text};
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
            input_hash: InputHash(digest(&self.input)),
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
            version: hook.version.digits(),
            event,
            tool_name,
            input,
            decision,
            reason,
            times: 1,
        }
    }
}

/// A hook that stops a tool, drops the answer or keeps a part of it back says no; all else lets it go on.
fn decision_of(wants: &[Effect]) -> (Decision, Option<String>) {
    let mut decision = Decision::Allow;
    for effect in wants {
        match &effect.kind {
            EffectKind::Block { reason } => return (Decision::Block, Some(reason.clone())),
            EffectKind::Interrupt { .. } | EffectKind::Redact { .. } => decision = Decision::Block,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::ActionKinds;
    use crate::define;
    use crate::dispatch::Dispatcher;
    use crate::event::{Origin, Role, WatchEvent};
    use crate::facts::{Facts, GateEvent};
    use crate::hook::Source;
    use crate::record::input_hash;
    use crate::session::Session;
    use crate::set::HookSet;
    use sha2::{Digest, Sha256};

    const HOOKS: &str = r#"[
        {"target": "stream", "label": "each", "actions": [{"type": "log"}]},
        {"target": "stream", "label": "stop", "regex": "bad", "actions": [{"type": "interrupt"}]},
        {"target": "chat", "label": "said", "actions": [{"type": "log"}]},
        {"target": "tool", "label": "tool", "event": "before", "actions": [{"type": "block", "message": "token=abcdefgh no"}]}
    ]"#;

    fn session() -> (Dispatcher, Session) {
        let read = define::read("h.json", HOOKS, Source::User, &ActionKinds::standard());
        assert!(read.problems.is_empty(), "{:?}", read.problems);
        let mut session = Session::new();
        session.keep_firings();
        (Dispatcher::new(HookSet::new(read.hooks).unwrap()), session)
    }

    fn tell(dispatcher: &Dispatcher, session: &mut Session, event: &WatchEvent<'_>) -> Vec<String> {
        dispatcher.tell(session, event, &mut Vec::new());
        told(session)
    }

    fn told(session: &mut Session) -> Vec<String> {
        let line =
            |fired: Fired| format!("{} {} {} {}", fired.label, fired.event, fired.decision, fired.times);
        session.take_firings().into_iter().map(line).collect()
    }

    #[test]
    fn an_answer_is_one_row_a_hook_however_it_ends() {
        let (dispatcher, mut session) = session();
        let chunk = |text| WatchEvent::Chunk(Chunk::Content(text));
        for _ in 0..1000 {
            assert!(tell(&dispatcher, &mut session, &chunk("x")).is_empty());
        }
        let finish = WatchEvent::Chunk(Chunk::Finish { reason: "stop" });
        assert_eq!(tell(&dispatcher, &mut session, &finish), ["each chunk allow 1001"]);
        tell(&dispatcher, &mut session, &chunk("ba"));
        tell(&dispatcher, &mut session, &chunk("d"));
        session.end_response();
        assert_eq!(told(&mut session), ["each chunk allow 2", "stop chunk block 1"]);
        session.end_response();
        assert!(told(&mut session).is_empty());
    }

    #[test]
    fn a_tool_s_row_has_the_hash_of_the_gate_s() {
        let (dispatcher, mut session) = session();
        let message = Message { role: Role::User, content: "hi", origin: Origin::User };
        assert_eq!(tell(&dispatcher, &mut session, &WatchEvent::Message(message)), ["said message allow 1"]);
        let args = json!({"b": 1, "a": "x"});
        let run = ToolRun { name: "exec", args: &args, outcome: ToolOutcome::Before };
        dispatcher.tell(&mut session, &WatchEvent::Tool(run), &mut Vec::new());
        let head = Head { event_id: "e".into(), session_id: "s".into(), ..Head::default() };
        let fired = session.take_firings().remove(0);
        let record = fired.record(&head, |canonical| Sha256::digest(canonical).into());
        let event = GateEvent::PreToolUse { tool_name: "exec".into(), tool_input: args };
        assert_eq!(record.input_hash, input_hash(&Facts::of_gate(&head, event)));
        assert_eq!((record.decision, record.tool_name.as_deref()), (Decision::Block, Some("exec")));
        assert_eq!(record.error.as_deref(), Some("token=[redacted] no"));
    }

    #[test]
    fn who_does_not_record_pays_nothing() {
        let (dispatcher, _) = session();
        let mut session = Session::new();
        let message = Message { role: Role::User, content: "hi", origin: Origin::User };
        assert!(tell(&dispatcher, &mut session, &WatchEvent::Message(message)).is_empty());
    }
}
