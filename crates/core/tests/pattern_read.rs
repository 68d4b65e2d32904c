//! What a pattern says about itself, and how a refusal reads.

use hookgate_core::pattern::{Pattern, TextSet};

#[track_caller]
fn refused(source: &str, want: &str) {
    let got = Pattern::parse(source).map(|pattern| pattern.translated().to_owned());
    assert_eq!(got.map_err(|error| error.to_string()), Err(want.to_owned()), "{source}");
}

#[track_caller]
fn noted(source: &str, want: &[&str]) {
    let notes = Pattern::parse(source).map(|pattern| pattern.notes().to_vec());
    assert_eq!(notes.unwrap_or_default(), want, "{source}");
}

#[track_caller]
fn found(source: &str, text: &str, want: Option<&str>) {
    let pattern = Pattern::parse(source);
    let got = pattern.as_ref().ok().and_then(|pattern| pattern.find(text)).and_then(|range| text.get(range));
    assert_eq!(got, want, "{source} in {text:?}: {pattern:?}");
}

#[test]
fn a_refusal_names_what_was_found_and_what_to_write() {
    refused(
        "*",
        "found `*` with nothing before it that can be repeated (at byte 0); write `\\*` for the character itself",
    );
    refused(
        "a**",
        "found `*` with nothing before it that can be repeated (at byte 2); write `\\*` for the character itself",
    );
    refused("é([a-z", "found `[` without its `]` (at byte 3); write `\\[` for the bracket itself");
    refused("(a", "found `(` without its `)` (at byte 0); write `\\(` for the bracket itself");
    refused("a)", "found `)` without its `(` (at byte 1); write `\\)` for the bracket itself");
    refused("[b-a]", "found the range `b-a`, whose end comes before its start (at byte 1)");
    refused("a{2,1}", "found `{n,m}` where m is smaller than n (at byte 1)");
    refused("\\", "found `\\` at the end, expected a character after it (at byte 0)");
    refused(
        "(?P<x>a)",
        "found `(?P<`, a group that JavaScript does not know (at byte 0); write `(?<name>...)` for a named group",
    );
    refused(
        "a(?i)b",
        "found `(?i)`, a group that JavaScript does not know (at byte 1); the flags `(?i)`, `(?m)` and `(?s)` may \
         stand at the very beginning; elsewhere write `(?i:...)`",
    );
    refused("(?<a>x)(?<a>y)", "found two groups named `a`, each name may stand once (at byte 7)");
}

#[test]
fn what_linear_time_cannot_do_is_refused_with_a_way_out() {
    refused(
        "(?=.*a)b",
        "found `(?=`, a look-ahead; matching in linear time has none (at byte 0); give each condition its own hook, \
         or join them in `if_expr` with `matches(...) && matches(...)`",
    );
    refused(
        "(?!a)b",
        "found `(?!`, a look-ahead; matching in linear time has none (at byte 0); write what must match here, and \
         the exception in `if_expr` as `!matches(...)`",
    );
    refused(
        "rm(?=\\s)",
        "found `(?=`, a look-ahead; matching in linear time has none (at byte 2); write what follows as part of the \
         pattern, for example `rm\\s` instead of `rm(?=\\s)`",
    );
    refused(
        "(\")a\\1",
        "found `\\1`, a reference to what a group matched; matching in linear time has none (at byte 4); write the \
         possible texts out, for example `\"[^\"]*\"|'[^']*'` instead of `([\"']).*?\\1`",
    );
    refused(
        "\\ud83d",
        "found `\\ud83d`, half of a character; only whole characters can be matched (at byte 0); write the character \
         itself, for example `[😀-🙏]`",
    );
}

#[test]
fn size_and_depth_are_bounded() {
    let too_large = "the pattern is too large: its automaton would take more than 1 MiB; write smaller numbers \
        in `{...}`, or `*` and `+` instead of them";
    refused("(a{1000}){1000}", too_large);
    refused("a{4294967295}", too_large);
    refused("((((a{10}){10}){10}){10}){10}", too_large);
    refused(&"(".repeat(60_000), "found more than 200 groups within each other (at byte 200)");
    refused(&"a".repeat(70_000), "the pattern is too long: 70000 bytes, allowed are 65536");
    found("(?:(?:){1000000000}){1000000000}a", "ba", Some("a"));
    found("[^]{0,1000}b", "aab", Some("aab"));
    found(&format!("{}a{}", "(".repeat(200), ")".repeat(200)), "ba", Some("a"));
}

