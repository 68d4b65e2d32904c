//! From an event to the effects of the hooks that it concerns. The whole path fits on this page:
//! snapshot of the set, filters, count, actions.

use crate::effect::{Effect, EffectKind};
use crate::event::{Chunk, Message, Origin, ToolOutcome, ToolRun, WatchEvent};
use crate::facts::Head;
use crate::hook::{Hook, Work};
use crate::point::Point;
use crate::session::{Channel, Found, Response, Session};
use crate::set::{HookSet, Slot};
use crate::template::{Variable, Variables};
use crate::word::Word;
use arc_swap::ArcSwap;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

/// Holds the current set of hooks and tells them what happens. Shared by all sessions of a door.
#[derive(Debug)]
pub struct Dispatcher {
    set: ArcSwap<HookSet>,
}

impl Dispatcher {
    /// A dispatcher for this set.
    pub fn new(set: HookSet) -> Dispatcher {
        Dispatcher { set: ArcSwap::from_pointee(set) }
    }

    /// Puts a new set in place of the old one. An answer that is arriving keeps the old one to its end.
    pub fn install(&self, set: HookSet) {
        self.set.store(Arc::new(set));
    }

    /// A dispatcher of its own for the set that is current now: what is installed later changes nothing there. For what
    /// is to be judged by one set from its beginning to its end.
    #[must_use]
    pub fn pinned(&self) -> Dispatcher {
        Dispatcher { set: ArcSwap::new(self.current()) }
    }

    /// Whether some hook of the current set listens at this point of the lifecycle. Where none does, a door need not
    /// even make the event.
    pub fn listens_at(&self, point: Point) -> bool {
        self.set.load().listens_at(point)
    }

    /// The current set with the hooks that an event concerns by scope and matcher; none where there are none.
    pub(crate) fn due(&self, point: Point, tool: &str, head: &Head) -> Option<(Arc<HookSet>, Vec<Slot>)> {
        let set = self.set.load();
        let due = set.at_point(point, tool, head);
        (!due.is_empty()).then(|| (Arc::clone(&set), due))
    }

    /// The current set.
    pub fn current(&self) -> Arc<HookSet> {
        self.set.load_full()
    }

    /// Tells the hooks of an event that needs no verdict, and adds what they want to `effects`, in order.
    /// Never waits.
    pub fn tell(&self, session: &mut Session, event: &WatchEvent<'_>, effects: &mut Vec<Effect>) {
        match event {
            WatchEvent::Message(message) => self.message(session, message, effects),
            WatchEvent::Chunk(chunk) => self.chunk(session, *chunk, effects),
            WatchEvent::Tool(run) => self.tool(session, run, effects),
        }
    }

    fn message(&self, session: &mut Session, message: &Message<'_>, effects: &mut Vec<Effect>) {
        if message.origin == Origin::Hook {
            return;
        }
        let set = self.set.load();
        let mut due = std::mem::take(&mut session.due);
        set.on_message(message.role, message.content, &mut due);
        for slot in due.drain(..) {
            let matched = |hook: &Hook| first_match(hook, message.content);
            fire(&set, slot, session, Occurrence::Message(message), matched, effects);
        }
        session.due = due;
    }

    fn tool(&self, session: &mut Session, run: &ToolRun<'_>, effects: &mut Vec<Effect>) {
        let set = self.set.load();
        let mut due = std::mem::take(&mut session.due);
        set.on_tool(run.moment(), run.name, &session.tool_names, || tool_text(run), &mut due);
        for slot in due.drain(..) {
            let matched = |hook: &Hook| first_match(hook, &tool_text(run));
            fire(&set, slot, session, Occurrence::Tool(run), matched, effects);
        }
        session.due = due;
    }

    fn chunk(&self, session: &mut Session, chunk: Chunk<'_>, effects: &mut Vec<Effect>) {
        if session.response.as_ref().is_some_and(|response| response.finished) {
            session.response = None;
        }
        let response = session.response.get_or_insert_with(|| Response::new(self.set.load_full()));
        response.learn(&chunk);
        if let Some((channel, text)) = channel_of(&chunk) {
            response.push(channel, text, &mut session.found);
            // nearly all chunks end here
            if session.found.is_empty() && response.set.chunk(chunk.kind()).plain.is_empty() {
                response.settle(channel);
                return;
            }
        }
        let Some(mut response) = session.response.take() else { return };
        let mut found = std::mem::take(&mut session.found);
        if matches!(chunk, Chunk::Finish { .. }) {
            // the texts are complete only now: what `$` waited for fires first, each on its own channel
            for channel in response.channels() {
                response.finish(channel, &mut found);
                fire_chunk(&mut response, empty_chunk(channel), &mut found, false, session, effects);
            }
            fire_chunk(&mut response, chunk, &mut found, true, session, effects);
            response.finished = true;
            session.end_answer();
        } else {
            fire_chunk(&mut response, chunk, &mut found, true, session, effects);
        }
        session.response = Some(response);
        session.found = found;
    }
}

