//! Patterns over texts that arrive in pieces.

#![expect(clippy::expect_used, reason = "a test fails when its set-up does")]

use hookgate_core::pattern::{Hit, Pattern, StreamSet};

/// Pushes the pieces and shows the hits: pieces are counted from 0, `end` is the end of the text.
fn hits(sources: &[&str], pieces: &[&str]) -> String {
    let patterns: Vec<Pattern> = sources.iter().filter_map(|source| Pattern::parse(source).ok()).collect();
    assert_eq!(patterns.len(), sources.len(), "a pattern was refused: {sources:?}");
    let set = StreamSet::new(&patterns.iter().collect::<Vec<_>>()).expect("a set");
    let mut cursor = set.cursor();
    let mut shown = Vec::new();
    let mut show = |place: String, hits: &mut Vec<Hit>| {
        for Hit { pattern, matched } in hits.drain(..) {
            shown.push(format!("{place}: {pattern} {matched:?}"));
        }
    };
    let mut found = Vec::new();
    for (n, piece) in pieces.iter().enumerate() {
        cursor.push(&set, piece, &mut found);
        show(n.to_string(), &mut found);
    }
    cursor.finish(&set, &mut found);
    show("end".to_owned(), &mut found);
    shown.join("; ")
}

#[track_caller]
fn check(sources: &[&str], pieces: &[&str], want: &str) {
    assert_eq!(hits(sources, pieces), want, "{sources:?} over {pieces:?}");
}

