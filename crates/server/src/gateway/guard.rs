//! What hooks make of one answer of a provider: each piece is shown to them before the client can see it, and what they
//! wait for, want replaced or dropped is kept here until it is written.

use super::door::{Door, Wishes};
use hookgate_core::event::{Chunk, ChunkKind, ToolMoment, WatchEvent};
use hookgate_core::point::Point;
use hookgate_core::reading::Redaction;
use hookgate_core::session::{self, Answer};
use hookgate_core::verdict::Block;
use hookgate_llm::proxy::{Call, Change, Channel, ChannelKind, Piece};
use std::collections::VecDeque;

/// Which parts of an answer hooks look at. Taken once an answer, from the hooks that it begins with.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Looks {
    content: bool,
    reasoning: bool,
    arguments: bool,
    finish: bool,
    /// Tool calls wait for a verdict.
    pub(super) calls: bool,
    /// The text is needed whole at the end.
    text: bool,
    /// Something is told or asked at the end of the turn.
    end: bool,
    /// Something may be added to the text.
    adds: bool,
}

impl Looks {
    pub(super) fn of(door: &Door) -> Looks {
        let set = door.hooks.current();
        let text = set.listens_to_messages()
            || door.listens_at(Point::Message)
            || door.listens_at(Point::PreResponse);
        Looks {
            content: set.listens_to_chunks(ChunkKind::Content),
            reasoning: set.listens_to_chunks(ChunkKind::Reasoning),
            arguments: set.listens_to_chunks(ChunkKind::ToolCallDelta),
            finish: set.listens_to_chunks(ChunkKind::Finish),
            calls: set.listens_to_tools(ToolMoment::Before) || door.listens_at(Point::PreToolUse),
            text,
            end: text || door.listens_at(Point::Stop),
            adds: door.listens_at(Point::PreResponse),
        }
    }

    /// Whether the answer must be read at all.
    pub(super) fn anything(&self) -> bool {
        self.content || self.reasoning || self.arguments || self.finish || self.calls || self.end
    }

    fn at(&self, kind: ChannelKind) -> bool {
        match kind {
            ChannelKind::Content => self.content,
            ChannelKind::Reasoning => self.reasoning,
            ChannelKind::Call(_) => self.arguments,
        }
    }
}

/// What must have happened before an event may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until the answer goes on behind this closing of a text, or this choice has its end.
    Closing(u32, u64),
    /// The channel's text is clear up to here.
    Text(Channel, u64),
    /// The same of a text that is in no channel.
    Loose(u64, u64),
    /// The call was judged.
    Call(Channel),
    /// All that belongs to the end of the choice is done.
    Close(u32),
}

/// A text in an event: the n-th of it, and where it stands in its channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) nth: u32,
    pub(super) channel: Channel,
    pub(super) start: u64,
    pub(super) text: String,
}

/// What is to be done that takes time.
#[derive(Debug)]
pub(super) enum Todo {
    /// Ask about a call.
    Judge(Channel, Call),
    /// A choice ended with this reason.
    Close(u32, String),
}

/// One answer under way.
pub(super) struct Guard {
    looks: Looks,
    texts: Vec<(Channel, Text)>,
    calls: Vec<(Channel, Verdict)>,
    choices: Vec<(u32, Choice)>,
    pub(super) todo: VecDeque<Todo>,
    pub(super) wishes: Wishes,
    /// An error of the provider was passed on: there is no answer to shape.
    pub(super) failed: bool,
    /// What a hook interrupted for stands in no text of a channel.
    pub(super) hit_aside: bool,
    pub(super) usage: (Option<u64>, Option<u64>),
    /// Texts that belong to no channel and are not complete, by their place.
    loose: Vec<(u64, Loose)>,
    /// Events that close a text, and how many of them the answer went on behind.
    n_closings: u64,
    n_gone_on: u64,
}

#[derive(Debug, Default)]
struct Text {
    end: u64,
    clear: u64,
    redactions: Vec<Redaction>,
}

/// A text of no channel, which is read as an answer of its own.
#[derive(Debug, Default)]
struct Loose {
    answer: Answer,
    end: u64,
    clear: u64,
}

/// What is known of a call.
#[derive(Debug)]
enum Verdict {
    Open,
    Allowed,
    Blocked(Call, Block),
    /// The answer ended before the call was complete.
    Cut,
}

