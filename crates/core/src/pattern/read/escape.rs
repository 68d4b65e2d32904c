//! What stands after a backslash.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

use super::super::PatternError;
use super::scan::{Groups, Scan};

const SPACES: [(char, char); 10] = [
    ('\t', '\r'),
    (' ', ' '),
    ('\u{A0}', '\u{A0}'),
    ('\u{1680}', '\u{1680}'),
    ('\u{2000}', '\u{200A}'),
    ('\u{2028}', '\u{2029}'),
    ('\u{202F}', '\u{202F}'),
    ('\u{205F}', '\u{205F}'),
    ('\u{3000}', '\u{3000}'),
    ('\u{FEFF}', '\u{FEFF}'),
];
const WORD: [(char, char); 4] = [('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')];
const DIGITS: [(char, char); 1] = [('0', '9')];
const HIGH_HALF: std::ops::RangeInclusive<u32> = 0xD800..=0xDBFF;
const LOW_HALF: std::ops::RangeInclusive<u32> = 0xDC00..=0xDFFF;

/// One escape.
pub(super) enum Escape {
    /// A single character.
    One(char),
    /// `\d` and its like.
    Class(ClassUnicode),
    /// `\b`, or `\B` when negated.
    WordBorder { negated: bool },
}

/// Reads what follows a backslash at `start`; `note` takes remarks about readings that may surprise.
pub(super) fn escape(
    scan: &mut Scan<'_>,
    groups: Groups,
    in_class: bool,
    note: &mut dyn FnMut(String),
) -> Result<Escape, PatternError> {
    let start = scan.at().saturating_sub(1);
    let before = *scan;
    let Some(letter) = scan.next() else {
        return Err(PatternError::new(start, "found `\\` at the end, expected a character after it"));
    };
    Ok(match letter {
        'd' => Escape::Class(class(&DIGITS, false)),
        'D' => Escape::Class(class(&DIGITS, true)),
        'w' => Escape::Class(class(&WORD, false)),
        'W' => Escape::Class(class(&WORD, true)),
        's' => Escape::Class(class(&SPACES, false)),
        'S' => Escape::Class(class(&SPACES, true)),
        'b' if in_class => Escape::One('\u{8}'),
        'b' => Escape::WordBorder { negated: false },
        'B' if !in_class => Escape::WordBorder { negated: true },
        't' => Escape::One('\t'),
        'n' => Escape::One('\n'),
        'r' => Escape::One('\r'),
        'v' => Escape::One('\u{B}'),
        'f' => Escape::One('\u{C}'),
        'c' => control(scan, before, in_class),
        'x' => Escape::One(scan.hex(2).and_then(char::from_u32).unwrap_or_else(|| plain(scan, letter, note))),
        'u' => Escape::One(unicode(scan, start, note)?),
        'k' if groups.named => return Err(back_reference(start, "\\k<...>")),
        '0'..='9' => Escape::One(digit(scan, before, letter, groups, in_class)?),
        _ => Escape::One(plain(scan, letter, note)),
    })
}

/// An escape without a meaning of its own stands for its letter; whoever comes from another dialect is told.
fn plain(scan: &Scan<'_>, letter: char, note: &mut dyn FnMut(String)) -> char {
    if letter.is_ascii_alphabetic() {
        let braces =
            scan.rest().strip_prefix('{').and_then(|rest| rest.split_once('}')).map(|(inner, _)| inner);
        note(match (letter, braces) {
            ('p' | 'P', Some(name)) => {
                format!("`\\{letter}{{{name}}}` is read as the plain letters `{letter}{{{name}}}`")
            }
            ('u' | 'x', Some(times)) if times.bytes().all(|byte| byte.is_ascii_digit()) => {
                format!("`\\{letter}{{{times}}}` is read as {times} times the letter `{letter}`")
            }
            _ => format!("`\\{letter}` is read as the letter `{letter}`"),
        });
    }
    letter
}

fn class(ranges: &[(char, char)], negated: bool) -> ClassUnicode {
    let mut class = ClassUnicode::new(ranges.iter().map(|&(start, end)| ClassUnicodeRange::new(start, end)));
    if negated {
        class.negate();
    }
    class
}

/// `\cM`; without a letter after it, the backslash stands for itself.
fn control<'s>(scan: &mut Scan<'s>, before: Scan<'s>, in_class: bool) -> Escape {
    match scan.peek() {
        Some(letter)
            if letter.is_ascii_alphabetic() || (in_class && (letter.is_ascii_digit() || letter == '_')) =>
        {
            scan.next();
            Escape::One(char::from_u32(u32::from(letter) % 32).unwrap_or('\\'))
        }
        _ => {
            *scan = before;
            Escape::One('\\')
        }
    }
}

/// `\u0041`, or a pair of halves of one character.
fn unicode(scan: &mut Scan<'_>, start: usize, note: &mut dyn FnMut(String)) -> Result<char, PatternError> {
    let Some(value) = scan.hex(4) else { return Ok(plain(scan, 'u', note)) };
    if let Some(found) = char::from_u32(value) {
        return Ok(found);
    }
    let before = *scan;
    if HIGH_HALF.contains(&value)
        && scan.eat("\\u")
        && let Some(low) = scan.hex(4)
        && LOW_HALF.contains(&low)
        && let Some(found) = char::from_u32(0x10000 + ((value & 0x3FF) << 10) + (low & 0x3FF))
    {
        return Ok(found);
    }
    *scan = before;
    Err(PatternError::new(
        start,
        format!("found `\\u{value:04x}`, half of a character; only whole characters can be matched"),
    )
    .hint("write the character itself, for example `[😀-🙏]`"))
}

/// A back-reference, or else an octal number of at most 255.
fn digit(
    scan: &mut Scan<'_>,
    before: Scan<'_>,
    first: char,
    groups: Groups,
    in_class: bool,
) -> Result<char, PatternError> {
    if !in_class && first != '0' {
        let mut whole = before;
        let number = whole.decimal().unwrap_or(u32::MAX);
        if number <= groups.count {
            return Err(back_reference(before.at().saturating_sub(1), &format!("\\{number}")));
        }
    }
    let Some(mut value) = first.to_digit(8) else { return Ok(first) };
    for _ in 0..2 {
        let Some(next) = scan.peek().and_then(|next| next.to_digit(8)) else { break };
        if value * 8 + next > 0o377 {
            break;
        }
        value = value * 8 + next;
        scan.next();
    }
    Ok(char::from_u32(value).unwrap_or(first))
}

fn back_reference(at: usize, found: &str) -> PatternError {
    PatternError::new(
        at,
        format!("found `{found}`, a reference to what a group matched; matching in linear time has none"),
    )
    .hint("write the possible texts out, for example `\"[^\"]*\"|'[^']*'` instead of `([\"']).*?\\1`")
}
