//! The automata behind patterns: one over a whole set, and a pair for a single pattern.
//!
//! All of them are lazy: states are made when a text first needs them, and kept in a cache beside the automaton. The
//! cache is bounded and starts over when it is full; it never gives up, so every search has an answer.

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

/// One byte for each way a text may go on, as far as `\b` and line ends can tell: what matches before all of them
/// matches whatever comes.
const FUTURES: [u8; 3] = *b"a \n";

/// Finds which patterns of a set match, and where their matches end. Reports any match, not only leftmost ones.
pub(super) fn of_set(patterns: &[&Pattern], cache: usize) -> Result<DFA, PatternError> {
    let trees: Vec<&Hir> = patterns.iter().map(|pattern| pattern.tree()).collect();
    build(&trees, MatchKind::All, false, cache).ok_or_else(|| {
        PatternError::anywhere(format!("the {} patterns together are too large", patterns.len()))
    })
}

fn build(trees: &[&Hir], kind: MatchKind, reverse: bool, cache: usize) -> Option<DFA> {
    let nfa = thompson::Config::new()
        .utf8(false)
        .reverse(reverse)
        .which_captures(thompson::WhichCaptures::None)
        .nfa_size_limit(Some(SET_SIZE_LIMIT));
    let nfa = thompson::Compiler::new().configure(nfa).build_many_from_hir(trees).ok()?;
    let config = Config::new().match_kind(kind).cache_capacity(cache).skip_cache_capacity_check(true);
    Builder::new().configure(config).build_from_nfa(nfa).ok()
}

/// The automata of a single pattern.
#[derive(Debug)]
pub(super) struct Engine {
    /// Runs forward and prefers what JavaScript prefers: the leftmost match, and its first alternative.
    pub(super) forward: DFA,
    /// Runs backward from a match's end to its start.
    pub(super) backward: DFA,
}

impl Engine {
    pub(super) fn new(tree: &Hir) -> Option<Self> {
        Some(Self {
            forward: build(&[tree], MatchKind::LeftmostFirst, false, RUN_CACHE)?,
            backward: build(&[tree], MatchKind::All, true, RUN_CACHE)?,
        })
    }
}

/// The state before a text whose last byte so far is `before`. The error cannot happen: see the module's text.
pub(super) fn start(dfa: &DFA, cache: &mut Cache, before: Option<u8>) -> Option<LazyStateID> {
    dfa.start_state(cache, &start::Config::new().anchored(Anchored::No).look_behind(before)).ok()
}

/// Whether a match that ends here is certain, whatever comes next. `seen` gets the patterns that match in one future;
/// the answer counts only the patterns `seen` in all of them.
///
/// Looking ahead may start the cache over, after which `state` means nothing: compare `Cache::clear_count`.
pub(super) fn certain(dfa: &DFA, cache: &mut Cache, state: LazyStateID, mut seen: impl FnMut(usize)) -> bool {
    let mut common: Option<Vec<usize>> = None;
    for byte in FUTURES {
        let Ok(next) = dfa.next_state(cache, state, byte) else { return false };
        if !next.is_match() {
            return false;
        }
        let matching = |common: &Vec<usize>, pattern: usize| common.contains(&pattern);
        let found = (0..dfa.match_len(cache, next)).map(|n| dfa.match_pattern(cache, next, n).as_usize());
        common = Some(match common {
            None => found.collect(),
            Some(common) => found.filter(|pattern| matching(&common, *pattern)).collect(),
        });
    }
    let common = common.unwrap_or_default();
    common.iter().for_each(|pattern| seen(*pattern));
    !common.is_empty()
}
