//! Patterns: any text is read or refused; what is read finds the same alone, in a set, and in a stream however cut.
//!
//! Input: one byte that says how to cut, lines with one pattern each, an empty line, the text.

#![no_main]

use hookgate_core::pattern::{Hit, Pattern, StreamSet, TextSet};
use libfuzzer_sys::fuzz_target;
use regex_automata::hybrid::regex::Regex;
use regex_automata::util::syntax;

/// Larger ones take longer and find the same.
const LONGEST_PATTERN: usize = 200;
const MOST_PATTERNS: usize = 3;
/// Shorter than what a stream keeps to look for the beginning of a match.
const LONGEST_TEXT: usize = 1 << 10;
/// The text is repeated up to this length, which is more than a stream keeps.
const LONG_TEXT: usize = 10 << 10;

fuzz_target!(|input: &[u8]| {
    let Some((how, rest)) = input.split_first() else { return };
    let rest = String::from_utf8_lossy(rest);
    let (sources, text) = rest.split_once("\n\n").unwrap_or((&rest, "a secret-12, and caf\u{e9}\r\n_-"));
    if text.len() > LONGEST_TEXT {
        return;
    }
    let sources = sources.lines().filter(|source| source.len() <= LONGEST_PATTERN).take(MOST_PATTERNS);
    let patterns: Vec<Pattern> = sources.filter_map(parse).collect();
    let borrowed: Vec<&Pattern> = patterns.iter().collect();
    let want: Vec<usize> = patterns.iter().map(|pattern| count(pattern, text)).collect();

    let mut found = Vec::new();
    let set = TextSet::new(&borrowed).expect("a few small patterns fit in a set");
    set.matches_into(text, &mut found);
    assert_eq!(found, (0..patterns.len()).filter(|n| want[*n] > 0).collect::<Vec<_>>(), "{patterns:?}");

    if let Some(pattern) = patterns.first() {
        assert!(want[0] > 0 || !pattern.is_full_match(text), "{pattern:?} on {text:?}");
    }

    let set = StreamSet::new(&borrowed).expect("a few small patterns fit in a set");
    let single: Vec<&str> = text.split_inclusive(|_| true).collect();
    for pieces in [vec![text], single, pieces(text, *how)] {
        let hits = stream(&set, &pieces);
        for (index, pattern) in patterns.iter().enumerate() {
            let got: Vec<&(usize, Hit)> = hits.iter().filter(|(_, hit)| hit.pattern == index).collect();
            let once_a_piece = got.is_sorted_by(|one, other| one.0 < other.0);
            let texts = got.iter().all(|(_, hit)| text.contains(&hit.matched));
            // Several matches in one piece are one hit.
            let number = (got.len() <= want[index] || pattern.can_match_empty())
                && got.is_empty() == (want[index] == 0);
            assert!(
                once_a_piece && texts && number,
                "{pattern:?} on {pieces:?}: {} matches, got {got:?}",
                want[index]
            );
        }
    }

    if *how >= 0x80 {
        let long = text.repeat(LONG_TEXT / text.len().max(1));
        let hits = stream(&set, &pieces(&long, *how));
        assert!(
            hits.iter().all(|(_, hit)| long.contains(&hit.matched)),
            "{patterns:?} on {text:?}: {hits:?}"
        );
    }
});

fn parse(source: &str) -> Option<Pattern> {
    match Pattern::parse(source) {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

/// How many matches another engine finds, given what we say we understood.
fn count(pattern: &Pattern, text: &str) -> usize {
    let regex = Regex::builder()
        .syntax(syntax::Config::new().utf8(false).nest_limit(1_000))
        .build(pattern.translated())
        .expect("what we understood is a pattern");
    let mut cache = regex.create_cache();
    let first = regex.find(&mut cache, text).map(|found| found.range());
    assert_eq!(pattern.find(text), first, "{pattern:?} on {text:?}");
    regex.find_iter(&mut cache, text).count()
}

/// Cuts into pieces of changing length, up to 8 characters.
fn pieces(text: &str, how: u8) -> Vec<&str> {
    let (mut pieces, mut rest, mut state) = (Vec::new(), text, u32::from(how) + 1);
    while !rest.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let end = rest.char_indices().nth((state >> 24) as usize % 9).map_or(rest.len(), |(at, _)| at);
        let (piece, later) = rest.split_at(end);
        pieces.push(piece);
        rest = later;
    }
    pieces
}

/// All hits with the number of their piece; the end of the text is one more piece.
fn stream(set: &StreamSet, pieces: &[&str]) -> Vec<(usize, Hit)> {
    let (mut cursor, mut all, mut hits) = (set.cursor(), Vec::new(), Vec::new());
    for n in 0..=pieces.len() {
        match pieces.get(n) {
            Some(piece) => cursor.push(set, piece, &mut hits),
            None => cursor.finish(set, &mut hits),
        }
        all.extend(hits.drain(..).map(|hit| (n, hit)));
    }
    all
}