/// One of the answers to a request.
#[derive(Debug, Default)]
pub(super) struct Choice {
    answer: Answer,
    /// Its text, where the end needs it.
    pub(super) content: String,
    closed: bool,
    reason: Option<String>,
}

impl Guard {
    pub(super) fn new(looks: Looks) -> Guard {
        Guard {
            looks,
            texts: Vec::new(),
            calls: Vec::new(),
            choices: Vec::new(),
            todo: VecDeque::new(),
            wishes: Wishes::default(),
            failed: false,
            hit_aside: false,
            usage: (None, None),
            loose: Vec::new(),
            n_closings: 0,
            n_gone_on: 0,
        }
    }

    /// Shows a piece to the hooks. What it waits for and what text it has is noted for its event.
    pub(super) fn piece(
        &mut self,
        door: &Door,
        piece: Piece<'_>,
        nth: &mut u32,
        waits: &mut Vec<Wait>,
        parts: &mut Vec<Part>,
    ) {
        match piece {
            Piece::Text { channel, text } => {
                let number = *nth;
                *nth = nth.saturating_add(1);
                self.text(door, channel, number, &text, waits, parts);
            }
            Piece::CallBegin { channel, .. } if self.looks.calls => {
                self.calls.push((channel, Verdict::Open));
                waits.push(Wait::Call(channel));
            }
            Piece::CallEnd { channel, call } if self.looks.calls => {
                if !self.calls.iter().any(|(known, _)| *known == channel) {
                    self.calls.push((channel, Verdict::Open));
                }
                waits.push(Wait::Call(channel));
                self.todo.push_back(Todo::Judge(channel, call));
            }
            Piece::CallBegin { .. } | Piece::CallEnd { .. } => {}
            Piece::Aside(text) => self.aside(door, &text),
            Piece::Loose { of, text } => self.loose(door, of, &text, waits),
            Piece::Closing { choice } if self.looks.adds => {
                self.n_closings = self.n_closings.saturating_add(1);
                waits.push(Wait::Closing(choice, self.n_closings));
            }
            Piece::Closing { .. } => {}
            Piece::Finish { choice, reason } => {
                if self.choice(choice).reason.replace(reason.to_string()).is_none() {
                    if let Some(story) = &door.story {
                        story.finished(&reason);
                    }
                    self.todo.push_back(Todo::Close(choice, reason.into_owned()));
                }
                waits.push(Wait::Close(choice));
            }
            Piece::Error(_) => self.failed = true,
            Piece::Usage { input, output } => {
                self.usage = (input.or(self.usage.0), output.or(self.usage.1));
                if let Some(story) = &door.story {
                    story.used(input, output);
                }
            }
            Piece::Done => {}
        }
    }

    fn text(
        &mut self,
        door: &Door,
        channel: Channel,
        nth: u32,
        text: &str,
        waits: &mut Vec<Wait>,
        parts: &mut Vec<Part>,
    ) {
        if self.looks.text && channel.kind == ChannelKind::Content {
            self.choice(channel.choice).content.push_str(text);
        }
        let judged = self.looks.calls && matches!(channel.kind, ChannelKind::Call(_));
        if judged {
            waits.push(Wait::Call(channel));
        }
        if !self.looks.at(channel.kind) && !judged {
            return;
        }
        let slot = text_slot(&mut self.texts, channel);
        let start = slot.end;
        slot.end = start.saturating_add(text.len() as u64);
        let end = slot.end;
        parts.push(Part { nth, channel, start, text: text.to_owned() });
        if !self.looks.at(channel.kind) {
            return;
        }
        let (chunk, inner) = match channel.kind {
            ChannelKind::Content => (Chunk::Content(text), session::Channel::Content),
            ChannelKind::Reasoning => (Chunk::Reasoning(text), session::Channel::Reasoning),
            ChannelKind::Call(index) => {
                (Chunk::ToolCallDelta { index, id: None, text }, session::Channel::Call(index))
            }
        };
        let mut state = door.conversation.state();
        let answer = &mut choice_slot(&mut self.choices, channel.choice).answer;
        let wishes = door.tell(&mut state, Some(answer), &WatchEvent::Chunk(chunk));
        state.hooks.swap(answer);
        let clear = state.hooks.clear(inner);
        let redactions = state.hooks.take_redactions(inner);
        state.hooks.swap(answer);
        drop(state);
        if wishes.fired {
            door.tell_observers();
        }
        self.wishes.join(wishes);
        let slot = text_slot(&mut self.texts, channel);
        slot.clear = clear;
        slot.redactions.extend(redactions);
        if clear < end {
            waits.push(Wait::Text(channel, end));
        }
    }

