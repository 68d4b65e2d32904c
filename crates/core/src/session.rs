//! What the engine remembers of one session: how often hooks fired, and the text of the answer so far.

use crate::event::{Chunk, ChunkKind};
use crate::firings::{Fired, Firings};
use crate::reading::{Reading, Redaction};
use crate::set::{HookSet, Slot};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// One conversation, as far as hooks are concerned. A door holds one for each; no two share anything.
#[derive(Debug, Default)]
pub struct Session {
    fired: HashMap<Arc<str>, u64>,
    /// None: nobody records.
    pub(crate) firings: Option<Firings>,
    /// Other names of the tools that are told of next, see [`Session::set_tool_names`].
    pub(crate) tool_names: Vec<String>,
    pub(crate) response: Option<Response>,
    pub(crate) due: Vec<Slot>,
    pub(crate) found: Vec<Found>,
}

/// An answer that is arriving. It keeps the hooks that it began with: a reload takes effect with the next.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) set: Arc<HookSet>,
    content: Option<Reading>,
    reasoning: Option<Reading>,
    calls: BTreeMap<u32, Call>,
    /// Its end was told: the next chunk begins another.
    pub(crate) finished: bool,
}

/// The state of one answer, for a door that reads several at once in one session: see [`Session::swap`].
#[derive(Debug, Default)]
pub struct Answer(Option<Response>);

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    reading: Option<Reading>,
}

/// A hook that found something in a channel's text.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) slot: Slot,
    pub(crate) matched: String,
    /// Where; only a scan knows.
    pub(crate) spans: Vec<Range<u64>>,
}

/// The name of a channel of an answer; each is a text of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Channel {
    /// The text of the answer.
    Content,
    /// The model's thoughts.
    Reasoning,
    /// The arguments of a tool call, by its index.
    Call(u32),
}

impl Channel {
    /// The type of the channel's chunks.
    pub fn kind(self) -> ChunkKind {
        match self {
            Channel::Content => ChunkKind::Content,
            Channel::Reasoning => ChunkKind::Reasoning,
            Channel::Call(_) => ChunkKind::ToolCallDelta,
        }
    }
}

impl Session {
    /// A session in which nothing happened yet.
    pub fn new() -> Session {
        Session::default()
    }

    /// A session that goes on in another process: how often each hook fired so far, by key.
    pub fn resumed(fired: impl IntoIterator<Item = (String, u64)>) -> Session {
        let fired = fired.into_iter().map(|(key, count)| (key.into(), count)).collect();
        Session { fired, ..Session::default() }
    }

    /// How often each hook with a `maxTriggers` fired so far, by key.
    pub fn fired(&self) -> impl Iterator<Item = (&str, u64)> {
        self.fired.iter().map(|(key, count)| (&**key, *count))
    }

    /// Says under which other names hooks may know the tool that is told of next, the agent's own among them.
    pub fn set_tool_names(&mut self, names: Vec<String>) {
        self.tool_names = names;
    }

    /// Forgets the answer that was arriving, as after an interrupt. The next chunk begins a new one.
    pub fn end_response(&mut self) {
        self.response = None;
        self.end_answer();
    }

    /// The firings of the answer that was arriving are over.
    pub(crate) fn end_answer(&mut self) {
        if let Some(firings) = &mut self.firings {
            firings.end_answer();
        }
    }

    /// From now on firings are kept for the record: the door takes them after each event.
    pub fn keep_firings(&mut self) {
        self.firings.get_or_insert_default();
    }

    /// What fired since the last call and is over: firings on chunks come when their answer ends.
    pub fn take_firings(&mut self) -> Vec<Fired> {
        self.firings.as_mut().map(Firings::take).unwrap_or_default()
    }

    /// Puts another answer in the place of the one that is arriving, and that into `answer`. A door that reads several
    /// answers at once (choices of one request, requests side by side) swaps before and after each chunk; what hooks
    /// count is shared.
    pub fn swap(&mut self, answer: &mut Answer) {
        std::mem::swap(&mut self.response, &mut answer.0);
    }

    /// The place in a channel's text, in bytes from its beginning, before which no guarding hook (one that interrupts or
    /// redacts) can want anything back: the door may pass it on. [`u64::MAX`] where no such hook listens.
    pub fn clear(&self, channel: Channel) -> u64 {
        let Some(response) = &self.response else { return u64::MAX };
        response.reading(channel).map_or(u64::MAX, Reading::clear)
    }

