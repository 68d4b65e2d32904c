//! What the engine remembers of one session: how often hooks fired, and the text of the answer so far.

use crate::event::{Chunk, ChunkKind};
use crate::pattern::{Hit, StreamCursor};
use crate::scan::Scanning;
use crate::set::{ChunkHooks, HookSet, Slot};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One conversation, as far as hooks are concerned. A door holds one for each; no two share anything.
#[derive(Debug, Default)]
pub struct Session {
    fired: HashMap<Arc<str>, u64>,
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
}

#[derive(Debug, Default)]
struct Call {
    id: Option<String>,
    reading: Option<Reading>,
}

/// How far the text of a channel has been read.
#[derive(Debug)]
struct Reading {
    patterns: Option<StreamCursor>,
    hits: Vec<Hit>,
    scans: Vec<(Slot, Box<dyn Scanning>)>,
}

/// A hook that found something in a channel's text.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) slot: Slot,
    pub(crate) matched: String,
}

/// The name of a channel of an answer; each is a text of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Content,
    Reasoning,
    Call(u32),
}

impl Channel {
    pub(crate) fn kind(self) -> ChunkKind {
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
        Response { set, content: None, reasoning: None, calls: BTreeMap::new() }
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
        let reading = reading.get_or_insert_with(|| Reading::begin(hooks));
        if let (Some(patterns), Some(cursor)) = (&hooks.patterns, &mut reading.patterns) {
            cursor.push(&patterns.set, text, &mut reading.hits);
            patterns.name(&mut reading.hits, found);
        }
        reading.scan(|scanning, names| scanning.push(text, names), found);
    }

    /// Tells the patterns and scans of a channel that its text is complete.
    pub(crate) fn finish(&mut self, channel: Channel, found: &mut Vec<Found>) {
        let hooks = self.set.chunk(channel.kind());
        let reading = match channel {
            Channel::Content => self.content.take(),
            Channel::Reasoning => self.reasoning.take(),
            Channel::Call(index) => self.calls.get_mut(&index).and_then(|call| call.reading.take()),
        };
        let Some(mut reading) = reading else { return };
        if let (Some(patterns), Some(cursor)) = (&hooks.patterns, &mut reading.patterns) {
            cursor.finish(&patterns.set, &mut reading.hits);
            patterns.name(&mut reading.hits, found);
        }
        reading.scan(|scanning, names| scanning.finish(names), found);
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

impl Reading {
    fn begin(hooks: &ChunkHooks) -> Reading {
        Reading {
            patterns: hooks.patterns.as_ref().map(|patterns| patterns.set.cursor()),
            hits: Vec::new(),
            scans: hooks.scans.iter().map(|(slot, scan)| (*slot, scan.begin())).collect(),
        }
    }

    /// Lets all scans look; a hook fires once, whatever it found.
    fn scan(&mut self, look: impl Fn(&mut dyn Scanning, &mut Vec<String>), found: &mut Vec<Found>) {
        for (slot, scanning) in &mut self.scans {
            let mut names = Vec::new();
            look(scanning.as_mut(), &mut names);
            if !names.is_empty() {
                found.push(Found { slot: *slot, matched: names.join(", ") });
            }
        }
    }
}
