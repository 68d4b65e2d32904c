//! How much of a text that arrives in pieces can be passed on: all of it up to the first place where a match of some
//! pattern may have begun and not ended.
//!
//! What is promised:
//!
//! - However the text is cut, no byte is called clear that belongs to a match that is found later.
//! - What cannot become a match any more is clear with the piece that shows it.
//!
//! One automaton over all patterns is stepped along the text. While nothing is under way it rests in a start state, and
//! everything before is clear at once. Only where it does not, the earliest beginning that is still alive is looked
//! for: an anchored run from each place, one after the other, given up at the place where it dies. The work of a piece
//! is bounded; what it was not enough for stays held and is looked at with the next piece.

use super::automaton::{self, SET_CACHE};
use super::shard::{SHARDS, Shard, Shards, Stamp};
use super::stream_set::ORDINARY_TEXT;
use super::{Pattern, PatternError};
use regex_automata::Anchored;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::DFA;
use regex_automata::util::start;
use std::sync::Arc;

/// Steps that a piece may cost beside those over its own bytes.
const STEPS: usize = 4 << 10;

/// The patterns whose matches must not be passed on half. Cheap to clone, shared by all texts.
#[derive(Clone, Debug)]
pub struct HoldSet {
    shards: Arc<Shards>,
}

impl HoldSet {
    /// Joins patterns.
    ///
    /// # Errors
    ///
    /// When the patterns together are too large.
    pub fn new(patterns: &[&Pattern]) -> Result<HoldSet, PatternError> {
        let dfa = automaton::of_held(patterns, SET_CACHE)?;
        Ok(HoldSet { shards: Arc::new(Shards::new(dfa, SHARDS)) })
    }

    /// A cursor at the beginning of a text.
    pub fn cursor(&self) -> HoldCursor {
        HoldCursor {
            shard: self.shards.assign(),
            shards: Arc::clone(&self.shards),
            text: String::new(),
            base: 0,
            clear: 0,
            free: None,
            run: None,
        }
    }

    /// As [`StreamSet::warm`](super::StreamSet::warm).
    pub fn warm(&self) {
        let dfa = &self.shards.dfa;
        self.shards.warm(|shard| {
            let Some(mut state) = begin(dfa, shard, Anchored::No, None) else { return };
            for &byte in ORDINARY_TEXT.as_bytes() {
                let Ok(next) = dfa.next_state(&mut shard.cache, state, byte) else { return };
                state = next;
            }
        });
    }
}

/// A place in one text. Keeps what is held of it, and what the owner has not [shed](HoldCursor::shed).
#[derive(Debug)]
pub struct HoldCursor {
    shards: Arc<Shards>,
    shard: usize,
    /// The kept end of the text; its first character may only be there for what follows it.
    text: String,
    /// Place of its first byte in the whole text.
    base: u64,
    /// Everything before this place is clear.
    clear: u64,
    /// The automaton's state at the end, over all beginnings.
    free: Option<(LazyStateID, Stamp)>,
    /// The state of the run that begins at `clear`, and the place that it came to.
    run: Option<(LazyStateID, Stamp, u64)>,
}

impl HoldCursor {
    /// Takes the next piece. Gives the place before which everything is clear, in bytes of the whole text.
    pub fn push(&mut self, piece: &str) -> u64 {
        if piece.is_empty() {
            return self.clear;
        }
        let shards = Arc::clone(&self.shards);
        let mut shard = shards.lock(self.shard);
        let from = self.text.len();
        let state = self.resume(&shards.dfa, &mut shard);
        self.text.push_str(piece);
        let Some(state) = state else { return self.clear };
        if self.follow(&shards.dfa, &mut shard, state, from) {
            self.advance_to(self.end());
        } else {
            self.catch_up(&shards.dfa, &mut shard);
        }
        self.clear
    }

    /// Takes the end of the text: all of it is clear now.
    pub fn finish(&mut self) -> u64 {
        self.advance_to(self.end());
        self.clear
    }

    /// Calls everything clear that was held, whatever it may become.
    pub fn give_way(&mut self) {
        self.advance_to(self.end());
    }

    /// The place before which everything is clear.
    pub fn clear(&self) -> u64 {
        self.clear
    }

    /// Where the text ends so far.
    pub fn end(&self) -> u64 {
        self.base.saturating_add(self.text.len() as u64)
    }

    /// What is kept of the text, and the place of its first byte in the whole text.
    pub fn kept(&self) -> (&str, u64) {
        (&self.text, self.base)
    }

