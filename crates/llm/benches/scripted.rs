//! What a delta of a scripted answer costs: 10,000 of them in one stream, from opening it to its end.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{FutureExt, StreamExt};
use hookgate_llm::{Delta, Model, Request, Script, Scripted};

const N_DELTAS: usize = 10_000;

fn play(c: &mut Criterion) {
    let chunks =
        Scripted::new(Script::from_deltas((0..N_DELTAS).map(|n| Delta::Content(format!(" word{n}")))));
    let text = format!(r#"{{"turns":[{{"text":"{}"}}]}}"#, "word ".repeat(N_DELTAS));
    let mut models = vec![("chunks", chunks)];
    models.extend(Scripted::parse(&text).ok().map(|model| ("words of a text", model)));
    let mut group = c.benchmark_group("scripted");
    group.throughput(Throughput::Elements(N_DELTAS as u64));
    for (name, model) in &models {
        group.bench_function(*name, |b| b.iter(|| count(model)));
    }
    group.finish();
}

fn count(model: &Scripted) -> usize {
    let Some(Ok(mut stream)) = model.stream(Request::default()).now_or_never() else { return 0 };
    let mut n = 0;
    while let Some(Some(item)) = stream.next().now_or_never() {
        n += usize::from(black_box(item).is_ok());
    }
    n
}

criterion_group!(benches, play);
criterion_main!(benches);
