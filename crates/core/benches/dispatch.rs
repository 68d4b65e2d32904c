//! What an event costs: chunks, messages and the loading of hooks, by number of hooks.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use criterion::{Criterion, criterion_group, criterion_main};
use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::event::{Chunk, Message, Origin, Role, WatchEvent};
use hookgate_core::hook::Source;
use hookgate_core::session::Session;
use hookgate_core::set::HookSet;
use std::hint::black_box;

const COUNTS: [usize; 4] = [1, 10, 100, 1000];

fn dispatcher(text: &str) -> Dispatcher {
    let read = define::read("bench.json", text, Source::User, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    Dispatcher::new(HookSet::new(read.hooks).unwrap())
}

fn list(count: usize, one: impl Fn(usize) -> String) -> String {
    format!("[{}]", (0..count).map(one).collect::<Vec<_>>().join(","))
}

/// Different patterns of the usual kinds, with word borders and classes.
fn pattern(i: usize) -> String {
    match i % 4 {
        0 => format!(r"\\bsecret_{i}\\b"),
        1 => format!(r"AKIA{i}[0-9A-Z]{{16}}"),
        2 => format!(r"token{i}\\s*[:=]\\s*\\w+"),
        _ => format!(r"drop\\s+table\\s+t{i}|rm -rf /{i}"),
    }
}

fn stream_hook(i: usize) -> String {
    let regex = pattern(i);
    format!(
        r#"{{"target":"stream","chunks":["content"],"regex":"{regex}","actions":[{{"type":"interrupt"}}]}}"#
    )
}

fn chat_hook(i: usize) -> String {
    format!(r#"{{"target":"chat","regex":"{}","actions":[{{"type":"interrupt"}}]}}"#, pattern(i))
}

fn chunk_against_patterns(c: &mut Criterion) {
    let mut group = c.benchmark_group("20-byte chunk, hooks with different patterns, no match");
    for count in COUNTS {
        let dispatcher = dispatcher(&list(count, stream_hook));
        let (mut session, mut effects) = (Session::new(), Vec::new());
        let event = WatchEvent::Chunk(Chunk::Content("and then the answer "));
        group.bench_function(count.to_string(), |b| {
            b.iter(|| dispatcher.tell(&mut session, black_box(&event), &mut effects));
        });
        assert!(effects.is_empty());
    }
}

fn chunk_of_another_type(c: &mut Criterion) {
    let mut group = c.benchmark_group("20-byte chunk, hooks on another chunk type");
    for count in COUNTS {
        let dispatcher = dispatcher(&list(count, stream_hook));
        let (mut session, mut effects) = (Session::new(), Vec::new());
        let event = WatchEvent::Chunk(Chunk::Reasoning("and then the answer "));
        group.bench_function(count.to_string(), |b| {
            b.iter(|| dispatcher.tell(&mut session, black_box(&event), &mut effects));
        });
    }
}

fn chunk_that_all_hooks_log(c: &mut Criterion) {
    let mut group = c.benchmark_group("20-byte chunk, hooks without a pattern, all log");
    for count in COUNTS {
        let hook =
            r#"{"target":"stream","chunks":["content"],"actions":[{"type":"log","message":"{{text}}"}]}"#;
        let dispatcher = dispatcher(&list(count, |_| hook.to_owned()));
        let (mut session, mut effects) = (Session::new(), Vec::new());
        let event = WatchEvent::Chunk(Chunk::Content("and then the answer "));
        group.bench_function(count.to_string(), |b| {
            b.iter(|| {
                dispatcher.tell(&mut session, black_box(&event), &mut effects);
                effects.clear();
            });
        });
    }
}

fn message_of_8_kb(c: &mut Criterion) {
    let mut group = c.benchmark_group("8 KB message, hooks with different patterns, no match");
    let ascii = "The quick brown fox jumps over the lazy dog, and so on. ".repeat(147);
    let other = "Größe und Übergröße, 数値は７です, the lazy dog, and so on. ".repeat(130);
    for (name, text) in [("ASCII", &ascii), ("beyond ASCII", &other)] {
        for count in COUNTS {
            let dispatcher = dispatcher(&list(count, chat_hook));
            let (mut session, mut effects) = (Session::new(), Vec::new());
            let message = Message { role: Role::Assistant, content: text, origin: Origin::Model };
            group.bench_function(format!("{name}, {count} ({} bytes)", text.len()), |b| {
                b.iter(|| {
                    dispatcher.tell(&mut session, black_box(&WatchEvent::Message(message)), &mut effects)
                });
            });
            assert!(effects.is_empty());
        }
    }
}

fn load(c: &mut Criterion) {
    let mut group = c.benchmark_group("read and arrange hooks with patterns");
    group.sample_size(20);
    for count in COUNTS {
        let text = list(count, |i| if i % 2 == 0 { stream_hook(i) } else { chat_hook(i) });
        group.bench_function(count.to_string(), |b| b.iter(|| dispatcher(black_box(&text))));
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().warm_up_time(std::time::Duration::from_millis(500)).measurement_time(std::time::Duration::from_secs(1)).without_plots();
    targets = chunk_against_patterns, chunk_of_another_type, chunk_that_all_hooks_log, message_of_8_kb, load
}
criterion_main!(benches);