    /// Forgets what is clear, but for the last character before.
    pub fn shed(&mut self) {
        let mut cut = usize::try_from(self.clear.saturating_sub(self.base)).unwrap_or(usize::MAX);
        cut = cut.min(self.text.len()).saturating_sub(1);
        while !self.text.is_char_boundary(cut) {
            cut = cut.saturating_sub(1);
        }
        if cut > 0 {
            self.text.drain(..cut);
            self.base = self.base.saturating_add(cut as u64);
        }
    }

    /// The state at the end of the text so far.
    fn resume(&self, dfa: &DFA, shard: &mut Shard) -> Option<LazyStateID> {
        match self.free {
            Some((state, stamp)) if stamp == shard.stamp() => Some(state),
            // the cache was started over: before the first beginning that is alive nothing was under way
            _ => {
                let mut state = begin(dfa, shard, Anchored::No, self.before(self.clear))?;
                for &byte in self.bytes(self.clear) {
                    state = dfa.next_state(&mut shard.cache, state, byte).ok()?;
                }
                Some(state)
            }
        }
    }

    /// Steps over the newest bytes. Whether nothing is under way at their end; if something is, everything before the
    /// last place where nothing was is clear.
    fn follow(&mut self, dfa: &DFA, shard: &mut Shard, mut state: LazyStateID, from: usize) -> bool {
        let mut resting = None;
        let mut last = false;
        for (n, &byte) in self.text.as_bytes().get(from..).unwrap_or_default().iter().enumerate() {
            let Ok(next) = dfa.next_state(&mut shard.cache, state, byte) else {
                self.free = None;
                return false;
            };
            state = next;
            last = state.is_start();
            if last {
                resting = Some(n);
            }
        }
        self.free = Some((state, shard.stamp()));
        if let Some(n) = resting.filter(|_| !last) {
            self.advance_to(self.base.saturating_add((from + n + 1) as u64));
        }
        last
    }

    /// Finds the earliest beginning that is alive at the end of the text.
    fn catch_up(&mut self, dfa: &DFA, shard: &mut Shard) {
        let mut left = STEPS + self.text.len();
        let end = self.end();
        while self.clear < end {
            let begun = match self.run {
                Some((state, stamp, at)) if stamp == shard.stamp() => Some((state, at)),
                _ => begin(dfa, shard, Anchored::Yes, self.before(self.clear)).map(|s| (s, self.clear)),
            };
            let Some((mut state, mut at)) = begun else { return };
            let mut dead = state.is_dead();
            for &byte in self.bytes(at) {
                if dead || left == 0 {
                    break;
                }
                left -= 1;
                let Ok(next) = dfa.next_state(&mut shard.cache, state, byte) else { return };
                state = next;
                dead = state.is_dead();
                at = at.saturating_add(1);
            }
            if !dead {
                self.run = Some((state, shard.stamp(), at));
                return;
            }
            self.advance_to(self.next_character(self.clear));
        }
    }

    /// Everything before this place is clear. Inside a character it means the character's end.
    fn advance_to(&mut self, place: u64) {
        let mut at = self.offset(place);
        while !self.text.is_char_boundary(at) {
            at += 1;
        }
        let place = self.base.saturating_add(at as u64);
        if place > self.clear {
            self.clear = place;
            self.run = None;
        }
    }

    fn next_character(&self, place: u64) -> u64 {
        let mut at = self.offset(place) + 1;
        while !self.text.is_char_boundary(at) && at < self.text.len() {
            at += 1;
        }
        self.base.saturating_add(at as u64)
    }

    fn bytes(&self, from: u64) -> &[u8] {
        self.text.as_bytes().get(self.offset(from)..).unwrap_or_default()
    }

    fn before(&self, place: u64) -> Option<u8> {
        self.text.as_bytes().get(self.offset(place).checked_sub(1)?).copied()
    }

    fn offset(&self, place: u64) -> usize {
        usize::try_from(place.saturating_sub(self.base)).unwrap_or(usize::MAX).min(self.text.len())
    }
}

fn begin(dfa: &DFA, shard: &mut Shard, anchored: Anchored, before: Option<u8>) -> Option<LazyStateID> {
    dfa.start_state(&mut shard.cache, &start::Config::new().anchored(anchored).look_behind(before)).ok()
}

