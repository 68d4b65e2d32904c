//! What framing and decoding cost per event: `frame` cuts 169-byte events, `decode` also reads their JSON.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hookgate_llm::{Provider, sse};

const N_EVENTS: usize = 1000;

/// One event of 169 bytes, as a provider writes it.
fn event() -> String {
    let json = r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"#;
    let end = "},\"finish_reason\":null}]}\n\n";
    let text = "x".repeat(169 - "data: ".len() - json.len() - end.len() - 2);
    format!("data: {json}\"{text}\"{end}")
}

fn frame(c: &mut Criterion) {
    assert_eq!(event().len(), 169);
    let stream = event().repeat(N_EVENTS);
    let mut group = c.benchmark_group("sse/frame");
    group.throughput(Throughput::Elements(N_EVENTS as u64));
    for (name, piece) in [("an event a piece", 169), ("16 KiB a piece", 16 * 1024), ("20 bytes a piece", 20)]
    {
        group.bench_function(name, |b| {
            b.iter(|| {
                let mut parser = sse::Parser::new();
                let mut n_bytes = 0;
                for piece in stream.as_bytes().chunks(piece) {
                    parser.push(piece);
                    while let Ok(Some(event)) = parser.next_event() {
                        n_bytes += black_box(&event.data).len();
                    }
                }
                n_bytes
            });
        });
    }
    group.finish();
}

fn decode(c: &mut Criterion) {
    let event = event();
    let data = event.trim_start_matches("data: ").trim_end();
    let event =
        sse::Event { event: "".into(), data: data.into(), id: None, retry: None, closed: true, raw: b"" };
    let mut decoder = (Provider::OpenAiChat.wire().decoder)();
    let mut out = Vec::new();
    c.bench_function("decode/openai-chat", |b| {
        b.iter(|| {
            out.clear();
            let _ = decoder.event(black_box(&event), &mut out);
            out.len()
        });
    });
}

criterion_group!(benches, frame, decode);
criterion_main!(benches);
