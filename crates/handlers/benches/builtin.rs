//! What a judgement of a line costs, and a piece of a streamed answer through the secret scanner.

use criterion::{Criterion, criterion_group, criterion_main};
use hookgate_handlers::builtin::destructive::{Destructive, Shell};
use hookgate_handlers::builtin::secrets::{Kind, Secrets};
use std::hint::black_box;

const LINES: &[(&str, &str)] = &[
    ("short", "cargo test"),
    ("typical", "cd crates/core && cargo test --release 2>&1 | tee test.log | tail -20"),
    ("wrapped", "sudo bash -c 'for f in *.log; do rm -f \"$f\"; done'"),
    ("commit", "git commit -m \"$(cat <<'EOF'\nfix: treat rm -r -f like rm -rf\nEOF\n)\" && git push"),
    ("blocked", "git add -A && rm -rf ~"),
];

fn judge(c: &mut Criterion) {
    for (name, line) in LINES {
        c.bench_function(&format!("judge/{name}"), |b| {
            b.iter(|| Destructive::judge(black_box(line), Shell::Bash));
        });
    }
}

fn scan(c: &mut Criterion) {
    let Ok(secrets) = Secrets::new(&[Kind::Secret, Kind::Pii]) else { return };
    for (name, text) in [
        ("prose", "The quick brown fox jumps over the lazy dog; then it sleeps. "),
        ("code", "let total = items.iter().map(|x| x.price * 12).sum::<u64>(); "),
        ("numbers", "2024-01-15 12:30:45 192.168.100.200 took 1234567 ns of 99 "),
    ] {
        let mut scanner = secrets.scanner();
        let mut pieces =
            text.as_bytes().chunks(20).filter_map(|piece| std::str::from_utf8(piece).ok()).cycle();
        c.bench_function(&format!("scan 20 bytes/{name}"), |b| {
            b.iter(|| scanner.push(black_box(pieces.next().unwrap_or_default())));
        });
    }
}

criterion_group!(benches, judge, scan);
criterion_main!(benches);