    /// What is to be replaced in a channel's text, in order and without overlaps. Each is given once, before the place
    /// that it ends at is [`clear`](Session::clear) for the first time.
    pub fn take_redactions(&mut self, channel: Channel) -> Vec<Redaction> {
        let reading = self.response.as_mut().and_then(|response| response.reading_mut(channel));
        reading.map(Reading::take_redactions).unwrap_or_default()
    }

    /// Calls clear what is held of a channel, whatever it may become: the door's limit is reached, and the operator
    /// wants it passed on then.
    pub fn give_way(&mut self, channel: Channel) {
        if let Some(reading) = self.response.as_mut().and_then(|response| response.reading_mut(channel)) {
            reading.give_way();
        }
    }

    /// Counts a firing. False: the hook has used up its firings and stays silent.
    pub(crate) fn count(&mut self, key: &Arc<str>, max: Option<u64>) -> bool {
        let Some(max) = max else { return true };
        let fired = self.fired.entry(key.clone()).or_insert(0);
        if *fired >= max {
            return false;
        }
        *fired = fired.saturating_add(1);
        true
    }
}

impl Response {
    pub(crate) fn new(set: Arc<HookSet>) -> Response {
        Response { set, content: None, reasoning: None, calls: BTreeMap::new(), finished: false }
    }

    /// Notes the id of a tool call when a chunk brings it.
    pub(crate) fn learn(&mut self, chunk: &Chunk<'_>) {
        if let Chunk::ToolCallDelta { index, id: Some(id), .. } = chunk {
            let call = self.calls.entry(*index).or_default();
            if call.id.is_none() {
                call.id = Some((*id).to_owned());
            }
        }
    }

    /// The id of a tool call, once some chunk has brought it.
    pub(crate) fn call_id(&self, index: u32) -> Option<&str> {
        self.calls.get(&index)?.id.as_deref()
    }

    /// Feeds a piece of a channel's text to the patterns and scans of its type.
    pub(crate) fn push(&mut self, channel: Channel, text: &str, found: &mut Vec<Found>) {
        let hooks = self.set.chunk(channel.kind());
        if hooks.patterns.is_none() && hooks.scans.is_empty() {
            return;
        }
        let reading = match channel {
            Channel::Content => &mut self.content,
            Channel::Reasoning => &mut self.reasoning,
            Channel::Call(index) => &mut self.calls.entry(index).or_default().reading,
        };
        reading.get_or_insert_with(|| Reading::begin(hooks)).push(hooks, text, found);
    }

    /// Tells the patterns and scans of a channel that its text is complete.
    pub(crate) fn finish(&mut self, channel: Channel, found: &mut Vec<Found>) {
        let set = Arc::clone(&self.set);
        if let Some(reading) = self.reading_mut(channel) {
            reading.finish(set.chunk(channel.kind()), found);
        }
    }

    /// Notes that a hook wants what it found in a channel replaced.
    pub(crate) fn redact(&mut self, channel: Channel, slot: Slot, spans: Vec<Range<u64>>, with: String) {
        if let Some(reading) = self.reading_mut(channel) {
            reading.redact(slot, spans, with);
        }
    }

    /// Works out the replacements in what has become clear.
    pub(crate) fn settle(&mut self, channel: Channel) {
        if self.set.chunk(channel.kind()).holds.is_none() {
            return;
        }
        let set = Arc::clone(&self.set);
        if let Some(reading) = self.reading_mut(channel) {
            reading.settle(&set);
        }
    }

    fn reading(&self, channel: Channel) -> Option<&Reading> {
        match channel {
            Channel::Content => self.content.as_ref(),
            Channel::Reasoning => self.reasoning.as_ref(),
            Channel::Call(index) => self.calls.get(&index)?.reading.as_ref(),
        }
    }

    fn reading_mut(&mut self, channel: Channel) -> Option<&mut Reading> {
        match channel {
            Channel::Content => self.content.as_mut(),
            Channel::Reasoning => self.reasoning.as_mut(),
            Channel::Call(index) => self.calls.get_mut(&index)?.reading.as_mut(),
        }
    }

    /// The channels that have a text, in the order in which they end.
    pub(crate) fn channels(&self) -> Vec<Channel> {
        let calls = self.calls.iter().filter(|(_, call)| call.reading.is_some());
        self.reasoning
            .iter()
            .map(|_| Channel::Reasoning)
            .chain(self.content.iter().map(|_| Channel::Content))
            .chain(calls.map(|(index, _)| Channel::Call(*index)))
            .collect()
    }
}