#[test]
fn a_match_is_reported_with_the_piece_that_completes_it() {
    check(&["secret"], &["a sec", "ret"], r#"1: 0 "secret""#);
    check(&["secret"], &["a sec", "", "ret", " b"], r#"2: 0 "secret""#);
    check(&["secret"], &["secret secret"], r#"0: 0 "secret""#);
    check(&["secret"], &["secret ", "secret"], r#"0: 0 "secret"; 1: 0 "secret""#);
    check(&["a", "b"], &["ba"], r#"0: 0 "a"; 0: 1 "b""#);
    check(&["é+"], &["caf", "é", "é"], r#"1: 0 "é""#);
}

#[test]
fn a_growing_match_is_reported_once() {
    check(&[r"secret-\d+"], &["secret-1", "2", "3 secret-4"], r#"0: 0 "secret-1"; 2: 0 "secret-4""#);
    check(&[r"secret-\d+"], &["secret-12", "3"], r#"0: 0 "secret-12""#);
    check(&["key.*"], &["key", "s and more", " key", "\n", "key"], r#"0: 0 "key"; 4: 0 "key""#);
    check(&["[a-z]+"], &["ab", "cd", " ", "e"], r#"0: 0 "ab"; 3: 0 "e""#);
}

#[test]
fn matches_do_not_overlap() {
    check(&["aba"], &["ab", "a", "b", "a", "b", "a"], r#"1: 0 "aba"; 5: 0 "aba""#);
    check(&["aa"], &["a", "a", "a", "a", "a"], r#"1: 0 "aa"; 3: 0 "aa""#);
    check(&["abcd|bc|d"], &["a", "b", "c", "d"], r#"2: 0 "bc""#);
    check(&["error|error: .*timeout"], &["error", ": a time", "out"], r#"0: 0 "error""#);
}

#[test]
fn word_borders_wait_for_the_next_character() {
    check(&[r"\bdrop\b"], &["drop", "s"], "");
    check(&[r"\bdrop\b"], &["drop", " it"], r#"1: 0 "drop""#);
    check(&[r"\bdrop\b"], &["back", "drop "], "");
    check(&[r"\bdrop\b"], &["to ", "drop"], r#"end: 0 "drop""#);
    check(&[r"\bdrop"], &["x", " ", "drop"], r#"2: 0 "drop""#);
    check(&[r"drop\B"], &["drop", "s"], r#"1: 0 "drop""#);
    check(&[r"drop(?:\b|\B)"], &["drop"], r#"0: 0 "drop""#);
}

#[test]
fn the_end_of_a_piece_is_not_the_end_of_the_text() {
    check(&["end$"], &["end", " and end"], r#"end: 0 "end""#);
    check(&["^a"], &["a", "a"], r#"0: 0 "a""#);
    check(&["^b"], &["a", "b"], "");
    check(&["^$"], &[], r#"end: 0 """#);
    check(&["^$"], &["a"], "");
    check(&["(?m)a$"], &["a", "\n", "a"], r#"1: 0 "a"; end: 0 "a""#);
    check(&["(?m)^b"], &["a\n", "b", "\r", "\n", "b"], r#"1: 0 "b"; 4: 0 "b""#);
}

#[test]
fn what_can_be_empty_is_reported_with_each_piece() {
    check(&["x*"], &["a", "xx", "", "b"], r#"0: 0 ""; 1: 0 "xx"; 3: 0 """#);
    check(&["^"], &["a", "b"], r#"0: 0 """#);
    check(&["$"], &["a", "b"], r#"end: 0 """#);
}

#[test]
fn a_match_longer_than_the_window_is_reported_once() {
    let long = "x".repeat(20_000);
    let out = hits(&["BEGIN[^]*END"], &["BEGIN", &long, "END", &long, "END", "BEGIN END"]);
    let shown: Vec<&str> = out.split("; ").map(|hit| hit.get(..8).unwrap_or(hit)).collect();
    assert_eq!(shown, ["2: 0 \"xx", "5: 0 \"BE"]);
}

#[test]
fn a_cursor_can_be_used_again_and_with_another_set() {
    let one = Pattern::parse("abc").unwrap();
    let other = Pattern::parse("^x|bcd").unwrap();
    let (first, second) = (StreamSet::new(&[&one]).unwrap(), StreamSet::new(&[&other]).unwrap());
    let (mut cursor, mut hits) = (first.cursor(), Vec::new());
    cursor.push(&first, "xabc", &mut hits);
    cursor.push(&second, "d bcd", &mut hits);
    cursor.finish(&second, &mut hits);
    cursor.push(&second, "x", &mut hits);
    let texts: Vec<&str> = hits.iter().map(|hit| hit.matched.as_str()).collect();
    assert_eq!(texts, ["abc", "bcd", "x"]);
}

#[test]
fn many_streams_share_a_set_across_threads() {
    let patterns: Vec<Pattern> = (0..50).map(|n| Pattern::parse(&format!(r"\bword{n}\b")).unwrap()).collect();
    let set = StreamSet::new(&patterns.iter().collect::<Vec<_>>()).unwrap();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let set = &set;
            scope.spawn(move || {
                let (mut cursor, mut hits) = (set.cursor(), Vec::new());
                for _ in 0..200 {
                    for piece in [" wo", "rd", &n.to_string(), ","] {
                        cursor.push(set, piece, &mut hits);
                    }
                }
                cursor.finish(set, &mut hits);
                assert_eq!(hits.len(), 200);
                assert!(hits.iter().all(|hit| hit.pattern == n));
            });
        }
    });
}

#[test]
fn a_large_piece_with_many_matches_is_quick() {
    let text = "some text with a secret-1234 in it, over and over again; key: value\n".repeat(5 << 20 >> 6);
    let patterns = ["secret-\\d+", "key.*", "[a-z]+", "absent", "e", "x*"];
    let begin = std::time::Instant::now();
    let out = hits(&patterns, &[&text]);
    let took = begin.elapsed();
    assert_eq!(out.split("; ").count(), 5, "{out}");
    eprintln!("5 MB: {took:?}");
    assert!(took.as_secs() < 10, "{took:?}");
}

#[test]
fn what_runs_at_the_end_of_a_large_piece_is_not_reported_again() {
    let large = "x secret-1 é ".repeat(5_000) + "secret-2";
    check(&[r"secret-\d+"], &[&large, "3", " secret-4"], r#"0: 0 "secret-1"; 2: 0 "secret-4""#);
    check(&["absent|key.*"], &[&large, " key", &large, "\nkey"], r#"1: 0 "key"; 3: 0 "key""#);
}

#[test]
fn a_pattern_that_ruins_backtracking_is_quick() {
    let text = "a".repeat(40_000) + "!";
    check(&["^(a+)+$"], &[&text], "");
    let pattern = Pattern::parse("^(a+)+$").unwrap();
    assert!(!pattern.is_full_match(&text));
    assert_eq!(pattern.find(&text), None);
}