#[cfg(test)]
#[expect(clippy::string_slice, reason = "a test may stop")]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn set(sources: &[&str]) -> HoldSet {
        let patterns: Vec<Pattern> = sources.iter().map(|source| Pattern::parse(source).unwrap()).collect();
        HoldSet::new(&patterns.iter().collect::<Vec<_>>()).unwrap()
    }

    /// What is held after each piece.
    fn held(sources: &[&str], pieces: &[&str]) -> Vec<String> {
        let mut cursor = set(sources).cursor();
        let mut whole = String::new();
        let held = pieces.iter().map(|piece| {
            whole.push_str(piece);
            let clear = cursor.push(piece) as usize;
            cursor.shed();
            whole[clear..].to_owned()
        });
        held.collect()
    }

    #[test]
    fn what_may_become_a_match_is_held_and_nothing_else() {
        let key = &["AKIA[A-Z2-7]{16}"];
        assert_eq!(held(key, &["plain text", " more"]), ["", ""]);
        assert_eq!(held(key, &["Here: AK", "IAEX", "!", "x"]), ["AK", "AKIAEX", "", ""]);
        assert_eq!(held(key, &["AAAA", "K", "AK"]), ["A", "AK", "AK"]);
        assert_eq!(held(&["rm\\s+-rf"], &["r", "m", "  ", "-r", "x"]), ["r", "rm", "rm  ", "rm  -r", ""]);
        assert_eq!(held(&["\\brm\\b"], &["farm r", "m"]), ["r", "rm"]);
        assert_eq!(held(&["[a-z]+@[a-z]+"], &["hello wor", "ld, and", "@"]), ["wor", "and", "and@"]);
        assert_eq!(held(&["secret.*end"], &["a secret is ", "long"]), ["secret is ", "secret is long"]);
        assert_eq!(held(&["😀x"], &["a", "😀", "y"]), ["", "😀", ""]);
        assert_eq!(held(&["foo$", "^bar"], &["b", "ar foo", " x"]), ["b", "foo", ""]);
    }

    #[test]
    fn the_end_and_giving_way_clear_everything() {
        let mut cursor = set(&["ab"]).cursor();
        assert_eq!(cursor.push("xa"), 1);
        assert_eq!(cursor.finish(), 2);
        let mut cursor = set(&["ab"]).cursor();
        cursor.push("xa");
        cursor.give_way();
        assert_eq!((cursor.clear(), cursor.push("b")), (2, 3));
    }

    #[test]
    fn many_long_beginnings_do_not_cost_their_square() {
        let mut cursor = set(&["[a-z]+@", "[^@]{3,}#"]).cursor();
        let word = "a".repeat(16 << 10);
        let before = std::time::Instant::now();
        cursor.push(&word);
        for _ in 0..200 {
            cursor.push("b,c ");
        }
        // some hundred thousand steps; their square would take minutes
        assert!(before.elapsed() < std::time::Duration::from_secs(5));
    }

    const PATTERNS: &[&str] = &[
        "ab+c",
        "a|ba{2}",
        "\\bab",
        "b\\b",
        "^a",
        "c$",
        "[ab]{2,4}c",
        "é+a",
        "a.c",
        "\\w+ c",
        "(?i)AB",
        "b\\B",
        "a\\s*b",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn nothing_clear_belongs_to_a_later_match(
            chosen in proptest::sample::subsequence(PATTERNS, 1..4),
            text in "[abcé \n]{0,24}",
            cuts in proptest::collection::vec(0usize..24, 0..6),
        ) {
            let mut cuts: Vec<usize> =
                cuts.into_iter().filter(|cut| text.is_char_boundary(*cut)).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut cursor = set(&chosen).cursor();
            let mut clear_at = vec![(0, 0)];
            for pair in cuts.windows(2) {
                if pair[0] < text.len() {
                    let clear = cursor.push(&text[pair[0]..pair[1].min(text.len())]);
                    cursor.shed();
                    clear_at.push((pair[1], clear as usize));
                }
            }
            for source in &chosen {
                let pattern = Pattern::parse(source).unwrap();
                // every beginning and every end, by the automaton that the engine itself is tested against
                for (from, to) in pattern.all_matches(&text) {
                    for (arrived, clear) in &clear_at {
                        let known = to < *arrived;
                        prop_assert!(
                            known || from >= *clear || to <= *clear && to == from,
                            "{source} matches {from}..{to} of {text:?}; {clear} was clear at {arrived}"
                        );
                    }
                }
            }
        }
    }
}
