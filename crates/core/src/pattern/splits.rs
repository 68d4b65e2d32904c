//! However a text is cut into pieces, the same matches are found: those of one search over the whole text.

use proptest::prelude::*;
use regex_automata::meta::Regex;

use super::stream_set::StreamSet;
use super::{Hit, Pattern, StreamCursor, TextSet};

/// Matches of the whole text, one after the other.
fn matches(pattern: &Pattern, text: &str) -> Vec<String> {
    let regex = Regex::builder().build_from_hir(pattern.tree()).unwrap();
    regex.find_iter(text).map(|found| text.get(found.range()).unwrap().to_owned()).collect()
}

fn source() -> impl Strategy<Value = String> {
    let one = |text: &'static str| Just(text.to_owned());
    let leaf = prop_oneof![
        4 => prop::sample::select(vec!["a", "b", "c", " ", "é", "ab", "\\n"]).prop_map(str::to_owned),
        2 => prop::sample::select(vec!["[ab]", "[^a]", ".", "\\w", "\\W", "[^]", "\\s"]).prop_map(str::to_owned),
        1 => prop::sample::select(vec!["\\b", "\\B", "^", "$"]).prop_map(str::to_owned),
        1 => prop_oneof![one("(?:)"), one("[]")],
    ];
    let tree = leaf.prop_recursive(4, 16, 3, |inner| {
        let sign = prop::sample::select(vec!["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}"]);
        prop_oneof![
            3 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| parts.concat()),
            2 => prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| format!("(?:{})", parts.join("|"))),
            2 => (inner, sign).prop_map(|(part, sign)| format!("(?:{part}){sign}")),
        ]
    });
    (prop::sample::select(vec!["", "", "", "(?m)", "(?i)", "(?s)"]), tree)
        .prop_map(|(flags, tree)| flags.to_owned() + &tree)
}

fn text() -> impl Strategy<Value = String> {
    let letters = vec!['a', 'a', 'b', 'b', 'c', ' ', '\n', '\r', 'é', 'A'];
    prop::collection::vec(prop::sample::select(letters), 0..24).prop_map(String::from_iter)
}

/// Cuts a text after each character whose bit is set; all bits set means single characters.
fn pieces(text: &str, cuts: u32) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for (n, letter) in text.chars().enumerate() {
        pieces.last_mut().unwrap().push(letter);
        if cuts.rotate_right(n as u32) & 1 == 1 {
            pieces.push(String::new());
        }
    }
    pieces
}

/// All hits, each with the number of its piece; the end of the text is one more piece.
fn run(set: &StreamSet, cursor: &mut StreamCursor, pieces: &[String]) -> (Vec<(usize, Hit)>, Vec<u64>) {
    let (mut all, mut hits) = (Vec::new(), Vec::new());
    for (n, piece) in pieces.iter().enumerate() {
        cursor.push(set, piece, &mut hits);
        all.extend(hits.drain(..).map(|hit| (n, hit)));
    }
    let found = cursor.finish_counting(set, &mut hits);
    all.extend(hits.drain(..).map(|hit| (pieces.len(), hit)));
    (all, found)
}

fn check(sources: &[String], text: &str, cuts: u32, cache: usize) -> Result<(), TestCaseError> {
    let patterns: Vec<Pattern> = sources.iter().filter_map(|source| Pattern::parse(source).ok()).collect();
    let set = StreamSet::with_limits(&patterns.iter().collect::<Vec<_>>(), 1, cache).unwrap();
    let (hits, found) = run(&set, &mut set.cursor(), &pieces(text, cuts));
    for (index, pattern) in patterns.iter().enumerate() {
        let want = matches(pattern, text);
        let got: Vec<_> = hits.iter().filter(|(_, hit)| hit.pattern == index).collect();
        let context = format!("/{}/ on {text:?} cut {cuts:b}: want {want:?}, got {got:?}", pattern.source());
        prop_assert!(got.is_sorted_by(|one, other| one.0 < other.0), "two hits in one piece: {}", context);
        if pattern.can_match_empty() {
            prop_assert_eq!(want.is_empty(), got.is_empty(), "{}", context);
        } else {
            prop_assert_eq!(found[index], want.len() as u64, "{}", context);
            prop_assert!(got.len() <= want.len() && got.is_empty() == want.is_empty(), "{}", context);
        }
    }
    Ok(())
}

