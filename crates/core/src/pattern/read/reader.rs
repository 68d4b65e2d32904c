//! The pattern as a whole: alternatives, terms and how often they repeat.

use std::mem::take;

use regex_syntax::hir::{Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, Look, Repetition};

use super::super::PatternError;
use super::class::class;
use super::escape::{Escape, escape};
use super::fold::fold;
use super::group::{Flags, Opening, leading_flags, opening};
use super::scan::{Groups, Scan};
use super::size::can_be_empty;

/// Groups within groups; the engine walks its tree recursively.
const NEST_LIMIT: usize = 200;
const SOURCE_LIMIT: usize = 64 << 10;

/// The note of a pattern that can match empty text.
pub(crate) const CAN_BE_EMPTY: &str = "the pattern can match empty text";

/// A pattern that was read.
pub(crate) struct Reading {
    pub(crate) tree: Hir,
    /// Whether empty text can match.
    pub(crate) empty: bool,
    pub(crate) notes: Vec<String>,
}

/// Reads a pattern.
pub(crate) fn read(source: &str) -> Result<Reading, PatternError> {
    if source.len() > SOURCE_LIMIT {
        return Err(PatternError::anywhere(format!(
            "the pattern is too long: {} bytes, allowed are {SOURCE_LIMIT}",
            source.len()
        )));
    }
    let mut reader = Reader::new(source);
    while reader.term()? {}
    reader.finish()
}

/// What the last term was; only some may be repeated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    Nothing,
    Border,
    Atom,
}

/// A group that is not closed yet. The outermost one is the pattern.
struct Open {
    at: usize,
    flags: Flags,
    alternatives: Vec<Hir>,
    terms: Vec<Hir>,
}

struct Reader<'s> {
    scan: Scan<'s>,
    groups: Groups,
    outer: Vec<Open>,
    inner: Open,
    last: Last,
    names: Vec<String>,
    notes: Vec<String>,
}

impl<'s> Reader<'s> {
    fn new(source: &'s str) -> Self {
        let mut scan = Scan::new(source);
        let flags = leading_flags(&mut scan);
        Self {
            scan,
            groups: Groups::of(source),
            outer: Vec::new(),
            inner: Open { at: 0, flags, alternatives: Vec::new(), terms: Vec::new() },
            last: Last::Nothing,
            names: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Reads one term; false at the end.
    fn term(&mut self) -> Result<bool, PatternError> {
        if let Some(run) = self.run() {
            self.atom(Hir::literal(run.as_bytes()));
            return Ok(true);
        }
        let at = self.scan.at();
        let Some(found) = self.scan.next() else { return Ok(false) };
        match found {
            '|' => {
                let terms = Hir::concat(take(&mut self.inner.terms));
                self.inner.alternatives.push(terms);
                self.last = Last::Nothing;
            }
            '(' => self.open(at)?,
            ')' => self.close(at)?,
            '*' => self.repeat(at, '*', 0, None)?,
            '+' => self.repeat(at, '+', 1, None)?,
            '?' => self.repeat(at, '?', 0, Some(1))?,
            '{' => match self.braces() {
                Some((min, max)) => self.repeat(at, '{', min, max)?,
                None => self.one('{'),
            },
            '^' => self.line_start(),
            '$' => self.line_end(),
            '.' => self.dot(),
            '[' => {
                let ignore_case = self.inner.flags.ignore_case;
                let set = class(&mut self.scan, self.groups, ignore_case, &mut |note| self.notes.push(note))?;
                self.atom(Hir::class(Class::Unicode(set)));
            }
            '\\' => self.escape()?,
            one => self.one(one),
        }
        Ok(true)
    }

    /// Letters and digits that stand for themselves, several at once: most of most patterns. The last one is left where a
    /// sign behind it may repeat it.
    fn run(&mut self) -> Option<&'s str> {
        if self.inner.flags.ignore_case {
            return None;
        }
        let rest = self.scan.rest();
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b' ');
        let n = rest.bytes().take_while(plain).count();
        let may_repeat = rest.as_bytes().get(n).is_some_and(|next| matches!(next, b'*' | b'+' | b'?' | b'{'));
        let run = rest.get(..n.saturating_sub(usize::from(may_repeat))).filter(|run| !run.is_empty())?;
        self.scan.skip(run.len());
        Some(run)
    }

    fn finish(mut self) -> Result<Reading, PatternError> {
        if !self.outer.is_empty() {
            return Err(PatternError::new(self.inner.at, "found `(` without its `)`")
                .hint("write `\\(` for the bracket itself"));
        }
        let tree = close(&mut self.inner);
        let empty = can_be_empty(&tree);
        if empty {
            self.notes.push(CAN_BE_EMPTY.to_owned());
        }
        let mut notes = Vec::new();
        for note in self.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        Ok(Reading { tree, empty, notes })
    }

