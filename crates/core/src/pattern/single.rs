//! A single pattern.

use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use regex_automata::meta::Regex;
use regex_automata::{Anchored, Input};
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};

use super::PatternError;
use super::automaton::Engine;
use super::read::{Reading, check_size, read};

/// So many texts are looked at before a finder is made that is good for many.
const FEW: usize = 4;
/// Texts up to this length, in bytes, are short.
const SHORT: usize = 4096;

/// A regular expression that was read and found usable. Cheap to clone.
#[derive(Clone)]
pub struct Pattern(Arc<Inner>);

/// What is needed to match is made when it is first needed: most patterns are only ever part of a set.
struct Inner {
    source: String,
    tree: Hir,
    empty: bool,
    notes: Vec<String>,
    translated: OnceLock<String>,
    /// Texts of which a match begins with one, if that is known.
    beginnings: OnceLock<Option<Vec<String>>>,
    /// Quick to make, slow with long texts: for the first few.
    light: OnceLock<Option<Regex>>,
    finds: AtomicUsize,
    finder: OnceLock<Option<Regex>>,
    full: OnceLock<Option<Regex>>,
    engine: OnceLock<Option<Engine>>,
}

impl Pattern {
    /// Reads a pattern as JavaScript's `new RegExp(source)` does.
    ///
    /// Beyond that, flags may stand at the very beginning (`(?i)`, `(?m)`, `(?s)`, `(?im)`, ...).
    ///
    /// # Errors
    ///
    /// When JavaScript refuses the pattern, when it needs look-around or back-references, or when it is too large.
    pub fn parse(source: &str) -> Result<Self, PatternError> {
        let Reading { tree, empty, notes } = read(source)?;
        check_size(&tree)?;
        Ok(Self(Arc::new(Inner {
            source: source.to_owned(),
            tree,
            empty,
            notes,
            translated: OnceLock::new(),
            beginnings: OnceLock::new(),
            light: OnceLock::new(),
            finds: AtomicUsize::new(0),
            finder: OnceLock::new(),
            full: OnceLock::new(),
            engine: OnceLock::new(),
        })))
    }

    /// A pattern for exactly these names, whatever signs are in them.
    ///
    /// # Errors
    ///
    /// When the names together are too large.
    pub fn of_names(names: &[String]) -> Result<Self, PatternError> {
        let literal = |name: &String| {
            let mut text = String::new();
            for c in name.chars() {
                if !c.is_alphanumeric() && !matches!(c, '_' | ' ' | '-') {
                    text.push('\\');
                }
                text.push(c);
            }
            text
        };
        Pattern::parse(&names.iter().map(literal).collect::<Vec<_>>().join("|"))
    }

    /// The pattern as it was written.
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// The pattern in the engine's syntax, for people who wonder how it was understood.
    pub fn translated(&self) -> &str {
        self.0.translated.get_or_init(|| printable(&self.0.tree).to_string())
    }

    /// Remarks about readings that may surprise.
    pub fn notes(&self) -> &[String] {
        &self.0.notes
    }

