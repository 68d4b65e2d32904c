//! Built-in hooks: lines of both kinds, hostile lines, texts cut anywhere, and the hooks through core's chain.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::string_slice,
    missing_docs,
    reason = "a test may stop"
)]

mod hooks;
mod hostile;
mod redact;

use hookgate_handlers::builtin::destructive::{Destructive, Finding, Shell};
use hookgate_handlers::builtin::secrets::{Kind, Match, Secrets};
use std::time::{Duration, Instant};

/// A line a case; `⏎` is a new line, `WIN ` before it means PowerShell or cmd.
fn judged(cases: &str) -> impl Iterator<Item = (&str, Finding)> {
    cases.lines().filter(|line| !line.is_empty()).map(|line| {
        let (shell, text) = match line.strip_prefix("WIN ") {
            Some(text) => (Shell::Windows, text),
            None => (Shell::Bash, line),
        };
        (line, Destructive::judge(&text.replace('⏎', "\n"), shell))
    })
}

#[test]
fn destructive_lines_are_found() {
    let missed: Vec<_> =
        judged(include_str!("destructive.txt")).filter(|(_, found)| !found.is_destructive()).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn harmless_lines_pass() {
    let wrong: Vec<_> =
        judged(include_str!("harmless.txt")).filter(|(_, found)| found.is_destructive()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Openings, closings, and everything that a recursive parser could follow for too long.
const PIECES: &[&str] = &[
    "rm -rf x",
    "$(",
    "`",
    "\"",
    "'",
    "(",
    ")",
    "((",
    "))",
    "{",
    "}",
    "{a,b}",
    "${x",
    "}",
    ";",
    "&&",
    "|",
    "\n",
    "if true; then ",
    "fi",
    "while :; do ",
    "done",
    "case x in a) ",
    "esac",
    "<<E\n",
    "E\n",
    "<<<",
    "<< \"\"",
    "<(",
    ">",
    "f() ",
    "f;",
    "[[ a ",
    "]]",
    "&",
    "eval ",
    "bash -c ",
    "xargs ",
    "find . -exec ",
    "\\",
    "#",
    "$",
    "~",
    "*",
    " ",
    "for i in *; do ",
    "!",
    "sudo ",
    "x=",
    "é",
    "\u{1}",
    "\0",
    "$((1",
    "python -c ",
    "sh -c '",
    "alias f=f;",
    "cat ",
    "x=$x$x$x;",
    "f(){ f;f; };f;",
    "\"$(",
];

/// Runs on a thread with the stack that worker threads have.
fn on_small_stack(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(2 << 20).spawn(work).unwrap().join().unwrap();
}

fn judge_in_time(line: &str) {
    for shell in [Shell::Bash, Shell::Windows] {
        let began = Instant::now();
        let _ = Destructive::judge(line, shell);
        let took = began.elapsed();
        let start: String = line.chars().take(60).collect();
        assert!(took < Duration::from_secs(20), "{took:?} for {} bytes of {start:?}", line.len());
    }
}

#[test]
fn repeated_pieces_neither_hang_nor_overflow() {
    on_small_stack(|| {
        for piece in PIECES {
            for times in [10, 45, 100, 3_000] {
                judge_in_time(&piece.repeat(times));
            }
        }
    });
}

#[test]
fn nested_pieces_neither_hang_nor_overflow() {
    let pairs = [
        ("$(", ")"),
        ("( ", " )"),
        ("((", "))"),
        ("{ ", "; }"),
        ("if true; then ", "; fi"),
        ("while :; do ", "; done"),
        ("\"$(", ")\""),
        ("${x:-", "}"),
        ("[[ ( ", " ) ]]"),
        ("$((", "))"),
        ("case x in a) ", ";; esac"),
        ("f() { ", "; }"),
        ("<(", ")"),
        ("{a,", "}"),
        ("bash -c '", "'"),
        ("echo `", "`"),
    ];
    on_small_stack(move || {
        for (open, close) in pairs {
            for times in [5, 20, 60, 95, 2_000] {
                judge_in_time(&format!("{}x{}", open.repeat(times), close.repeat(times)));
                judge_in_time(&format!("{};;{}", open.repeat(times), close.repeat(times)));
            }
        }
    });
}

#[test]
fn random_lines_neither_hang_nor_overflow() {
    on_small_stack(|| {
        let mut state = 7_u64;
        let mut random = move |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            usize::try_from(state % below as u64).unwrap()
        };
        for _ in 0..3_000 {
            let line: String = (0..random(40)).map(|_| PIECES[random(PIECES.len())]).collect();
            judge_in_time(&line);
        }
    });
}

fn secrets() -> Secrets {
    Secrets::new(&[Kind::Secret, Kind::Pii]).unwrap()
}

#[test]
fn near_misses_pass() {
    let secrets = secrets();
    let wrong: Vec<_> =
        include_str!("near_misses.txt").lines().filter(|line| !secrets.find(line).is_empty()).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn streamed(secrets: &Secrets, text: &str, step: usize) -> Vec<Match> {
    let mut scanner = secrets.scanner();
    let mut found = Vec::new();
    let signs: Vec<char> = text.chars().collect();
    for piece in signs.chunks(step) {
        found.append(&mut scanner.push(&piece.iter().collect::<String>()));
    }
    found.append(&mut scanner.finish());
    found
}

/// Put together here, so that nothing in this file looks like a secret.
fn texts() -> Vec<String> {
    let zeros = "0".repeat(29);
    vec![
        format!("a {}_EXAMPLE{zeros} b", "ghp"),
        format!("{{\"t\":\"\\u0067hp_EXAMPLE{zeros}\"}}"),
        "card 4111 1111 1111 1111, mail ž@x a@example.org and +49 30 23125 014.".to_owned(),
        format!("-----BEGIN {} KEY-----\n{}\n-----END {0} KEY-----\n", "PRIVATE", "MIIEXAMPLE".repeat(12)),
        "x postgres://app:EXAMPLE-pass-0000@db.example.com:5432/app y".to_owned(),
        "no find at all, only 12 words and a few numbers like 2024-01-15".to_owned(),
    ]
}

#[test]
fn finds_do_not_depend_on_the_pieces() {
    let secrets = secrets();
    for text in texts() {
        let whole = secrets.find(&text);
        for step in [1, 2, 3, 7, 20, 64] {
            assert_eq!(streamed(&secrets, &text, step), whole, "in pieces of {step}: {text}");
        }
    }
}

#[test]
fn spans_are_places_in_the_text_as_it_came() {
    let text = &texts()[2];
    let found: Vec<(&str, &str)> =
        secrets().find(text).iter().map(|found| (found.class, &text[found.span.clone()])).collect();
    let want =
        [("card_number", "4111 1111 1111 1111"), ("email", "a@example.org"), ("phone", "+49 30 23125 014")];
    assert_eq!(found, want);
}

#[test]
fn a_find_far_in_is_found_and_nothing_grows() {
    let secrets = secrets();
    let mut scanner = secrets.scanner();
    for _ in 0..20_000 {
        assert!(scanner.push("lorem ipsum 12 dolor ").is_empty());
    }
    let mut found = scanner.push(&texts()[0]);
    found.append(&mut scanner.finish());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].span.start, 20_000 * 21 + 2);
}
