//! Our reading of patterns against node's own, over `corpus/patterns/node-regexp.json`.

#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails when its set-up does")]

use hookgate_core::pattern::Pattern;
use serde_json::Value;

const CORPUS: &str = include_str!("../../../corpus/patterns/node-regexp.json");

/// Why a case may differ from node.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Excuse {
    /// `(?=`, `(?!`, `(?<=`, `(?<!`: refused.
    LookAround,
    /// `\1` with a group 1, `\k<name>`: refused.
    BackReference,
    /// The flags `u` and `v` do not exist here.
    Flag,
    /// We read more than this node: `(?i:...)` of ECMAScript 2025, `(?i)` at the beginning.
    Accepted,
    /// The automaton would be too large.
    TooLarge,
    /// Under `m`, U+2028 and U+2029 end no line, and \r\n starts one.
    Lines,
    /// One character is one step, also beyond U+FFFF.
    CodePoint,
    /// A loop over something empty: the same texts match, but another part of them is found.
    EmptyLoop,
}

fn excuse(pattern: &str, flags: &str, reason: Option<&str>) -> Option<Excuse> {
    let reason = reason.unwrap_or_default();
    let beyond = |text: &str| text.chars().any(|letter| letter > '\u{FFFF}');
    match () {
        () if flags.contains(['u', 'v']) => Some(Excuse::Flag),
        () if reason.contains("look-") => Some(Excuse::LookAround),
        () if reason.contains("a reference to what a group matched") => Some(Excuse::BackReference),
        () if reason.contains("too large") => Some(Excuse::TooLarge),
        () if pattern.starts_with("(?i") || pattern.starts_with("(?s)") => Some(Excuse::Accepted),
        () if flags.contains('m') => Some(Excuse::Lines),
        () if pattern == "^.$" || beyond(pattern) => Some(Excuse::CodePoint),
        () => None,
    }
}

/// What we say: the found text in each input, or the reason of a refusal.
fn ours(case: &Value) -> Result<Vec<Option<String>>, String> {
    let (source, flags) = (text(&case["pattern"]), text(&case["flags"]));
    let is_plain = flags.is_empty() || flags.contains(['u', 'v']);
    let source = if is_plain { source.to_owned() } else { format!("(?{flags}){source}") };
    let pattern = Pattern::parse(&source).map_err(|error| error.to_string())?;
    let inputs = case["inputs"].as_array().into_iter().flatten().map(text);
    Ok(inputs
        .map(|input| pattern.find(input).map(|range| input.get(range).unwrap_or("no text").to_owned()))
        .collect())
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn node(case: &Value) -> Option<Vec<Option<String>>> {
    let found = case["found"].as_array()?;
    Some(found.iter().map(|one| one.as_str().map(str::to_owned)).collect())
}

fn compare(case: &Value) -> Result<(), (Option<Excuse>, String)> {
    let (pattern, flags) = (text(&case["pattern"]), text(&case["flags"]));
    let (ours, node) = (ours(case), node(case));
    let same = match (&ours, &node) {
        (Ok(ours), Some(node)) => ours == node,
        (Err(_), None) => true,
        _ => false,
    };
    if same {
        return Ok(());
    }
    let is = |found: &[Option<String>]| found.iter().map(Option::is_some).collect::<Vec<_>>();
    let mut excused = excuse(pattern, flags, ours.as_ref().err().map(String::as_str));
    if let (None, Ok(ours), Some(node)) = (excused, &ours, &node)
        && is(ours) == is(node)
        && has_empty_loop(pattern)
    {
        excused = Some(Excuse::EmptyLoop);
    }
    Err((excused, format!("/{pattern}/{flags} on {}\n    node {node:?}\n    ours {ours:?}", case["inputs"])))
}

/// A repeated group; only such can be empty and repeated.
fn has_empty_loop(pattern: &str) -> bool {
    [")*", ")+", "){"].iter().any(|end| pattern.contains(end))
}

fn check(group: &str, want: &[(Excuse, usize)]) {
    let corpus: Value = serde_json::from_str(CORPUS).expect("the corpus is JSON");
    let cases = corpus[group].as_array().expect("a list of cases");
    let (mut faults, mut excused) = (Vec::new(), Vec::new());
    for case in cases {
        match compare(case) {
            Ok(()) => {}
            Err((Some(excuse), _)) => excused.push(excuse),
            Err((None, text)) => faults.push(text),
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {} differ from node:\n{}",
        faults.len(),
        cases.len(),
        faults.join("\n")
    );
    for &(excuse, n) in want {
        assert_eq!(excused.iter().filter(|&&one| one == excuse).count(), n, "{excuse:?}");
    }
    assert_eq!(excused.len(), want.iter().map(|(_, n)| n).sum::<usize>(), "{excused:?}");
}

#[test]
fn written_by_hand() {
    check(
        "written",
        &[
            (Excuse::LookAround, 8),
            (Excuse::BackReference, 3),
            (Excuse::Flag, 6),
            (Excuse::Accepted, 3),
            (Excuse::TooLarge, 2),
            (Excuse::Lines, 4),
            (Excuse::CodePoint, 2),
            (Excuse::EmptyLoop, 3),
        ],
    );
}

#[test]
fn made_by_chance() {
    check("chance", &[(Excuse::BackReference, 1)]);
}
