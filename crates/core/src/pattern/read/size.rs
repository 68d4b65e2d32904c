//! How large a pattern may become.
//!
//! Time per byte is at worst proportional to the size of the automaton, so its limit is also the limit of the time.

use regex_automata::nfa::thompson::{Compiler, Config, WhichCaptures};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::super::PatternError;

/// Most bytes the automaton of one pattern may take: enough for `.{0,2500}`.
const SIZE_LIMIT: usize = 1 << 20;
/// Most bytes the automaton of a set may take.
pub(crate) const SET_SIZE_LIMIT: usize = 256 << 20;
/// Below this estimate a pattern is certainly within the limit, and building its automaton can wait.
const SURELY_SMALL: u64 = 4_000;

/// Refuses a pattern whose automaton would be too large.
pub(crate) fn check_size(hir: &Hir) -> Result<(), PatternError> {
    if weight(hir) <= SURELY_SMALL {
        return Ok(());
    }
    let config =
        Config::new().nfa_size_limit(Some(SIZE_LIMIT)).which_captures(WhichCaptures::None).utf8(false);
    match Compiler::new().configure(config).build_from_hir(hir) {
        Ok(_) => Ok(()),
        Err(_) => Err(PatternError::anywhere(format!(
            "the pattern is too large: its automaton would take more than {} MiB",
            SIZE_LIMIT >> 20
        ))
        .hint("write smaller numbers in `{...}`, or `*` and `+` instead of them")),
    }
}

/// Whether empty text can match. (The engine's own `minimum_len` does not know it where `[]` is part of the pattern.)
pub(crate) fn can_be_empty(hir: &Hir) -> bool {
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => true,
        HirKind::Literal(_) | HirKind::Class(_) => false,
        HirKind::Repetition(repetition) => repetition.min == 0 || can_be_empty(&repetition.sub),
        HirKind::Capture(capture) => can_be_empty(&capture.sub),
        HirKind::Concat(subs) => subs.iter().all(can_be_empty),
        HirKind::Alternation(subs) => subs.iter().any(can_be_empty),
    }
}

/// A guess, on the safe side, of the number of automaton states. The depth is bounded by the reader.
fn weight(hir: &Hir) -> u64 {
    let sum = |subs: &[Hir]| subs.iter().fold(1, |sum: u64, sub| sum.saturating_add(weight(sub)));
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => 1,
        HirKind::Literal(literal) => literal.0.len() as u64,
        HirKind::Class(Class::Unicode(class)) => class.ranges().len() as u64 * 8,
        HirKind::Class(Class::Bytes(class)) => class.ranges().len() as u64,
        HirKind::Repetition(repetition) => {
            let times = u64::from(repetition.max.unwrap_or(repetition.min).max(repetition.min)) + 1;
            (weight(&repetition.sub) + 2).saturating_mul(times)
        }
        HirKind::Capture(capture) => weight(&capture.sub),
        HirKind::Concat(subs) | HirKind::Alternation(subs) => sum(subs),
    }
}