    fn open(&mut self, at: usize) -> Result<(), PatternError> {
        if self.outer.len() >= NEST_LIMIT {
            return Err(PatternError::new(
                at,
                format!("found more than {NEST_LIMIT} groups within each other"),
            ));
        }
        let flags = match opening(&mut self.scan, at, self.inner.flags)? {
            Opening::Plain(flags) => flags,
            Opening::Named(name) => {
                if self.names.contains(&name) {
                    return Err(PatternError::new(
                        at,
                        format!("found two groups named `{name}`, each name may stand once"),
                    ));
                }
                self.names.push(name);
                self.inner.flags
            }
        };
        let open = Open { at, flags, alternatives: Vec::new(), terms: Vec::new() };
        self.outer.push(std::mem::replace(&mut self.inner, open));
        self.last = Last::Nothing;
        Ok(())
    }

    fn close(&mut self, at: usize) -> Result<(), PatternError> {
        let Some(outer) = self.outer.pop() else {
            return Err(
                PatternError::new(at, "found `)` without its `(`").hint("write `\\)` for the bracket itself")
            );
        };
        let mut group = std::mem::replace(&mut self.inner, outer);
        self.atom(close(&mut group));
        Ok(())
    }

    /// Repeats the last term; `?` after it means as few times as possible.
    fn repeat(&mut self, at: usize, sign: char, min: u32, max: Option<u32>) -> Result<(), PatternError> {
        let lazy = self.scan.eat("?");
        let term = (self.last == Last::Atom).then(|| self.inner.terms.pop()).flatten();
        let Some(sub) = term else {
            return Err(PatternError::new(
                at,
                format!("found `{sign}` with nothing before it that can be repeated"),
            )
            .hint(format!("write `\\{sign}` for the character itself")));
        };
        if max.is_some_and(|max| max < min) {
            return Err(PatternError::new(at, "found `{n,m}` where m is smaller than n"));
        }
        let sub = Box::new(sub);
        self.inner.terms.push(Hir::repetition(Repetition { min, max, greedy: !lazy, sub }));
        self.last = Last::Nothing;
        Ok(())
    }

    /// `{n}`, `{n,}` or `{n,m}` after its `{`; anything else is a plain brace.
    fn braces(&mut self) -> Option<(u32, Option<u32>)> {
        let mut scan = self.scan;
        let min = scan.decimal()?;
        let max = if scan.eat(",") { scan.decimal() } else { Some(min) };
        if !scan.eat("}") {
            return None;
        }
        self.scan = scan;
        Some((min, max))
    }

    fn escape(&mut self) -> Result<(), PatternError> {
        match escape(&mut self.scan, self.groups, false, &mut |note| self.notes.push(note))? {
            Escape::One(one) => self.one(one),
            Escape::Class(set) => self.atom(Hir::class(Class::Unicode(set))),
            Escape::WordBorder { negated: false } => self.border(Hir::look(Look::WordAscii)),
            Escape::WordBorder { negated: true } => self.border(Hir::look(Look::WordAsciiNegate)),
        }
        Ok(())
    }

    fn one(&mut self, one: char) {
        let may_fold = self.inner.flags.ignore_case && (one.is_ascii_alphabetic() || !one.is_ascii());
        if may_fold {
            let set = fold(&ClassUnicode::new([ClassUnicodeRange::new(one, one)]));
            self.atom(Hir::class(Class::Unicode(set)));
        } else {
            self.atom(Hir::literal(one.encode_utf8(&mut [0; 4]).as_bytes()));
        }
    }

    fn dot(&mut self) {
        if self.inner.flags.dot_all {
            return self.atom(Hir::dot(Dot::AnyChar));
        }
        let ends = [('\n', '\n'), ('\r', '\r'), ('\u{2028}', '\u{2029}')];
        let mut set = ClassUnicode::new(ends.map(|(start, end)| ClassUnicodeRange::new(start, end)));
        set.negate();
        self.atom(Hir::class(Class::Unicode(set)));
    }

    fn line_start(&mut self) {
        if self.inner.flags.multiline {
            self.note_lines();
            self.border(Hir::look(Look::StartCRLF));
        } else {
            self.border(Hir::look(Look::Start));
        }
    }

    fn line_end(&mut self) {
        if self.inner.flags.multiline {
            self.note_lines();
            // `EndCRLF` alone is not true between \r and \n, where JavaScript's `$` is.
            self.border(Hir::alternation(vec![Hir::look(Look::EndCRLF), Hir::look(Look::EndLF)]));
        } else {
            self.border(Hir::look(Look::End));
        }
    }

    fn note_lines(&mut self) {
        self.notes.push(
            "under `m`, lines end at \\n and \\r, not at U+2028 and U+2029; \\r\\n starts one new line"
                .to_owned(),
        );
    }

    fn border(&mut self, look: Hir) {
        self.inner.terms.push(look);
        self.last = Last::Border;
    }

    fn atom(&mut self, atom: Hir) {
        self.inner.terms.push(atom);
        self.last = Last::Atom;
    }
}

/// The tree of a group whose end was reached.
fn close(group: &mut Open) -> Hir {
    let terms = Hir::concat(take(&mut group.terms));
    let mut alternatives = take(&mut group.alternatives);
    alternatives.push(terms);
    Hir::alternation(alternatives)
}