    /// The first match, as byte offsets.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        if self.0.finder.get().is_some()
            || text.len() > SHORT
            || self.0.finds.fetch_add(1, Ordering::Relaxed) >= FEW
        {
            return self.finder()?.find(text).map(|found| found.range());
        }
        // a process that looks at one short text is done before a finder with automata would be made
        let beginnings = self.0.beginnings.get_or_init(|| beginnings(&self.0.tree));
        let may_begin = beginnings.as_ref().is_none_or(|all| all.iter().any(|begin| text.contains(begin)));
        if may_begin { self.light()?.find(text).map(|found| found.range()) } else { None }
    }

    fn light(&self) -> Option<&Regex> {
        let light = Regex::config().hybrid(false).dfa(false).onepass(false).auto_prefilter(false);
        let make = || Regex::builder().configure(light).build_from_hir(&self.0.tree).ok();
        self.0.light.get_or_init(make).as_ref()
    }

    fn finder(&self) -> Option<&Regex> {
        self.0.finder.get_or_init(|| Regex::builder().build_from_hir(&self.0.tree).ok()).as_ref()
    }

    /// The matches that begin in a range of the text, one after the other, as byte offsets of the text. What stands
    /// around the range counts for `\b`, `^` and `$`; a match may end behind it.
    pub fn find_in(&self, text: &str, range: Range<usize>) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let Some(finder) = self.finder() else { return found };
        let (mut at, end) = (range.start, range.end);
        while at <= end {
            let Some(next) = finder.find(Input::new(text).range(at..text.len())) else { break };
            if next.start() >= end {
                break;
            }
            at = next.end().max(next.start() + 1);
            if !next.is_empty() {
                found.push(next.range());
            }
        }
        found
    }

    /// Whether the pattern matches the text from its beginning to its end.
    pub fn is_full_match(&self, text: &str) -> bool {
        let full = self.0.full.get_or_init(|| {
            let whole = [Hir::look(Look::Start), self.0.tree.clone(), Hir::look(Look::End)];
            Regex::builder().build_from_hir(&Hir::concat(whole.into())).ok()
        });
        full.as_ref().is_some_and(|full| full.is_match(Input::new(text).anchored(Anchored::Yes)))
    }

    /// Whether the pattern can match empty text, and so almost any text.
    pub fn can_match_empty(&self) -> bool {
        self.0.empty
    }

    /// Every pair of a beginning and an end between which the pattern matches, not only those that a search finds.
    #[cfg(test)]
    pub(super) fn all_matches(&self, text: &str) -> Vec<(usize, usize)> {
        let places: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        let engine = self.engine().unwrap();
        let dfa = &engine.backward.dfa;
        let mut cache = dfa.create_cache();
        let mut found = Vec::new();
        for to in &places {
            for from in places.iter().filter(|from| *from <= to) {
                // anchored at both ends: the backward automaton reports every beginning, the last step decides
                let around = text.as_bytes();
                let after = around.get(*to).copied();
                let config =
                    regex_automata::util::start::Config::new().anchored(Anchored::Yes).look_behind(after);
                let mut state = dfa.start_state(&mut cache, &config).unwrap();
                for &byte in around[*from..*to].iter().rev() {
                    state = dfa.next_state(&mut cache, state, byte).unwrap();
                }
                state = match from.checked_sub(1).and_then(|at| around.get(at)) {
                    Some(&byte) => dfa.next_state(&mut cache, state, byte).unwrap(),
                    None => dfa.next_eoi_state(&mut cache, state).unwrap(),
                };
                if state.is_match() {
                    found.push((*from, *to));
                }
            }
        }
        found
    }

    pub(super) fn tree(&self) -> &Hir {
        &self.0.tree
    }

    /// Whether `\B` could be found inside a character, where no text has a place.
    pub(super) fn may_split_characters(&self) -> bool {
        self.can_match_empty() && self.0.tree.properties().look_set().contains(Look::WordAsciiNegate)
    }

    pub(super) fn engine(&self) -> Option<&Engine> {
        self.0.engine.get_or_init(|| Engine::new(&self.0.tree)).as_ref()
    }
}

/// Texts of which every match begins with one; none where there are too many, or one of them is no whole characters.
fn beginnings(tree: &Hir) -> Option<Vec<String>> {
    let all = Extractor::new().extract(tree);
    let texts = all.literals()?.iter().map(|text| Some(str::from_utf8(text.as_bytes()).ok()?.to_owned()));
    texts.collect()
}

/// The tree with a group around each repetition that is repeated: the printer sets none, and `(?:a+)?` would read as
/// `a+?`, which means something else.
fn printable(tree: &Hir) -> Hir {
    match tree.kind() {
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let mut sub = Box::new(printable(sub));
            if matches!(sub.kind(), HirKind::Repetition(_)) {
                sub = Box::new(Hir::capture(Capture { index: 1, name: None, sub }));
            }
            Hir::repetition(Repetition { min: *min, max: *max, greedy: *greedy, sub })
        }
        HirKind::Concat(subs) => Hir::concat(subs.iter().map(printable).collect()),
        HirKind::Alternation(subs) => Hir::alternation(subs.iter().map(printable).collect()),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) | HirKind::Capture(_) => {
            tree.clone()
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Pattern").field(&self.0.source).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::select;

    proptest! {
        #[test]
        fn the_first_finds_find_what_later_ones_find(
            pattern in proptest::collection::vec(select(vec![
                "a", "bc", r"\s+", r"\b", "(?:rm|del)", ".", "é", "[a-c]", "x*", "^", "$", "|", "🦀?", r"\B", r"\W", "(?:b|)", "[^é]",
            ]), 1..6),
            text in proptest::collection::vec(select(vec!["a", "b", "bc", " ", "rm", "del", "é", "x", "🦀", "\n"]), 0..8),
        ) {
            let (source, text) = (pattern.concat(), text.concat());
            let Ok(pattern) = Pattern::parse(&source) else { return Ok(()) };
            let first = pattern.find(&text);
            let later = pattern.finder().unwrap().find(&text).map(|found| found.range());
            prop_assert_eq!(first, later, "{} in {:?}", source, text);
        }
    }
}