/// Fires the hooks of one chunk in run order: those whose pattern was just found and, where the chunk is one
/// that the model sent, those without a pattern.
fn fire_chunk(
    response: &mut Response,
    chunk: Chunk<'_>,
    found: &mut Vec<Found>,
    sent: bool,
    session: &mut Session,
    effects: &mut Vec<Effect>,
) {
    let channel = channel_of(&chunk).map(|(channel, _)| channel);
    let replaced = fire_found(response, chunk, found, sent, session, effects);
    let Some(channel) = channel else { return };
    for (slot, spans, with) in replaced {
        response.redact(channel, slot, spans, with);
    }
    response.settle(channel);
}

/// A hook that wants what it found replaced: which, where (if it knows) and with what.
type Replaced = (Slot, Vec<Range<u64>>, String);

fn fire_found(
    response: &Response,
    chunk: Chunk<'_>,
    found: &mut Vec<Found>,
    sent: bool,
    session: &mut Session,
    effects: &mut Vec<Effect>,
) -> Vec<Replaced> {
    let mut replaced = Vec::new();
    let hooks = response.set.chunk(chunk.kind());
    let plain: &[Slot] = if sent { &hooks.plain } else { &[] };
    if plain.is_empty() && found.is_empty() {
        return replaced;
    }
    let call_id = match chunk {
        Chunk::ToolCallDelta { index, id, .. } => id.or_else(|| response.call_id(index)),
        _ => None,
    };
    let event = Occurrence::Chunk { chunk: &chunk, call_id };
    if found.is_empty() {
        for slot in plain {
            fire(&response.set, *slot, session, event, |_| None, effects);
        }
        return replaced;
    }
    let mut due: Vec<(Slot, Option<String>, Vec<Range<u64>>)> =
        plain.iter().map(|slot| (*slot, None, Vec::new())).collect();
    due.extend(found.drain(..).map(|found| (found.slot, Some(found.matched), found.spans)));
    due.sort_by_key(|(slot, _, _)| *slot);
    for (slot, matched, spans) in due {
        let before = effects.len();
        fire(&response.set, slot, session, event, |_| matched.map(Cow::Owned), effects);
        let wish = effects.get(before..).unwrap_or_default().iter().find_map(|effect| match &effect.kind {
            EffectKind::Redact { with } => Some(with.clone()),
            _ => None,
        });
        replaced.extend(wish.map(|with| (slot, spans, with)));
    }
    replaced
}

/// Counts the firing and runs the hook's actions.
fn fire<'e>(
    set: &HookSet,
    slot: Slot,
    session: &mut Session,
    event: Occurrence<'e>,
    matched: impl FnOnce(&Hook) -> Option<Cow<'e, str>>,
    effects: &mut Vec<Effect>,
) {
    let Some(hook) = set.hook(slot) else { return };
    let Work::Actions(actions) = &hook.work else { return };
    if !session.count(&hook.key, hook.max_triggers) {
        return;
    }
    let firing = Firing { hook, event, matched: matched(hook) };
    let start = effects.len();
    effects.push(firing.effect(EffectKind::Fired));
    for action in actions {
        action.run(&firing, effects);
    }
    if let Some(firings) = &mut session.firings {
        firings.note(hook, event, effects.get(start..).unwrap_or_default());
    }
}

fn channel_of<'a>(chunk: &Chunk<'a>) -> Option<(Channel, &'a str)> {
    match *chunk {
        Chunk::Content(text) => Some((Channel::Content, text)),
        Chunk::Reasoning(text) => Some((Channel::Reasoning, text)),
        Chunk::ToolCallDelta { index, text, .. } => Some((Channel::Call(index), text)),
        Chunk::Finish { .. } => None,
    }
}

/// The chunk at which a match is known that only the end of the text completes.
fn empty_chunk(channel: Channel) -> Chunk<'static> {
    match channel {
        Channel::Content => Chunk::Content(""),
        Channel::Reasoning => Chunk::Reasoning(""),
        Channel::Call(index) => Chunk::ToolCallDelta { index, id: None, text: "" },
    }
}

