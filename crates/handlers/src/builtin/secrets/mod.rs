//! Credentials and personal data in text, also in text that arrives in pieces.
//!
//! Three steps. The text is made plain (JSON escapes, invisible signs). One automaton over all rules' anchors
//! (`ghp_`, `@`, a digit) tells which rules a piece concerns; ordinary text costs only this. A concerned rule looks at
//! the text kept since, and judges what it finds by length, check digits and surroundings, but only when the next sign
//! or the end of the text shows that the match does not grow.
//!
//! Memory is bounded: [`KEPT`] bytes at most, and less than a hundred where nothing is under way.

mod check;
mod plain;
mod rules;

use hookgate_core::pattern::{Hit, HoldCursor, HoldSet, Pattern, PatternError, StreamCursor, StreamSet};
use regex::Regex;
use std::ops::Range;
use std::sync::Arc;

pub use rules::Kind;

/// Most bytes that are kept of a text.
pub const KEPT: usize = 8 << 10;
/// Bytes kept in front of a piece: what a rule looks at may begin before its anchor.
const BEFORE: usize = 192;

/// The length of the shortest find there can be, `a@b.cd`. Inputs may be made of a million shorter texts.
const SHORTEST: usize = 6;

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Secret or personal.
    pub kind: Kind,
    /// What exactly, such as `github_token`.
    pub class: &'static str,
    /// Where, in bytes of the whole text so far.
    pub span: Range<usize>,
}

/// The rules, ready to run. Cheap to clone, shared by all texts.
#[derive(Debug, Clone)]
pub struct Secrets {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    anchors: StreamSet,
    /// The rules' own patterns: what may be the beginning of a find, also before its anchor came.
    holds: HoldSet,
    rules: Vec<(&'static rules::Rule, Regex)>,
}

impl Secrets {
    /// Makes the rules of these kinds ready.
    ///
    /// # Errors
    ///
    /// When a rule is wrong, which a test of this module rules out.
    pub fn new(kinds: &[Kind]) -> Result<Secrets, PatternError> {
        let chosen = rules::RULES.iter().filter(|rule| kinds.contains(&rule.kind));
        let ready: Vec<_> = chosen.filter_map(|rule| Some((rule, Regex::new(rule.pattern).ok()?))).collect();
        let anchors =
            ready.iter().map(|(rule, _)| Pattern::parse(rule.anchor)).collect::<Result<Vec<_>, _>>()?;
        let anchors = StreamSet::new(&anchors.iter().collect::<Vec<_>>())?;
        let whole =
            ready.iter().map(|(rule, _)| Pattern::parse(rule.pattern)).collect::<Result<Vec<_>, _>>()?;
        let holds = HoldSet::new(&whole.iter().collect::<Vec<_>>())?;
        Ok(Secrets { inner: Arc::new(Inner { anchors, holds, rules: ready }) })
    }

    /// A scanner at the beginning of a text.
    pub fn scanner(&self) -> SecretScanner {
        let cursor = self.inner.anchors.cursor();
        SecretScanner {
            secrets: self.clone(),
            cursor,
            hold: None,
            plain: plain::Plain::default(),
            kept: String::new(),
            places: Vec::new(),
            shed: 0,
            armed: Vec::new(),
            told: 0..0,
            hits: Vec::new(),
        }
    }

    /// As [`scanner`](Secrets::scanner), and it knows how much of the text may be passed on
    /// ([`SecretScanner::clear`]).
    pub fn holding_scanner(&self) -> SecretScanner {
        SecretScanner { hold: Some(self.inner.holds.cursor()), ..self.scanner() }
    }

    /// Everything in a whole text.
    pub fn find(&self, text: &str) -> Vec<Match> {
        if text.len() < SHORTEST {
            return Vec::new();
        }
        let mut scanner = self.scanner();
        let mut found = Vec::new();
        let mut rest = text;
        // blocks keep what is under way short
        while let Some((block, later)) = block(rest) {
            found.append(&mut scanner.push(block));
            rest = later;
        }
        found.append(&mut scanner.finish());
        found
    }
}

fn block(rest: &str) -> Option<(&str, &str)> {
    let mut cut = rest.len().min(KEPT / 2);
    while !rest.is_char_boundary(cut) {
        cut += 1;
    }
    (!rest.is_empty()).then(|| rest.split_at_checked(cut))?
}

/// Looks at one text that arrives in pieces.
#[derive(Debug)]
pub struct SecretScanner {
    secrets: Secrets,
    cursor: StreamCursor,
    /// Where it stands in the plain text that finds may begin in.
    hold: Option<HoldCursor>,
    plain: plain::Plain,
    /// The plain text that is kept.
    kept: String,
    /// For each byte of it, where its sign stands in the text as it came; and where it ends.
    places: Vec<Range<usize>>,
    /// Bytes that were kept once and are not any more.
    shed: usize,
    /// The rules under way.
    armed: Vec<Armed>,
    /// The last match that was told, in the plain text.
    told: Range<usize>,
    hits: Vec<Hit>,
}

/// A rule whose anchor was seen.
#[derive(Debug, Clone, Copy)]
struct Armed {
    rule: usize,
    /// The place in the plain text from which it looks.
    from: usize,
    /// The end of the last piece that had the anchor.
    seen: usize,
}

/// A match that a rule accepts, in the kept text.
struct Found {
    rule: usize,
    span: Range<usize>,
}

impl SecretScanner {
    /// A scanner for these kinds. To scan many texts, make [`Secrets`] once.
    ///
    /// # Errors
    ///
    /// As [`Secrets::new`].
    pub fn new(kinds: &[Kind]) -> Result<SecretScanner, PatternError> {
        Ok(Secrets::new(kinds)?.scanner())
    }