    /// Text of no channel: complete in itself, so it is read as an answer of its own. What a hook would replace in it
    /// cannot be replaced where nobody knows what it is: then the answer ends.
    fn aside(&mut self, door: &Door, text: &str) {
        if !self.looks.content {
            return;
        }
        let mut state = door.conversation.state();
        let mut answer = Answer::default();
        let mut wishes = door.tell(&mut state, Some(&mut answer), &WatchEvent::Chunk(Chunk::Content(text)));
        state.hooks.swap(&mut answer);
        let clear = state.hooks.clear(session::Channel::Content);
        state.hooks.swap(&mut answer);
        if clear < text.len() as u64 {
            // what its end could still make a match is one now, or never
            let end = WatchEvent::Chunk(Chunk::Finish { reason: "" });
            wishes.join(door.tell(&mut state, Some(&mut answer), &end));
        }
        drop(state);
        self.join_aside(wishes);
    }

    /// A piece of a text of no channel that later events may go on with.
    fn loose(&mut self, door: &Door, of: u64, text: &str, waits: &mut Vec<Wait>) {
        if !self.looks.content {
            return;
        }
        let loose = slot(&mut self.loose, of);
        loose.end = loose.end.saturating_add(text.len() as u64);
        let mut state = door.conversation.state();
        let said = WatchEvent::Chunk(Chunk::Content(text));
        let wishes = door.tell(&mut state, Some(&mut loose.answer), &said);
        state.hooks.swap(&mut loose.answer);
        loose.clear = state.hooks.clear(session::Channel::Content);
        state.hooks.swap(&mut loose.answer);
        drop(state);
        if loose.clear < loose.end {
            waits.push(Wait::Loose(of, loose.end));
        }
        self.join_aside(wishes);
    }

    /// Tells hooks that the texts of no channel are complete.
    pub(super) fn finish_loose(&mut self, door: &Door) {
        for (_, mut loose) in std::mem::take(&mut self.loose) {
            let end = WatchEvent::Chunk(Chunk::Finish { reason: "" });
            let wishes = door.tell(&mut door.conversation.state(), Some(&mut loose.answer), &end);
            self.join_aside(wishes);
        }
    }

    /// What hooks want of text that nobody knows: what would be replaced in it cannot be, so the answer ends.
    fn join_aside(&mut self, mut wishes: Wishes) {
        if wishes.redacts && wishes.interrupt.is_none() {
            wishes.interrupt = Some(("hookgate".to_owned(), false));
        }
        self.hit_aside |= wishes.interrupt.is_some();
        self.wishes.join(wishes);
    }

    /// Tells hooks that a choice ended: its texts are complete, and so all clear.
    pub(super) fn finish(&mut self, door: &Door, choice: u32, reason: &str) {
        let mut state = door.conversation.state();
        let answer = &mut choice_slot(&mut self.choices, choice).answer;
        let mut wishes = Wishes::default();
        if self.looks.content || self.looks.reasoning || self.looks.arguments || self.looks.finish {
            wishes = door.tell(&mut state, Some(answer), &WatchEvent::Chunk(Chunk::Finish { reason }));
        }
        state.hooks.swap(answer);
        for (channel, text) in self.texts.iter_mut().filter(|(channel, _)| channel.choice == choice) {
            let inner = name_of(channel.kind);
            text.redactions.extend(state.hooks.take_redactions(inner));
            text.clear = u64::MAX;
        }
        state.hooks.swap(answer);
        drop(state);
        self.wishes.join(wishes);
        if !door.several {
            // of several answers nobody knows which goes on
            self.finish_loose(door);
        }
    }

