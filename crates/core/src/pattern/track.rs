//! One pattern's matches along a text that arrives in pieces.
//!
//! The set's automaton tells that some match ends somewhere. Whether that is a new match, or part of one that was
//! reported, or one that JavaScript's `matchAll` would not find because it begins inside another, is decided here: a
//! [`Run`] goes over the text as `matchAll` does, one after the other, each from the end of the match before it.

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::Cache;
use regex_automata::{Anchored, Input};

use super::automaton::{Ahead, Engine, look_ahead, start};
use super::cursor::WINDOW;
use super::tail::Tail;

/// What is known about the matches of one pattern.
#[derive(Debug)]
pub(super) struct Track {
    /// No match that begins before this place is of interest any more.
    from: u64,
    /// The last match began before all that was kept.
    lost_start: bool,
    /// A reported match that may still grow.
    run: Option<Box<Run>>,
    /// How many matches were found.
    found: u64,
}

/// What the newest block means for a pattern.
pub(super) struct News<'t> {
    /// The text so far, with the block.
    pub(super) tail: &'t Tail,
    /// Where the set's automaton saw the first end of a match.
    pub(super) hit: Option<u64>,
    /// Whether the text ends here.
    pub(super) at_end: bool,
    /// Whether the pattern can match empty text.
    pub(super) empty: bool,
    /// The pattern was reported in this piece, and the piece is far from over: whatever else matches counts as seen.
    pub(super) skim: bool,
}

impl Track {
    pub(super) fn new(from: u64) -> Self {
        Self { from, lost_start: false, run: None, found: 0 }
    }

    /// Whether the track must see the next block even when the set's automaton sees nothing in it.
    pub(super) fn is_running(&self) -> bool {
        self.run.is_some()
    }

    #[cfg(test)]
    pub(super) fn found(&self) -> u64 {
        self.found
    }

    /// Takes the newest block. Gives the text of the first new match in it.
    pub(super) fn advance(&mut self, engine: &Engine, news: &News<'_>) -> Option<String> {
        let tail = news.tail;
        if news.empty && news.at_end && self.found > 0 {
            return None;
        }
        if news.skim {
            self.skim(engine, news);
            return None;
        }
        let (mut run, at) = match self.run.take() {
            Some(run) => (run, tail.block()),
            None => {
                let from = self.from.max(tail.floor());
                (Box::new(Run::new(engine, tail, from)?), from)
            }
        };
        let misses_text = run.end.is_none() && run.from > self.from;
        let (first, keep) = self.follow(&mut run, engine, news, at);
        if keep {
            self.run = Some(run);
        } else {
            run.give_back(engine);
        }
        match news.hit {
            Some(hit) if first.is_none() && misses_text => self.lost(tail, hit),
            _ => first,
        }
    }

    /// Follows the matches to the end of the text so far. Gives the text of the first new one, and whether the last
    /// one may still grow.
    fn follow(
        &mut self,
        run: &mut Run,
        engine: &Engine,
        news: &News<'_>,
        mut at: u64,
    ) -> (Option<String>, bool) {
        let tail = news.tail;
        let mut first = None;
        loop {
            let over = run.step(engine, news, at);
            let Some(end) = run.end else {
                if over {
                    self.from = tail.end();
                }
                return (first, false);
            };
            if !tail.text().is_char_boundary(tail.offset(end)) {
                // `\B` is true inside a character, where JavaScript has no place.
                at = tail.next_character(end);
                run.restart(engine, tail, at);
                continue;
            }
            if run.is_new {
                run.is_new = false;
                self.found += 1;
                self.lost_start = false;
                first.get_or_insert_with(|| run.text(engine, tail, end));
            }
            if news.empty {
                self.from = tail.end();
                return (first, false);
            }
            if !over {
                return (first, true);
            }
            self.from = end;
            // A match that is not empty ends after `at`, so this goes forward.
            at = end.max(tail.floor());
            if at >= tail.end() {
                return (first, false);
            }
            run.restart(engine, tail, at);
        }
    }

    /// Goes on with a match under way, and looks for no other.
    fn skim(&mut self, engine: &Engine, news: &News<'_>) {
        self.from = news.tail.end();
        self.run = self.run.take().and_then(|mut run| {
            let over = run.step(engine, news, news.tail.block());
            if over {
                run.give_back(engine);
                return None;
            }
            Some(run)
        });
    }

