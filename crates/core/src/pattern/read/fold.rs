//! Letters that are the same under the flag `i`, as JavaScript without `u` sees them.
//!
//! JavaScript compares `toUpperCase` of single code units, and never lets a letter beyond ASCII become an ASCII one.
//! So the Kelvin sign is not `k` and the long s is not `s`, unlike in the engine's own folding.

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};

const ASCII: ClassRange = ('\0', '\x7F');
const LOWER_TO_UPPER: u32 = 0x20;

type ClassRange = (char, char);

/// The set with every letter that JavaScript takes as the same.
pub(super) fn fold(set: &ClassUnicode) -> ClassUnicode {
    let ascii_only = ClassUnicode::new([ClassUnicodeRange::new(ASCII.0, ASCII.1)]);
    let mut ascii = set.clone();
    ascii.intersect(&ascii_only);
    let mut beyond = set.clone();
    beyond.difference(&ascii_only);
    let mut folded = set.clone();
    folded.union(&other_case(&ascii));
    folded.union(&same_upper_case(&beyond, &ascii_only));
    folded
}

/// The other case of the ASCII letters of a set.
fn other_case(ascii: &ClassUnicode) -> ClassUnicode {
    let mut found = ClassUnicode::empty();
    for range in ascii.iter() {
        let (start, end) = (u32::from(range.start()), u32::from(range.end()));
        let mut shift = |first: char, last: char, by: fn(u32) -> u32| {
            let letters = start.max(u32::from(first))..=end.min(u32::from(last));
            for letter in letters.filter_map(|letter| char::from_u32(by(letter))) {
                found.push(ClassUnicodeRange::new(letter, letter));
            }
        };
        shift('A', 'Z', |letter| letter + LOWER_TO_UPPER);
        shift('a', 'z', |letter| letter - LOWER_TO_UPPER);
    }
    found
}

/// The letters beyond ASCII that share their upper case with one of the set.
fn same_upper_case(beyond: &ClassUnicode, ascii_only: &ClassUnicode) -> ClassUnicode {
    let mut found = ClassUnicode::empty();
    let mut candidates = beyond.clone();
    if candidates.try_case_fold_simple().is_err() {
        return found;
    }
    candidates.difference(ascii_only);
    candidates.difference(beyond);
    for letter in candidates.iter().flat_map(|range| range.start()..=range.end()) {
        let mut relatives = ClassUnicode::new([ClassUnicodeRange::new(letter, letter)]);
        if relatives.try_case_fold_simple().is_err() {
            continue;
        }
        relatives.intersect(beyond);
        let mut relatives = relatives.iter().flat_map(|range| range.start()..=range.end());
        if relatives.any(|relative| upper(relative) == upper(letter)) {
            found.push(ClassUnicodeRange::new(letter, letter));
        }
    }
    found
}

/// ECMAScript's `Canonicalize` without the flag `u`, for letters beyond ASCII.
fn upper(letter: char) -> char {
    let is_one_unit = |found: char| found.len_utf16() == 1;
    let mut upper = letter.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(one), None) if is_one_unit(letter) && is_one_unit(one) && !one.is_ascii() => one,
        _ => letter,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(letters: &str) -> ClassUnicode {
        ClassUnicode::new(letters.chars().map(|letter| ClassUnicodeRange::new(letter, letter)))
    }

    #[test]
    fn letters_of_one_family() {
        let check = |letters: &str, want: &str| assert_eq!(fold(&class(letters)), class(want), "{letters}");
        check("k", "kK");
        check("aZ9_", "aAzZ9_");
        check("ſ", "ſ");
        check("\u{212A}", "\u{212A}");
        check("é", "éÉ");
        check("ß", "ß");
        check("Ω", "Ωω");
        check("\u{2126}", "\u{2126}");
        check("µ", "µμΜ");
        check("σ", "σςΣ");
        check("𐐨", "𐐨");
        check("ǆ", "ǆǅǄ");
    }

    /// The candidates come from the engine's folding: it must know every pair that JavaScript knows.
    #[test]
    fn no_pair_is_missed() {
        let mut families: std::collections::BTreeMap<char, Vec<char>> = Default::default();
        // Younger than the engine's tables (Unicode 16).
        let young = '\u{A7CE}'..='\u{A7D5}';
        for letter in ('\u{80}'..='\u{FFFF}').filter(|letter| !young.contains(letter)) {
            families.entry(upper(letter)).or_default().push(letter);
        }
        for family in families.into_values().filter(|family| family.len() > 1) {
            let text: String = family.iter().collect();
            assert_eq!(fold(&class(&family[0].to_string())), class(&text), "{text}");
        }
    }
}
