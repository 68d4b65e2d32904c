//! The wires as somebody in the middle reads them: any request and any stream is read or refused, what a stream gives
//! does not depend on how it is cut, and what nobody changes goes out byte for byte.
//!
//! Input: one byte that chooses the wire, one that says what is done, then a request's JSON or the bytes of a stream.

#![no_main]

use hookgate_llm::proxy::{
    ANTHROPIC, Change, End, GEMINI, Middle, Note, OPENAI_CHAT, OPENAI_RESPONSES, Piece, RequestChange, Said, What, read_json,
};
use hookgate_llm::sse::{Event, Parser};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const WIRES: [&dyn Middle; 4] = [&OPENAI_CHAT, &OPENAI_RESPONSES, &ANTHROPIC, &GEMINI];

fuzz_target!(|input: &[u8]| {
    let [wire, how, rest @ ..] = input else { return };
    let wire = WIRES[usize::from(*wire) % WIRES.len()];
    match how % 3 {
        0 => request(wire, rest),
        1 => body(wire, rest),
        _ => {
            let (read, out, is_whole) = stream(wire, &[rest]);
            let single: Vec<&[u8]> = rest.chunks(1).collect();
            let (single_read, single_out, single_is_whole) = stream(wire, &single);
            assert_eq!((single_read, single_is_whole), (read, is_whole));
            // among lines that end in CR, an event is not kept for a LF that may follow: that goes out with the next
            assert_eq!(single_out.strip_suffix(b"\n").unwrap_or(&single_out), out.strip_suffix(b"\n").unwrap_or(&out));
            spliced(wire, rest);
        }
    }
});

fn request(wire: &dyn Middle, bytes: &[u8]) {
    let Some(mut body) = read_json(bytes) else { return };
    let Ok(asked) = wire.asked("/v1/x", &body) else { return };
    let append = RequestChange::Append { role: "user".into(), text: "more".into() };
    if wire.change(&mut body, &[append]).is_ok() {
        let longer = wire.asked("/v1/x", &body).expect("what was changed can be read");
        // on some wires what is said in a row is one message
        let user = |said: &&Said| matches!(said.what, What::User(_));
        let last = longer.messages.iter().rfind(user).map(|said| &said.what);
        assert!(matches!(last, Some(What::User(text)) if text.ends_with("more")), "{last:?}");
        assert!(longer.messages.len() >= asked.messages.len());
    }
}

fn body(wire: &dyn Middle, bytes: &[u8]) {
    let Some(body) = read_json(bytes) else { return };
    let mut exchange = wire.exchange(true);
    if exchange.read_body(&body, &mut |_| {}).is_ok() {
        assert_eq!(exchange.write_body(body.clone(), &[], None), body, "nobody changed it");
        let _ = exchange.echo();
    }
}

/// What was read, and what went out.
fn stream(wire: &dyn Middle, pieces: &[&[u8]]) -> (Vec<String>, Vec<u8>, bool) {
    let (mut parser, mut exchange) = (Parser::new(), wire.exchange(false));
    let (mut read, mut out) = (Vec::new(), Vec::new());
    for n in 0..=pieces.len() {
        match pieces.get(n) {
            Some(piece) => parser.push(piece),
            None => parser.finish(),
        }
        while let Ok(Some(event)) = parser.next_event() {
            let Ok(note) = exchange.read(&event, &mut |piece| read.push(format!("{piece:?}"))) else {
                return (read, out, false);
            };
            let before = out.len();
            exchange.write(&event, note, &[], &mut out);
            let written = &out[before..];
            if !written.is_empty() && written != event.raw {
                // a provider that uses an index twice: clients would mix the two
                let (came, went) = (without_index(event.raw), without_index(written));
                assert_eq!(came, went, "nobody changed it");
            }
        }
    }
    let whole = exchange.ended(&mut |piece| read.push(format!("{piece:?}")));
    (read, out, whole)
}

/// The JSON of an event without what counts in it.
fn without_index(event: &[u8]) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::Object(members) => {
                members.remove("index");
                members.values_mut().for_each(strip);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            _ => {}
        }
    }
    let mut parser = Parser::new();
    parser.push(event);
    parser.finish();
    let event = parser.next_event().expect("it is small").expect("an event");
    let mut value = read_json(event.data.as_bytes()).expect("only JSON is written anew");
    strip(&mut value);
    value
}

/// Changes every text, says something, and ends: nothing may fail, and all that goes out are whole events.
fn spliced(wire: &dyn Middle, bytes: &[u8]) {
    let (mut parser, mut exchange, mut out) = (Parser::new(), wire.exchange(false), Vec::new());
    parser.push(bytes);
    while let Ok(Some(event)) = parser.next_event() {
        let mut n_texts = 0;
        let mut count = |piece: Piece<'_>| n_texts += u32::from(matches!(piece, Piece::Text { .. }));
        let Ok(note) = exchange.read(&event, &mut count) else { break };
        write(&mut *exchange, &event, note, n_texts, &mut out);
    }
    exchange.say(0, "more", &mut out);
    exchange.end(End::Stopped, &mut out);
    let mut parser = Parser::new();
    parser.push(&out);
    while let Ok(Some(_)) = parser.next_event() {}
    assert!(parser.rest().is_empty(), "half an event went out");
}

fn write(
    exchange: &mut dyn hookgate_llm::proxy::Exchange,
    event: &Event<'_>,
    note: Note,
    n_texts: u32,
    out: &mut Vec<u8>,
) {
    let changes: Vec<Change> = (0..n_texts).map(|nth| Change::Text { nth, text: "x".into() }).collect();
    exchange.write(event, note, &changes, out);
}