    /// Takes the next piece; tells what is certain by now.
    pub fn push(&mut self, piece: &str) -> Vec<Match> {
        let mut found = Vec::new();
        let mut rest = piece;
        while let Some((block, later)) = block(rest) {
            let start = self.kept.len();
            self.plain.push(block, &mut self.kept, &mut self.places);
            self.arm(start);
            self.look(false, &mut found);
            rest = later;
        }
        found
    }

    /// Takes the end of the text. After it the scanner is at the beginning of a new one.
    pub fn finish(&mut self) -> Vec<Match> {
        let mut found = Vec::new();
        let start = self.kept.len();
        self.plain.finish(&mut self.kept, &mut self.places);
        self.arm(start);
        self.look(true, &mut found);
        *self = match self.hold {
            Some(_) => self.secrets.holding_scanner(),
            None => self.secrets.scanner(),
        };
        found
    }

    /// The place, in bytes of the text as it came, before which nothing belongs to a later find. Without
    /// [holding](Secrets::holding_scanner) everything counts as clear.
    pub fn clear(&self) -> usize {
        let Some(hold) = &self.hold else { return usize::MAX };
        let clear = usize::try_from(hold.clear()).unwrap_or(usize::MAX);
        match self.places.get(clear.saturating_sub(self.shed)) {
            Some(place) => place.start,
            None => self.plain.settled(),
        }
    }

    /// Calls everything clear that came so far.
    pub fn give_way(&mut self) {
        if let Some(hold) = &mut self.hold {
            hold.give_way();
        }
    }

    /// Notes the rules that the plain text from `start` on concerns.
    fn arm(&mut self, start: usize) {
        let Some(new) = self.kept.get(start..).filter(|new| !new.is_empty()) else { return };
        if let Some(hold) = &mut self.hold {
            let clear = hold.push(new);
            hold.shed();
            if hold.end().saturating_sub(clear) > KEPT as u64 {
                // the rules do not look back further
                hold.give_way();
            }
        }
        let mut hits = std::mem::take(&mut self.hits);
        self.cursor.push(&self.secrets.inner.anchors, new, &mut hits);
        let from = self.shed + start.saturating_sub(BEFORE);
        let seen = self.shed + self.kept.len();
        for hit in hits.drain(..) {
            match self.armed.iter_mut().find(|armed| armed.rule == hit.pattern) {
                Some(armed) => armed.seen = seen,
                None => self.armed.push(Armed { rule: hit.pattern, from, seen }),
            }
        }
        self.hits = hits;
    }

    /// Lets the rules under way look at the kept text.
    fn look(&mut self, at_end: bool, out: &mut Vec<Match>) {
        let mut found = Vec::new();
        let mut armed = std::mem::take(&mut self.armed);
        armed.retain_mut(|armed| self.run(armed, at_end, &mut found));
        self.armed = armed;
        found.sort_by_key(|found| (found.span.start, usize::MAX - found.span.end));
        for Found { rule, span } in found {
            let whole = self.shed + span.start..self.shed + span.end;
            let Some((rule, _)) = self.secrets.inner.rules.get(rule) else { continue };
            let (Some(first), Some(last)) = (self.places.get(span.start), self.places.get(span.end - 1))
            else {
                continue;
            };
            if whole.start >= self.told.end {
                out.push(Match { kind: rule.kind, class: rule.class, span: first.start..last.end });
                self.told = whole;
            }
        }
        self.shed_old();
    }

    /// One rule. True: it has to look again when more has come.
    fn run(&self, armed: &mut Armed, at_end: bool, found: &mut Vec<Found>) -> bool {
        let Some((rule, regex)) = self.secrets.inner.rules.get(armed.rule) else { return false };
        let mut at = armed.from.saturating_sub(self.shed);
        while !self.kept.is_char_boundary(at) {
            at += 1;
        }
        let full = self.kept.len() >= KEPT;
        // what begins from here on may still grow, although it is a match already: `a@b.example` and then `.org`
        let alive = self.hold.as_ref().map_or(u64::MAX, HoldCursor::clear);
        let alive = usize::try_from(alive).unwrap_or(usize::MAX).saturating_sub(self.shed);
        while let Some(next) = regex.find_at(&self.kept, at) {
            let may_grow = next.end() == self.kept.len() || next.start() >= alive;
            if may_grow && !at_end && !full {
                armed.from = self.shed + next.start();
                return true;
            }
            if let Some(length) = rule.judge(&self.kept, next.range())
                && length > 0
            {
                found.push(Found { rule: armed.rule, span: next.start()..next.start() + length });
            }
            at = next.end().max(at + 1);
            while !self.kept.is_char_boundary(at) {
                at += 1;
            }
        }
        // no match yet: its beginning may stand in the last bytes
        let end = self.shed + self.kept.len();
        armed.from = (self.shed + at).max(end.saturating_sub(rule.reach));
        end - armed.seen <= rule.reach && !at_end && !full
    }

    /// Drops what no rule can need any more.
    fn shed_old(&mut self) {
        let first = self
            .armed
            .iter()
            .map(|armed| armed.from.saturating_sub(self.shed))
            .min()
            .unwrap_or(self.kept.len());
        let held = self.hold.as_ref().map_or(u64::MAX, HoldCursor::clear);
        let first = first.min(usize::try_from(held).unwrap_or(usize::MAX).saturating_sub(self.shed));
        let mut cut = first.saturating_sub(BEFORE);
        while !self.kept.is_char_boundary(cut) {
            cut -= 1;
        }
        if cut > 512 || (cut > 0 && self.armed.is_empty()) {
            self.kept.drain(..cut);
            self.places.drain(..cut);
            self.shed += cut;
        }
    }
}