    /// Calls all texts clear that are held, whatever they may become.
    pub(super) fn give_way(&mut self, door: &Door) {
        let mut state = door.conversation.state();
        for (channel, text) in &mut self.texts {
            let inner = name_of(channel.kind);
            let answer = &mut choice_slot(&mut self.choices, channel.choice).answer;
            state.hooks.swap(answer);
            state.hooks.give_way(inner);
            text.redactions.extend(state.hooks.take_redactions(inner));
            state.hooks.swap(answer);
            text.clear = text.end;
        }
        for (_, loose) in &mut self.loose {
            state.hooks.swap(&mut loose.answer);
            state.hooks.give_way(session::Channel::Content);
            state.hooks.swap(&mut loose.answer);
            loose.clear = loose.end;
        }
    }

    /// Whether an event that waits for this may go.
    pub(super) fn is_done(&self, wait: &Wait) -> bool {
        match wait {
            Wait::Text(channel, end) => {
                self.texts.iter().any(|(known, text)| known == channel && text.clear >= *end)
            }
            Wait::Call(channel) => self
                .calls
                .iter()
                .any(|(known, verdict)| known == channel && !matches!(verdict, Verdict::Open)),
            Wait::Loose(of, end) => {
                self.loose.iter().find(|(known, _)| known == of).is_none_or(|(_, text)| text.clear >= *end)
            }
            Wait::Closing(choice, n) => *n <= self.n_gone_on || self.is_done(&Wait::Close(*choice)),
            Wait::Close(choice) => self.choices.iter().any(|(known, at)| known == choice && at.closed),
        }
    }

    /// The answer goes on behind what closes a text, or it is over: nothing is added there.
    pub(super) fn go_on(&mut self) {
        self.n_gone_on = self.n_closings;
    }

    /// Whether some text waits that may still become a match.
    pub(super) fn holds_text(&self) -> bool {
        self.texts.iter().any(|(_, text)| text.clear < text.end)
            || self.loose.iter().any(|(_, text)| text.clear < text.end)
    }

    /// Whether these parts must be written otherwise than they came.
    pub(super) fn changes(&self, parts: &[Part]) -> Vec<Change> {
        let mut changes = Vec::new();
        for part in parts {
            let Some((_, text)) = self.texts.iter().find(|(channel, _)| *channel == part.channel) else {
                continue;
            };
            if let Some(text) = redacted(part, &text.redactions) {
                changes.push(Change::Text { nth: part.nth, text });
            }
        }
        changes
    }

    /// The whole text of a channel, as far as hooks have replaced something in it.
    pub(super) fn shown(&self, channel: Channel, text: &str) -> String {
        let redactions = self.texts.iter().find(|(known, _)| *known == channel);
        let part = Part { nth: 0, channel, start: 0, text: text.to_owned() };
        redactions.and_then(|(_, known)| redacted(&part, &known.redactions)).unwrap_or(part.text)
    }

    /// The call may go out, with this input where hooks changed it.
    pub(super) fn allow(&mut self, channel: Channel, changed: Option<String>) {
        self.decide(channel, Verdict::Allowed);
        if let Some(with) = changed {
            let text = text_slot(&mut self.texts, channel);
            text.redactions = vec![Redaction { range: 0..text.end, with }];
        }
    }

    /// The call stays here.
    pub(super) fn block(&mut self, channel: Channel, call: Call, block: Block) {
        self.decide(channel, Verdict::Blocked(call, block));
    }

    fn decide(&mut self, channel: Channel, verdict: Verdict) {
        match self.calls.iter_mut().find(|(known, _)| *known == channel) {
            Some((_, open)) => *open = verdict,
            None => self.calls.push((channel, verdict)),
        }
    }

    /// The calls that were never complete. They count as decided now; nothing of them may go out.
    pub(super) fn give_up_calls(&mut self) -> Vec<Channel> {
        let open = self.calls.iter_mut().filter(|(_, verdict)| matches!(verdict, Verdict::Open));
        open.map(|(channel, verdict)| {
            *verdict = Verdict::Cut;
            *channel
        })
        .collect()
    }