#[test]
fn readings_that_may_surprise_are_noted() {
    noted("\\w+ \\. \\/ \\- \\cA", &[]);
    noted("\\p{L}", &["`\\p{L}` is read as the plain letters `p{L}`"]);
    noted("\\u{3}", &["`\\u{3}` is read as 3 times the letter `u`"]);
    noted("\\Afoo\\Z\\Z", &["`\\A` is read as the letter `A`", "`\\Z` is read as the letter `Z`"]);
    noted("a*", &["the pattern can match empty text"]);
    noted(
        "(?m)^a$",
        &["under `m`, lines end at \\n and \\r, not at U+2028 and U+2029; \\r\\n starts one new line"],
    );
}

#[test]
fn flags_hold_where_they_stand() {
    found("(?i)abc", "xABC", Some("ABC"));
    found("(?im)^b$", "a\nB\nc", Some("B"));
    found("a(?i:b)c", "aBc", Some("aBc"));
    found("a(?i:b)c", "aBC", None);
    found("(?i)a(?-i:b)c", "AbC", Some("AbC"));
    found("(?i)a(?-i:b)c", "ABC", None);
    found("(?s:.)(?-s:.)", "\n\na", Some("\na"));
    for source in ["(?ii)a", "(?i-i:a)", "(?-:a)", "(?x)a", "(?x:a)", "(?)a"] {
        assert!(Pattern::parse(source).is_err(), "{source}");
    }
}

#[test]
fn a_dot_takes_a_whole_character() {
    found("^.$", "😀", Some("😀"));
    found("^[😀]$", "😀", Some("😀"));
    found("\\ud83d\\ude00", "a😀", Some("😀"));
    found("[\\ud83d\\ude00-\\ud83d\\ude4f]", "a😃", Some("😃"));
}

#[test]
fn a_matcher_matches_the_whole_text() {
    let check = |source: &str, text: &str, want: bool| {
        assert_eq!(
            Pattern::parse(source).map(|pattern| pattern.is_full_match(text)),
            Ok(want),
            "{source} {text}"
        );
    };
    check("exec", "exec", true);
    check("exec", "exec_sql", false);
    check("exec|write_file", "write_file", true);
    check("a|ab", "ab", true);
    check("a??", "a", true);
    check("(?m)a$", "a\n", false);
    check("exec", "exec\n", false);
    check("", "", true);
    check("\\bexec\\b", "exec", true);
}

#[test]
fn a_pattern_shows_how_it_was_read() {
    let check = |source: &str, want: &str| {
        let shown = Pattern::parse(source)
            .map(|pattern| (pattern.source().to_owned(), pattern.translated().to_owned()));
        assert_eq!(shown, Ok((source.to_owned(), want.to_owned())));
    };
    check("a\\d|$", "(?:(?:a[0-9])|\\z)");
    check("(?:a+)?", "(a+)?");
    check("b|(?:(?:a{3})?c)*", "(?:b|(?:(a{3})?c)*)");
    check("(?:(?:a+)??)*", "((a+)??)*");
    assert_eq!(Pattern::parse("a?").map(|pattern| pattern.can_match_empty()), Ok(true));
    assert_eq!(Pattern::parse("a").map(|pattern| pattern.can_match_empty()), Ok(false));
    assert_eq!(Pattern::parse("[]*").map(|pattern| pattern.can_match_empty()), Ok(true));
    assert_eq!(Pattern::parse("[]").map(|pattern| pattern.can_match_empty()), Ok(false));
}

#[test]
fn a_text_set_tells_all_that_match() {
    let patterns =
        ["\\bfoo\\b", "^foo", "foo$", "[]", "é", "x*", "\\B"].map(|source| Pattern::parse(source).ok());
    let patterns: Vec<&Pattern> = patterns.iter().flatten().collect();
    let check = |text: &str, want: &[usize]| {
        let mut hits = vec![99];
        let set = TextSet::new(&patterns);
        assert_eq!(set.as_ref().map(TextSet::len).ok(), Some(7));
        set.iter().for_each(|set| {
            set.warm();
            set.matches_into(text, &mut hits);
        });
        assert_eq!(hits, want, "{text:?}");
    };
    check("foo", &[0, 1, 2, 5, 6]);
    check("a foo é b", &[0, 4, 5, 6]);
    check("foos", &[1, 5, 6]);
    check("aéa", &[4, 5]);
    check("", &[5, 6]);
    let empty = TextSet::new(&[]).map(|set| {
        let mut hits = vec![99];
        set.matches_into("a", &mut hits);
        (set.is_empty(), hits)
    });
    assert_eq!(empty, Ok((true, vec![])));
}