/// The reported texts are beginnings of matches, in order, when no alternatives are told apart late.
fn check_texts(source: &str, text: &str, cuts: u32) {
    let pattern = Pattern::parse(source).unwrap();
    let set = StreamSet::new(&[&pattern]).unwrap();
    let (hits, _) = run(&set, &mut set.cursor(), &pieces(text, cuts));
    let mut want = matches(&pattern, text).into_iter();
    for (_, hit) in &hits {
        let found = want.any(|want| want.starts_with(&hit.matched));
        assert!(found, "{source} {text:?} {cuts:b}: {hits:?}");
    }
}

proptest! {
    // PROPTEST_CASES=30000 for a long run.
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_split_finds_the_same(sources in prop::collection::vec(source(), 1..4), text in text(), cuts: u32) {
        check(&sources, &text, cuts, 1 << 20)?;
        check(&sources, &text, u32::MAX, 1 << 20)?;
        check(&sources, &text, 0, 1 << 20)?;
    }

    #[test]
    fn a_tiny_cache_changes_nothing(sources in prop::collection::vec(source(), 1..4), text in text(), cuts: u32) {
        check(&sources, &text, cuts, 0)?;
        check(&sources, &text, u32::MAX, 0)?;
    }

    #[test]
    fn streams_on_one_cache_do_not_disturb_each_other(sources in prop::collection::vec(source(), 1..4),
        texts in prop::collection::vec(text(), 2), cuts: u32) {
        let patterns: Vec<Pattern> = sources.iter().filter_map(|source| Pattern::parse(source).ok()).collect();
        let set = StreamSet::with_limits(&patterns.iter().collect::<Vec<_>>(), 1, 0).unwrap();
        let alone: Vec<_> = texts.iter().map(|text| run(&set, &mut set.cursor(), &pieces(text, cuts)).1).collect();
        let mut cursors = [set.cursor(), set.cursor()];
        let cut: Vec<_> = texts.iter().map(|text| pieces(text, cuts)).collect();
        let mut hits = Vec::new();
        for n in 0..32 {
            for (cursor, pieces) in cursors.iter_mut().zip(&cut) {
                pieces.get(n).into_iter().for_each(|piece| cursor.push(&set, piece, &mut hits));
            }
        }
        let together: Vec<_> = cursors.iter_mut().map(|cursor| cursor.finish_counting(&set, &mut hits)).collect();
        for (index, pattern) in patterns.iter().enumerate().filter(|(_, pattern)| !pattern.can_match_empty()) {
            for (alone, together) in alone.iter().zip(&together) {
                prop_assert_eq!(alone[index], together[index], "{}", pattern.source());
            }
        }
    }

    #[test]
    fn a_text_set_agrees_with_its_patterns(sources in prop::collection::vec(source(), 1..6), text in text()) {
        let patterns: Vec<Pattern> = sources.iter().filter_map(|source| Pattern::parse(source).ok()).collect();
        let set = TextSet::new(&patterns.iter().collect::<Vec<_>>()).unwrap();
        let mut hits = vec![77];
        set.matches_into(&text, &mut hits);
        let want: Vec<usize> = (0..patterns.len()).filter(|&n| patterns[n].find(&text).is_some()).collect();
        prop_assert_eq!(hits, want, "{:?}", sources);
    }
}

#[test]
fn reported_texts_are_beginnings_of_matches() {
    for source in [r"secret-\d+", "aba", r"\bab*\b", "[a-z]+", "a.*", "(?:ab)+", "é+"] {
        for text in ["secret-123 secret-4", "ababababa", "ab abb b abbb", "aé éé ab\nabab"] {
            (0..48).for_each(|cuts| check_texts(source, text, cuts * 89_478_485));
        }
    }
}