    /// The calls of a choice that stay here, and how many go out.
    pub(super) fn blocked(&self, choice: u32) -> (Vec<(&Call, &Block)>, usize) {
        let of_choice = self.calls.iter().filter(|(channel, _)| channel.choice == choice);
        let mut blocked = Vec::new();
        let mut allowed = 0usize;
        for (_, verdict) in of_choice {
            match verdict {
                Verdict::Blocked(call, block) => blocked.push((call, block)),
                Verdict::Allowed => allowed = allowed.saturating_add(1),
                Verdict::Open | Verdict::Cut => {}
            }
        }
        (blocked, allowed)
    }

    /// How many choices there are.
    pub(super) fn n_choices(&self) -> usize {
        self.choices.len()
    }

    /// The choices that have not ended.
    pub(super) fn open_choices(&self) -> Vec<u32> {
        let open = self.choices.iter().filter(|(_, choice)| choice.reason.is_none());
        open.map(|(number, _)| *number).collect()
    }

    /// All that belongs to the end of a choice is done.
    pub(super) fn close(&mut self, choice: u32) {
        self.choice(choice).closed = true;
    }

    pub(super) fn choice(&mut self, number: u32) -> &mut Choice {
        choice_slot(&mut self.choices, number)
    }

    /// Whether the end of the answer matters to somebody.
    pub(super) fn looks_at_end(&self) -> bool {
        self.looks.end
    }
}

/// The engine's name of a text.
fn name_of(kind: ChannelKind) -> session::Channel {
    match kind {
        ChannelKind::Content => session::Channel::Content,
        ChannelKind::Reasoning => session::Channel::Reasoning,
        ChannelKind::Call(index) => session::Channel::Call(index),
    }
}

fn text_slot(texts: &mut Vec<(Channel, Text)>, channel: Channel) -> &mut Text {
    slot(texts, channel)
}

fn choice_slot(choices: &mut Vec<(u32, Choice)>, number: u32) -> &mut Choice {
    slot(choices, number)
}

/// The value of a key in a short list; a new one where there is none.
fn slot<K: PartialEq, V: Default>(list: &mut Vec<(K, V)>, key: K) -> &mut V {
    let at = list.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
        list.push((key, V::default()));
        list.len().saturating_sub(1)
    });
    // the place was just found or made
    #[expect(clippy::indexing_slicing, reason = "`at` is a place of the list")]
    &mut list[at].1
}

/// A part's text with what is replaced in it; none where nothing is. What stands in the place of a range goes to the part
/// in which the range begins.
fn redacted(part: &Part, redactions: &[Redaction]) -> Option<String> {
    let end = part.start.saturating_add(part.text.len() as u64);
    let mut out = String::new();
    let mut at = part.start;
    let mut changed = false;
    for redaction in redactions {
        let (from, to) = (redaction.range.start.max(part.start), redaction.range.end.min(end));
        let begins_here = (part.start..end).contains(&redaction.range.start);
        if from >= to && !begins_here {
            continue;
        }
        changed = true;
        out.push_str(slice(&part.text, part.start, at, from));
        if begins_here {
            out.push_str(&redaction.with);
        }
        at = at.max(to);
    }
    out.push_str(slice(&part.text, part.start, at, end));
    changed.then_some(out)
}

fn slice(text: &str, base: u64, from: u64, to: u64) -> &str {
    let at = |place: u64| usize::try_from(place.saturating_sub(base)).unwrap_or(usize::MAX);
    text.get(at(from)..at(to).min(text.len())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_replaced_across_parts() {
        let channel = Channel { choice: 0, kind: ChannelKind::Content };
        let parts = [("abc", 0), ("def", 3), ("ghi", 6)].map(|(text, start)| Part {
            nth: 0,
            channel,
            start,
            text: text.to_owned(),
        });
        let check = |ranges: &[(u64, u64)], want: [Option<&str>; 3]| {
            let redactions: Vec<Redaction> = ranges
                .iter()
                .map(|(from, to)| Redaction { range: *from..*to, with: "_".to_owned() })
                .collect();
            let got = parts.each_ref().map(|part| redacted(part, &redactions));
            assert_eq!(got, want.map(|text| text.map(str::to_owned)), "{ranges:?}");
        };
        check(&[], [None, None, None]);
        check(&[(2, 7)], [Some("ab_"), Some(""), Some("hi")]);
        check(&[(3, 6)], [None, Some("_"), None]);
        check(&[(0, 1), (2, 3), (8, 9)], [Some("_b_"), None, Some("gh_")]);
    }
}
