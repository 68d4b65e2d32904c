//! What patterns cost: reading, building sets, whole texts and pieces of a stream.

#![expect(clippy::expect_used, reason = "a bench ends when its set-up fails")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hookgate_core::pattern::{Pattern, StreamSet, TextSet};

const WORDS: &[&str] = &[
    "password",
    "secret",
    "token",
    "error",
    "warning",
    "refund",
    "invoice",
    "kubectl",
    "docker",
    "terraform",
    "delete",
    "drop",
    "truncate",
    "shutdown",
    "reboot",
    "format",
    "chmod",
    "chown",
    "curl",
    "wget",
    "salary",
    "passport",
    "diagnosis",
    "contract",
    "lawsuit",
    "weapon",
    "overdose",
    "jailbreak",
    "ignore",
    "pretend",
    "confidential",
    "internal",
    "private",
    "customer",
    "account",
    "payment",
    "wire",
    "crypto",
    "wallet",
    "seed",
    "mnemonic",
    "backdoor",
    "exploit",
    "malware",
    "phishing",
    "deploy",
    "rollback",
    "migrate",
    "prod",
    "staging",
];

const COMMON: &[&str] = &[
    r"error|Error|warning",
    r"rm\s+-rf|mkfs|dd\s+if=",
    r"api_key|password|secret",
    r"AKIA[0-9A-Z]{16}",
    r"gh[pousr]_[A-Za-z0-9]{36}",
    r"xox[baprs]-[A-Za-z0-9-]{10,}",
    r"-----BEGIN (?:RSA |EC )?PRIVATE KEY-----",
    r"(?i)ignore (?:all )?previous instructions",
    r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
    r"I don't know|I'm not sure",
];

/// Patterns of the kinds that people write.
fn sources(n: usize) -> Vec<String> {
    let made = (0..).map(|i| {
        let word = |k: usize| WORDS.get(k % WORDS.len()).copied().unwrap_or_default();
        let (a, b, c) = (word(i), word(i / WORDS.len() + i * 7 + 1), word(i * 13 + 5));
        match i % 6 {
            0 => format!(r"(?i){a}\s+{b}{i}"),
            1 => format!(r"{a}|{b}_{c}{i}"),
            2 => format!(r"\b{a}\b.{{0,20}}\b{b}{i}\b"),
            3 => format!(r#""{a}_{i}"\s*:\s*"[^"]+""#),
            4 => format!(r"{a}=[0-9a-f]{{8,{}}}", 9 + i % 24),
            _ => format!(r"(?:{a}|{b})\s*(?:--{c}|-{i})"),
        }
    });
    COMMON.iter().map(|source| (*source).to_owned()).chain(made).take(n).collect()
}

fn parse(sources: &[String]) -> Vec<Pattern> {
    sources.iter().map(|source| Pattern::parse(source).expect("a pattern")).collect()
}

/// Text without a match, with characters beyond ASCII.
fn text(n: usize) -> String {
    let part = "The function reads the configuration file, then builds a list of candidate routes and returns them \
        sorted by cost. When the cache is cold we fall back to the slower path; see the notes in section four about \
        retries, back-off and idempotency. let total = items.iter().map(|x| x.price * x.qty).sum::<u64>(); \
        // caf\u{e9} na\u{ef}ve \u{2014} done\n";
    let mut text = part.repeat(n / part.len() + 1);
    while text.len() > n {
        text.pop();
    }
    text
}

fn building(c: &mut Criterion) {
    let sources = sources(1000);
    let parsed = parse(&sources);
    let all: Vec<&Pattern> = parsed.iter().collect();
    c.bench_function("read 1000 patterns", |b| b.iter(|| parse(&sources)));
    c.bench_function("build a text set of 1000", |b| b.iter(|| TextSet::new(&all)));
    c.bench_function("build a stream set of 1000", |b| b.iter(|| StreamSet::new(&all)));
    let cold = || StreamSet::new(&all).expect("a set");
    c.bench_function("warm up a stream set of 1000", |b| {
        b.iter_batched(cold, |set| set.warm(), BatchSize::LargeInput)
    });
}

fn texts(c: &mut Criterion) {
    for n in [10, 100, 1000] {
        let parsed = parse(&sources(n));
        let all: Vec<&Pattern> = parsed.iter().collect();
        let set = TextSet::new(&all).expect("a set");
        for (name, size) in [("20 B", 20), ("200 B", 200), ("8 KB", 8192)] {
            let (text, mut hits) = (text(size), Vec::new());
            c.bench_function(&format!("whole text of {name}, {n} patterns"), |b| {
                b.iter(|| set.matches_into(black_box(&text), &mut hits));
            });
            assert!(hits.is_empty(), "{hits:?}");
        }
    }
}

fn streams(c: &mut Criterion) {
    for n in [10, 100, 1000] {
        let parsed = parse(&sources(n));
        let set = StreamSet::new(&parsed.iter().collect::<Vec<_>>()).expect("a set");
        let (text, mut cursor, mut hits) = (text(8190), set.cursor(), Vec::new());
        let letters: Vec<char> = text.chars().collect();
        for size in [4, 20, 200] {
            let pieces: Vec<String> = letters.chunks(size).map(String::from_iter).collect();
            let mut next = pieces.iter().cycle();
            c.bench_function(&format!("piece of {size} characters, {n} patterns"), |b| {
                b.iter(|| cursor.push(&set, black_box(next.next().expect("a piece")), &mut hits));
            });
            assert!(hits.is_empty(), "{hits:?}");
        }
    }
}

fn hits(c: &mut Criterion) {
    let parsed = parse(&[r"secret-\d+", "key.*", "[a-z]+", "absent", "e", r"\bover\b"].map(str::to_owned));
    let line = "some text with a secret-1234 in it, over and over again; key: value\n";
    let long = line.repeat((5 << 20) / line.len());
    for (name, n) in [("1 busy pattern", 1), ("6 busy patterns", 6)] {
        let set = StreamSet::new(&parsed.iter().take(n).collect::<Vec<_>>()).expect("a set");
        let (mut cursor, mut hits) = (set.cursor(), Vec::new());
        let mut push = |piece: &str| {
            hits.clear();
            cursor.push(&set, black_box(piece), &mut hits);
        };
        c.bench_function(&format!("piece of 5 MB, {name}"), |b| b.iter(|| push(&long)));
        c.bench_function(&format!("piece of one line, {name}"), |b| b.iter(|| push(line)));
    }
}

criterion_group! {
    name = pattern;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1));
    targets = building, texts, streams, hits
}
criterion_main!(pattern);