    /// A match ends at `hit`, and none of it begins in what is kept: it is longer than that. Reported once, until the
    /// pattern matches again in plain sight.
    fn lost(&mut self, tail: &Tail, hit: u64) -> Option<String> {
        self.from = hit;
        if std::mem::replace(&mut self.lost_start, true) {
            return None;
        }
        self.found += 1;
        let text = tail.text();
        let end = tail.offset(hit);
        let mut start = end.saturating_sub(WINDOW);
        while !text.is_char_boundary(start) {
            start += 1;
        }
        Some(text.get(start..end).unwrap_or_default().to_owned())
    }
}

/// The search for one match, and the match as far as it is known.
#[derive(Debug)]
struct Run {
    cache: Cache,
    state: LazyStateID,
    from: u64,
    /// The end of the match so far.
    end: Option<u64>,
    /// The match was not reported yet, so the text from `from` on is still there.
    is_new: bool,
}

impl Run {
    fn new(engine: &Engine, tail: &Tail, from: u64) -> Option<Self> {
        let mut cache = engine.forward.take();
        let state = start(&engine.forward.dfa, &mut cache, tail.before(from))?;
        Some(Self { cache, state, from, end: None, is_new: true })
    }

    fn restart(&mut self, engine: &Engine, tail: &Tail, from: u64) {
        if let Some(state) = start(&engine.forward.dfa, &mut self.cache, tail.before(from)) {
            self.state = state;
        }
        self.from = from;
        self.end = None;
        self.is_new = true;
    }

    fn give_back(self, engine: &Engine) {
        engine.forward.give(self.cache);
    }

    /// Goes on from `at` to the end of the text so far. True when the search is over: nothing to come can change it.
    fn step(&mut self, engine: &Engine, news: &News<'_>, at: u64) -> bool {
        let (dfa, tail) = (&engine.forward.dfa, news.tail);
        for (n, &byte) in tail.bytes(at).iter().enumerate() {
            let Ok(state) = dfa.next_state(&mut self.cache, self.state, byte) else { return true };
            self.state = state;
            if state.is_tagged() {
                if state.is_match() {
                    // The automaton tells a match one byte late.
                    self.end = Some(at + n as u64);
                } else if state.is_dead() {
                    return true;
                }
            }
        }
        if news.at_end {
            let last = dfa.next_eoi_state(&mut self.cache, self.state);
            if last.is_ok_and(|state| state.is_match()) {
                self.end = Some(tail.end());
            }
            return true;
        }
        if self.is_new && self.is_certain(engine, tail) {
            self.end = Some(tail.end());
        }
        false
    }

    /// Whether a match ends at the end of the text so far, whatever comes next.
    fn is_certain(&mut self, engine: &Engine, tail: &Tail) -> bool {
        // After starting over there is room, unless the cache is absurdly small; then the match is told a byte late.
        for _ in 0..2 {
            match look_ahead(&engine.forward.dfa, &mut self.cache, self.state, |_| {}) {
                Ahead::Certain => return true,
                Ahead::Open => return false,
                Ahead::Cleared => self.again(engine, tail),
            };
        }
        false
    }

    /// Finds the state again after the cache was started over.
    fn again(&mut self, engine: &Engine, tail: &Tail) {
        let Some(mut state) = start(&engine.forward.dfa, &mut self.cache, tail.before(self.from)) else {
            return;
        };
        for &byte in tail.bytes(self.from) {
            let Ok(next) = engine.forward.dfa.next_state(&mut self.cache, state, byte) else { return };
            state = next;
        }
        self.state = state;
    }

    /// The text of the match so far, cut to a window's worth.
    fn text(&self, engine: &Engine, tail: &Tail, end: u64) -> String {
        let (text, from, end) = (tail.text(), tail.offset(self.from), tail.offset(end));
        let input = Input::new(text).range(from..end.max(from)).anchored(Anchored::Yes);
        let mut cache = engine.backward.take();
        let found = engine.backward.dfa.try_search_rev(&mut cache, &input);
        engine.backward.give(cache);
        let start = found.ok().flatten().map_or(from, |found| found.offset());
        let mut last = end.min(start + WINDOW);
        while !text.is_char_boundary(last) {
            last -= 1;
        }
        text.get(start..last).unwrap_or_default().to_owned()
    }
}
