//! What reading and writing an ordinary delta costs from the middle, with its framing, for each wire; and what a
//! delta costs whose text is changed.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hookgate_llm::proxy::{self, Change, Middle, Piece};
use hookgate_llm::sse;

const N_EVENTS: usize = 1000;

/// Each wire with what begins its stream, and one delta as its provider writes it.
const WIRES: [(&dyn Middle, &str, &str); 4] = [
    (
        &proxy::OPENAI_CHAT,
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
        "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m-1\",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_1\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" chunk\"},\"logprobs\":null,\"finish_reason\":null}],\"usage\":null}\n\n",
    ),
    (
        &proxy::OPENAI_RESPONSES,
        "data: {\"type\":\"response.output_item.added\",\"sequence_number\":0,\"output_index\":0,\"item\":{\"id\":\"msg_1\",\"type\":\"message\",\"content\":[]}}\n\ndata: {\"type\":\"response.content_part.added\",\"sequence_number\":1,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"part\":{\"type\":\"output_text\",\"text\":\"\"}}\n\n",
        "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":15,\"item_id\":\"msg_1\",\"output_index\":0,\"content_index\":0,\"delta\":\" chunk\",\"logprobs\":[],\"obfuscation\":\"xyzxyz\"}\n\n",
    ),
    (
        &proxy::ANTHROPIC,
        "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" chunk\"}}\n\n",
    ),
    (
        &proxy::GEMINI,
        "data: {\"candidates\":[],\"modelVersion\":\"m\",\"responseId\":\"r\"}\r\n\r\n",
        "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\" chunk\"}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":18,\"candidatesTokenCount\":15,\"totalTokenCount\":33},\"modelVersion\":\"gemini-x\",\"responseId\":\"r\"}\r\n\r\n",
    ),
];

fn pass(wire: &dyn Middle, stream: &[u8], changes: &[Change]) -> (usize, usize) {
    let (mut exchange, mut parser) = (wire.exchange(false), sse::Parser::new());
    let (mut out, mut n_bytes, mut n_out) = (Vec::new(), 0, 0);
    for piece in stream.chunks(16 * 1024) {
        parser.push(piece);
        out.clear();
        while let Ok(Some(event)) = parser.next_event() {
            let read = exchange.read(&event, &mut |piece| {
                if let Piece::Text { text, .. } = piece {
                    n_bytes += black_box(&text).len();
                }
            });
            if let Ok(note) = read {
                exchange.write(&event, note, changes, &mut out);
            }
        }
        n_out += out.len();
    }
    (n_bytes, n_out)
}

fn wires(c: &mut Criterion) {
    let changes = [Change::Text { nth: 0, text: "changed".to_owned() }];
    for (name, changes) in [("proxy/pass", &[][..]), ("proxy/change", &changes[..])] {
        let mut group = c.benchmark_group(name);
        group.throughput(Throughput::Elements(N_EVENTS as u64));
        for (wire, begin, event) in WIRES {
            let stream = format!("{begin}{}", event.repeat(N_EVENTS));
            let (n_bytes, n_out) = pass(wire, stream.as_bytes(), changes);
            assert_eq!(n_bytes, " chunk".len() * N_EVENTS, "every event is read");
            assert!(!changes.is_empty() || n_out == stream.len(), "every event passes");
            group.bench_function(wire.name(), |b| b.iter(|| pass(wire, stream.as_bytes(), changes)));
        }
        group.finish();
    }
}

criterion_group!(benches, wires);
criterion_main!(benches);
