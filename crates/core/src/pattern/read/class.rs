//! What stands between `[` and `]`.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::super::PatternError;
use super::escape::{Escape, escape};
use super::fold::fold;
use super::scan::{Groups, Scan};

/// One member of a class.
enum Member {
    One(char),
    Many(ClassUnicode),
}

/// Reads a class after its `[`.
pub(super) fn class(
    scan: &mut Scan<'_>,
    groups: Groups,
    ignore_case: bool,
    note: &mut dyn FnMut(String),
) -> Result<ClassUnicode, PatternError> {
    let start = scan.at().saturating_sub(1);
    let negated = scan.eat("^");
    let mut set = ClassUnicode::empty();
    loop {
        if scan.eat("]") {
            break;
        }
        let at = scan.at();
        let first = member(scan, groups, start, note)?;
        let before = *scan;
        if !scan.eat("-") || scan.peek() == Some(']') {
            *scan = before;
            add(&mut set, first);
            continue;
        }
        match (first, member(scan, groups, start, note)?) {
            (Member::One(low), Member::One(high)) if low <= high => {
                set.push(ClassUnicodeRange::new(low, high))
            }
            (Member::One(low), Member::One(high)) => {
                return Err(PatternError::new(
                    at,
                    format!("found the range `{low}-{high}`, whose end comes before its start"),
                ));
            }
            (first, last) => {
                add(&mut set, first);
                add(&mut set, Member::One('-'));
                add(&mut set, last);
            }
        }
    }
    if ignore_case {
        set = fold(&set);
    }
    if negated {
        set.negate();
    }
    Ok(set)
}

fn add(set: &mut ClassUnicode, member: Member) {
    match member {
        Member::One(one) => set.push(ClassUnicodeRange::new(one, one)),
        Member::Many(many) => set.union(&many),
    }
}

fn member(
    scan: &mut Scan<'_>,
    groups: Groups,
    start: usize,
    note: &mut dyn FnMut(String),
) -> Result<Member, PatternError> {
    match scan.next() {
        None => {
            Err(PatternError::new(start, "found `[` without its `]`")
                .hint("write `\\[` for the bracket itself"))
        }
        Some('\\') => Ok(match escape(scan, groups, true, note)? {
            Escape::One(one) => Member::One(one),
            Escape::Class(many) => Member::Many(many),
            Escape::WordBorder { .. } => Member::One('\u{8}'),
        }),
        Some(one) => Ok(Member::One(one)),
    }
}
