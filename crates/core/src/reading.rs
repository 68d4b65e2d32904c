//! One text of an answer on its way: what is found in it, and how much of it may be passed on.

use crate::hook::Hook;
use crate::pattern::{Hit, HoldCursor, StreamCursor};
use crate::scan::{Find, Scanning};
use crate::session::Found;
use crate::set::{ChunkHooks, HookSet, Slot};
use std::ops::Range;

/// A piece of a channel's text that the reader must not see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redaction {
    /// Where, in bytes of the channel's text.
    pub range: Range<u64>,
    /// What stands in its place.
    pub with: String,
}

/// How far the text of a channel has been read.
#[derive(Debug)]
pub(crate) struct Reading {
    patterns: Option<StreamCursor>,
    hits: Vec<Hit>,
    scans: Vec<(Slot, Box<dyn Scanning>, bool)>,
    finds: Vec<Find>,
    hold: Option<HoldCursor>,
    /// The pattern hooks whose matches are to be replaced once they are clear, with what.
    due: Vec<Due>,
    /// Up to here the due patterns have looked for beginnings.
    looked: u64,
    redactions: Vec<Redaction>,
    finished: bool,
}

/// A pattern hook that fired, whose matches are to be replaced.
#[derive(Debug)]
struct Due {
    slot: Slot,
    with: String,
    /// Where its next match may begin.
    from: u64,
}

impl Reading {
    pub(crate) fn begin(hooks: &ChunkHooks) -> Reading {
        Reading {
            patterns: hooks.patterns.as_ref().map(|patterns| patterns.set.cursor()),
            hits: Vec::new(),
            scans: hooks.scans.iter().map(|at| (at.slot, at.scan.begin(), at.holds)).collect(),
            finds: Vec::new(),
            hold: hooks.holds.as_ref().map(|set| set.cursor()),
            due: Vec::new(),
            looked: 0,
            redactions: Vec::new(),
            finished: false,
        }
    }

    /// Takes the next piece.
    pub(crate) fn push(&mut self, hooks: &ChunkHooks, text: &str, found: &mut Vec<Found>) {
        if let (Some(patterns), Some(cursor)) = (&hooks.patterns, &mut self.patterns) {
            cursor.push(&patterns.set, text, &mut self.hits);
            patterns.name(&mut self.hits, found);
        }
        self.scan(|scanning, finds| scanning.push(text, finds), found);
        if let Some(hold) = &mut self.hold {
            hold.push(text);
        }
    }

    /// Takes the end of the text.
    pub(crate) fn finish(&mut self, hooks: &ChunkHooks, found: &mut Vec<Found>) {
        if std::mem::replace(&mut self.finished, true) {
            return;
        }
        if let (Some(patterns), Some(cursor)) = (&hooks.patterns, &mut self.patterns) {
            cursor.finish(&patterns.set, &mut self.hits);
            patterns.name(&mut self.hits, found);
        }
        self.scan(|scanning, finds| scanning.finish(finds), found);
        if let Some(hold) = &mut self.hold {
            hold.finish();
        }
    }

    /// Notes that a hook which fired wants what it found replaced.
    pub(crate) fn redact(&mut self, slot: Slot, spans: Vec<Range<u64>>, with: String) {
        if !spans.is_empty() {
            self.redactions.extend(spans.into_iter().map(|range| Redaction { range, with: with.clone() }));
            return;
        }
        match self.due.iter_mut().find(|due| due.slot == slot) {
            Some(due) => due.with = with,
            None => self.due.push(Due { slot, with, from: self.looked }),
        }
    }

    /// Finds what is to be replaced in what has become clear, after all hooks of a piece have fired.
    pub(crate) fn settle(&mut self, set: &HookSet) {
        let Some(hold) = &mut self.hold else { return };
        let clear = hold.clear();
        let (text, base) = hold.kept();
        for due in &mut self.due {
            let Some(pattern) = set.hook(due.slot).and_then(|hook: &Hook| hook.listens.regex()) else {
                continue;
            };
            let at = |place: u64| usize::try_from(place.saturating_sub(base)).unwrap_or(usize::MAX);
            for found in pattern.find_in(text, at(due.from)..at(clear).min(text.len())) {
                let place = |at: usize| base.saturating_add(at as u64);
                let range = place(found.start)..place(found.end);
                due.from = range.end;
                self.redactions.push(Redaction { range, with: due.with.clone() });
            }
            due.from = due.from.max(clear);
        }
        if clear == hold.end() {
            self.due.clear();
        }
        self.looked = clear;
        hold.shed();
    }

    /// The place before which the text may be passed on. It is never inside something that is to be replaced.
    pub(crate) fn clear(&self) -> u64 {
        let mut clear = self.hold.as_ref().map_or(u64::MAX, HoldCursor::clear);
        if !self.finished {
            for (_, scanning, _) in self.scans.iter().filter(|(_, _, holds)| *holds) {
                clear = clear.min(scanning.clear());
            }
        }
        let crossing = |place: u64| {
            let ranges = self.redactions.iter().map(|redaction| &redaction.range);
            ranges.filter(|range| range.start < place && place < range.end).map(|range| range.start).min()
        };
        while let Some(earlier) = crossing(clear) {
            clear = earlier;
        }
        clear
    }

    /// What is to be replaced before [`clear`](Reading::clear), in order, without overlaps.
    pub(crate) fn take_redactions(&mut self) -> Vec<Redaction> {
        if self.redactions.is_empty() {
            return Vec::new();
        }
        let clear = self.clear();
        let all = std::mem::take(&mut self.redactions).into_iter();
        let (mut ready, later): (Vec<_>, Vec<_>) = all.partition(|redaction| redaction.range.end <= clear);
        self.redactions = later;
        ready.sort_by_key(|redaction| redaction.range.start);
        let mut out: Vec<Redaction> = Vec::with_capacity(ready.len());
        for next in ready {
            match out.last_mut() {
                Some(last) if next.range.start < last.range.end => {
                    last.range.end = last.range.end.max(next.range.end);
                }
                _ => out.push(next),
            }
        }
        out
    }

    /// Calls clear what is held.
    pub(crate) fn give_way(&mut self) {
        if let Some(hold) = &mut self.hold {
            hold.give_way();
        }
        for (_, scanning, _) in &mut self.scans {
            scanning.give_way();
        }
    }

    /// Lets all scans look; a hook fires once, whatever it found.
    fn scan(&mut self, look: impl Fn(&mut dyn Scanning, &mut Vec<Find>), found: &mut Vec<Found>) {
        for (slot, scanning, _) in &mut self.scans {
            look(scanning.as_mut(), &mut self.finds);
            if self.finds.is_empty() {
                continue;
            }
            let names: Vec<&str> = self.finds.iter().map(|find| find.name).collect();
            let matched = names.join(", ");
            let spans = self.finds.drain(..).map(|find| find.span).collect();
            found.push(Found { slot: *slot, matched, spans });
        }
    }
}