fn first_match<'t>(hook: &Hook, text: &str) -> Option<Cow<'t, str>> {
    let range = hook.listens.regex()?.find(text)?;
    text.get(range).map(|matched| Cow::Owned(matched.to_owned()))
}

/// The text that a tool hook's pattern looks at.
pub(crate) fn tool_text<'a>(run: &ToolRun<'a>) -> Cow<'a, str> {
    match run.outcome {
        ToolOutcome::Before => Cow::Owned(run.args.to_string()),
        ToolOutcome::Result(result) => printed(result),
        ToolOutcome::Error(error) => Cow::Borrowed(error),
    }
}

/// Text as it is, everything else as JSON.
fn printed(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Occurrence<'a> {
    Message(&'a Message<'a>),
    Chunk { chunk: &'a Chunk<'a>, call_id: Option<&'a str> },
    Tool(&'a ToolRun<'a>),
}

/// One hook that fires on one event: what its actions see.
#[derive(Debug)]
pub struct Firing<'a> {
    hook: &'a Hook,
    event: Occurrence<'a>,
    matched: Option<Cow<'a, str>>,
}

impl Firing<'_> {
    /// The hook that fires.
    pub fn hook(&self) -> &Hook {
        self.hook
    }

    /// An effect in this hook's name.
    pub fn effect(&self, kind: EffectKind) -> Effect {
        Effect { hook: self.hook.name.clone(), kind }
    }

    /// The default message: `[json-hook LABEL] target: {…}` with all that the event has.
    pub fn dump(&self) -> String {
        let mut data = Map::new();
        for (name, variable) in Variable::ALL {
            let value = match (variable, self.event) {
                (Variable::Label, _) => continue,
                // structured values stay structured
                (Variable::Args, Occurrence::Tool(run)) => Some(run.args.clone()),
                (
                    Variable::Result,
                    Occurrence::Tool(ToolRun { outcome: ToolOutcome::Result(result), .. }),
                ) => Some((*result).clone()),
                _ => self.get(*variable).map(|text| Value::String(text.into_owned())),
            };
            if let Some(value) = value {
                data.insert((*name).to_owned(), value);
            }
        }
        let target = self.hook.listens.target().map(Word::as_str).unwrap_or_default();
        let label = &self.hook.label;
        let space = if label.is_empty() { "" } else { " " };
        format!("[json-hook{space}{label}] {target}: {}", Value::Object(data))
    }
}

impl Variables for Firing<'_> {
    fn get(&self, variable: Variable) -> Option<Cow<'_, str>> {
        match variable {
            Variable::Label => return Some(Cow::Borrowed(&self.hook.label)),
            Variable::Target => {
                return self.hook.listens.target().map(|target| Cow::Borrowed(target.as_str()));
            }
            Variable::Match => return self.matched.as_deref().map(Cow::Borrowed),
            _ => {}
        }
        match self.event {
            Occurrence::Message(message) => message_value(message, variable),
            Occurrence::Chunk { chunk, call_id } => chunk_value(chunk, call_id, variable),
            Occurrence::Tool(run) => tool_value(run, variable),
        }
    }
}

fn message_value<'a>(message: &Message<'a>, variable: Variable) -> Option<Cow<'a, str>> {
    match variable {
        Variable::Role => Some(Cow::Borrowed(message.role.as_str())),
        Variable::Content => Some(Cow::Borrowed(message.content)),
        _ => None,
    }
}

fn chunk_value<'a>(chunk: &Chunk<'a>, call_id: Option<&'a str>, variable: Variable) -> Option<Cow<'a, str>> {
    match (variable, *chunk) {
        (Variable::Type, chunk) => Some(Cow::Borrowed(chunk.kind().as_str())),
        (Variable::Text, chunk) => chunk.text().map(Cow::Borrowed),
        (Variable::ToolCallId, Chunk::ToolCallDelta { .. }) => call_id.map(Cow::Borrowed),
        (Variable::FinishReason, Chunk::Finish { reason }) => Some(Cow::Borrowed(reason)),
        _ => None,
    }
}

fn tool_value<'a>(run: &ToolRun<'a>, variable: Variable) -> Option<Cow<'a, str>> {
    match (variable, run.outcome) {
        (Variable::Event, _) => Some(Cow::Borrowed(run.moment().as_str())),
        (Variable::Name, _) => Some(Cow::Borrowed(run.name)),
        (Variable::Args, _) => Some(printed(run.args)),
        (Variable::Result, ToolOutcome::Result(result)) => Some(printed(result)),
        (Variable::Error, ToolOutcome::Error(error)) => Some(Cow::Borrowed(error)),
        _ => None,
    }
}
