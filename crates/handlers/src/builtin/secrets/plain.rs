//! Makes text plain: what a reader of the text would see, not how it is written. JSON's escapes are worked out, signs
//! without width are left out. Each byte remembers where it came from.

use std::ops::Range;

/// Longest escape, `\uXXXX`.
const LONGEST: usize = 6;

/// Where a text that arrives in pieces stands.
#[derive(Debug, Default)]
pub(super) struct Plain {
    /// The beginning of an escape whose rest has not come.
    open: String,
    /// Bytes taken so far.
    at: usize,
}

impl Plain {
    /// Adds a piece in plain form.
    pub(super) fn push(&mut self, piece: &str, out: &mut String, places: &mut Vec<Range<usize>>) {
        if self.open.is_empty() && !piece.contains('\\') && piece.is_ascii() {
            out.push_str(piece);
            places.extend((self.at..self.at + piece.len()).map(|at| at..at + 1));
            self.at += piece.len();
            return;
        }
        for c in piece.chars() {
            self.sign(c, out, places);
        }
    }

    /// The end: what is open stands for itself.
    pub(super) fn finish(&mut self, out: &mut String, places: &mut Vec<Range<usize>>) {
        let open = std::mem::take(&mut self.open);
        let mut from = self.at - open.len();
        for c in open.chars() {
            put(c, from..from + c.len_utf8(), out, places);
            from += c.len_utf8();
        }
    }

    /// How many bytes of the text as it came are worked out.
    pub(super) fn settled(&self) -> usize {
        self.at - self.open.len()
    }

    fn sign(&mut self, c: char, out: &mut String, places: &mut Vec<Range<usize>>) {
        let from = self.at;
        self.at += c.len_utf8();
        if self.open.is_empty() && c != '\\' {
            if !is_invisible(c) {
                put(c, from..self.at, out, places);
            }
            return;
        }
        self.open.push(c);
        let start = self.at - self.open.len();
        match escape(&self.open) {
            Escape::Open => {}
            Escape::Is(plain) => {
                put(plain, start..self.at, out, places);
                self.open.clear();
            }
            Escape::No => self.finish(out, places),
        }
    }
}

fn put(c: char, place: Range<usize>, out: &mut String, places: &mut Vec<Range<usize>>) {
    out.push(c);
    places.extend(std::iter::repeat_n(place, c.len_utf8()));
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

enum Escape {
    Open,
    Is(char),
    No,
}

fn escape(text: &str) -> Escape {
    let mut chars = text.chars();
    chars.next();
    match chars.next() {
        None => Escape::Open,
        Some('n' | 'r') => Escape::Is('\n'),
        Some('t') => Escape::Is('\t'),
        Some(c @ ('"' | '\\' | '/' | '\'')) => Escape::Is(c),
        Some('u') => {
            let digits = chars.as_str();
            if !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                Escape::No
            } else if text.len() < LONGEST {
                Escape::Open
            } else {
                u32::from_str_radix(digits, 16).ok().and_then(char::from_u32).map_or(Escape::No, Escape::Is)
            }
        }
        Some(_) => Escape::No,
    }
}
