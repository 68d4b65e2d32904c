//! Event streams: however the bytes are cut, the events are the same, and every decoder takes them.
//!
//! Input: one byte that says how to cut, then the bytes of the stream.

#![no_main]

use hookgate_llm::{Answer, Delta, Provider, sse};
use libfuzzer_sys::fuzz_target;

type Plain = (String, String, Option<String>, Option<u64>, bool);

fuzz_target!(|input: &[u8]| {
    let Some((how, stream)) = input.split_first() else { return };
    let (whole, stray) = read(sse::Parser::new(), &[stream]);
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    let cut = pieces(stream, *how);
    for pieces in [&single, &cut] {
        let (events, same_stray) = read(sse::Parser::new(), pieces);
        assert_eq!(events, whole);
        assert_eq!(same_stray, stray);
        // A parser with a limit gives the same events until it refuses one.
        let (events, _) = read(sse::Parser::with_limit(usize::from(*how)), pieces);
        assert!(whole.starts_with(&events));
    }
    Provider::ALL.iter().for_each(|provider| decode(*provider, &whole, stream));
});

/// Cuts into pieces of changing length, up to 8 bytes.
fn pieces(mut stream: &[u8], how: u8) -> Vec<&[u8]> {
    let (mut pieces, mut state) = (Vec::new(), u32::from(how) + 1);
    while !stream.is_empty() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, rest) = stream.split_at((state >> 24) as usize % 9 % (stream.len() + 1));
        pieces.push(piece);
        stream = rest;
    }
    pieces
}

fn read(mut parser: sse::Parser, pieces: &[&[u8]]) -> (Vec<Plain>, Option<String>) {
    let mut events = Vec::new();
    for n in 0..=pieces.len() {
        match pieces.get(n) {
            Some(piece) => parser.push(piece),
            None => parser.finish(),
        }
        while let Ok(Some(event)) = parser.next_event() {
            assert!(event.closed || n == pieces.len());
            let id = event.id.map(Into::into);
            events.push((event.event.into(), event.data.into(), id, event.retry, event.closed));
        }
    }
    (events, parser.stray().map(str::to_owned))
}

/// What [`Delta`] promises holds for any events.
fn decode(provider: Provider, events: &[Plain], stream: &[u8]) {
    let (mut decoder, mut deltas) = ((provider.wire().decoder)(), Vec::new());
    for (event, data, id, retry, closed) in events {
        let event = sse::Event {
            event: event.into(),
            data: data.into(),
            id: id.as_deref().map(Into::into),
            retry: *retry,
            closed: *closed,
            raw: b"",
        };
        if decoder.done() || decoder.event(&event, &mut deltas).is_err() {
            break;
        }
    }
    let complete = decoder.complete();
    assert_eq!(decoder.finish(&mut deltas).is_ok(), complete);
    check(deltas, complete);
    if let Ok(deltas) = provider.wire().decode_whole(stream) {
        check(deltas, true);
    }
}

fn check(deltas: Vec<Delta>, complete: bool) {
    let mut answer = Answer::default();
    let mut finished = false;
    for delta in deltas {
        assert!(
            !finished || matches!(delta, Delta::Usage(_) | Delta::Other(_)),
            "after the finish: {delta:?}"
        );
        finished |= matches!(delta, Delta::Finish(_));
        answer.push(delta);
    }
    assert_eq!(finished, complete);
    assert!(!finished || answer.message.tool_calls.iter().all(|call| !call.id.is_empty()));
}
