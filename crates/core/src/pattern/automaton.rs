//! The automata behind patterns: one over a whole set, and a pair for a single pattern.
//!
//! All of them are lazy: states are made when a text first needs them, and kept in a cache beside the automaton. The
//! cache is bounded and starts over when it is full; it never gives up, so every search has an answer.

use std::sync::{Mutex, PoisonError};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Builder, Cache, Config, DFA};
use regex_automata::nfa::thompson;
use regex_automata::util::start;
use regex_automata::{Anchored, MatchKind};
use regex_syntax::hir::Hir;

use super::read::SET_SIZE_LIMIT;
use super::{Pattern, PatternError};

/// Most bytes one cache of a set takes. Too small a cache means states made again and again.
pub(super) const SET_CACHE: usize = 32 << 20;
/// Most bytes the cache of one running match takes.
const RUN_CACHE: usize = 128 << 10;
/// Most caches of one pattern that wait for the next match.
const SPARE_CACHES: usize = 4;

/// One byte for each way a text may go on, as far as `\b` and line ends can tell: what matches before all of them
/// matches whatever comes.
const FUTURES: [u8; 3] = *b"a \n";

/// Finds which patterns of a set match, and where their matches end. Reports any match, not only leftmost ones.
pub(super) fn of_set(patterns: &[&Pattern], cache: usize) -> Result<DFA, PatternError> {
    let trees: Vec<&Hir> = patterns.iter().map(|pattern| pattern.tree()).collect();
    build(&trees, Config::new().match_kind(MatchKind::All), false, cache).ok_or_else(|| too_large(patterns))
}

/// As [`of_set`], and its start states can be told from others: in them no match is under way.
pub(super) fn of_held(patterns: &[&Pattern], cache: usize) -> Result<DFA, PatternError> {
    let trees: Vec<&Hir> = patterns.iter().map(|pattern| pattern.tree()).collect();
    let config = Config::new().match_kind(MatchKind::All).specialize_start_states(true);
    build(&trees, config, false, cache).ok_or_else(|| too_large(patterns))
}

fn too_large(patterns: &[&Pattern]) -> PatternError {
    PatternError::anywhere(format!("the {} patterns together are too large", patterns.len()))
}

fn build(trees: &[&Hir], config: Config, reverse: bool, cache: usize) -> Option<DFA> {
    let nfa = thompson::Config::new()
        .utf8(false)
        .reverse(reverse)
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(SET_SIZE_LIMIT));
    let nfa = thompson::Compiler::new().configure(nfa).build_many_from_hir(trees).ok()?;
    let config = config.cache_capacity(cache).skip_cache_capacity_check(true);
    Builder::new().configure(config).build_from_nfa(nfa).ok()
}

/// The automata of a single pattern.
#[derive(Debug)]
pub(super) struct Engine {
    /// Runs forward and prefers what JavaScript prefers: the leftmost match, and its first alternative.
    pub(super) forward: Lent,
    /// Runs backward from a match's end to its start.
    pub(super) backward: Lent,
}

impl Engine {
    pub(super) fn new(tree: &Hir) -> Option<Self> {
        let kind = |kind| Config::new().match_kind(kind);
        let forward = build(&[tree], kind(MatchKind::LeftmostFirst), false, RUN_CACHE)?;
        let backward = build(&[tree], kind(MatchKind::All), true, RUN_CACHE)?;
        Some(Self { forward: Lent::new(forward), backward: Lent::new(backward) })
    }
}

/// An automaton whose caches are lent to one user at a time, and come back warm.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) dfa: DFA,
    spare: Mutex<Vec<Cache>>,
}

impl Lent {
    fn new(dfa: DFA) -> Self {
        Self { dfa, spare: Mutex::default() }
    }

    pub(super) fn take(&self) -> Cache {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).pop();
        spare.unwrap_or_else(|| self.dfa.create_cache())
    }

    pub(super) fn give(&self, cache: Cache) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE_CACHES {
            spare.push(cache);
        }
    }
}

/// The state before a text whose last byte so far is `before`. The error cannot happen: see the module's text.
pub(super) fn start(dfa: &DFA, cache: &mut Cache, before: Option<u8>) -> Option<LazyStateID> {
    dfa.start_state(cache, &start::Config::new().anchored(Anchored::No).look_behind(before)).ok()
}

/// What a look ahead found.
pub(super) enum Ahead {
    /// The match of some pattern ends here, whatever comes next.
    Certain,
    /// No such match.
    Open,
    /// The cache was started over, and the state that was asked about means nothing now.
    Cleared,
}

/// Whether a match that ends here is certain. `seen` gets the patterns that match in every future.
pub(super) fn look_ahead(dfa: &DFA, cache: &mut Cache, state: LazyStateID, seen: impl FnMut(usize)) -> Ahead {
    let clears = cache.clear_count();
    let mut common: Vec<usize> = Vec::new();
    for (n, byte) in FUTURES.into_iter().enumerate() {
        let next = dfa.next_state(cache, state, byte);
        if cache.clear_count() != clears {
            return Ahead::Cleared;
        }
        let Some(next) = next.ok().filter(LazyStateID::is_match) else { return Ahead::Open };
        let found = (0..dfa.match_len(cache, next)).map(|n| dfa.match_pattern(cache, next, n).as_usize());
        common =
            if n == 0 { found.collect() } else { found.filter(|pattern| common.contains(pattern)).collect() };
    }
    let certain = if common.is_empty() { Ahead::Open } else { Ahead::Certain };
    common.into_iter().for_each(seen);
    certain
}
