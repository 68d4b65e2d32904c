//! No input makes a parser panic or loop: recorded answers with bytes changed, and plain noise.

use std::fs;
use std::path::Path;

use hookgate_llm::{Answer, Delta, Provider, Script, sse};
use proptest::prelude::*;

fn read_everything(bytes: &[u8]) {
    for provider in Provider::ALL {
        let wire = provider.wire();
        let (mut parser, mut decoder, mut deltas) = (sse::Parser::new(), (wire.decoder)(), Vec::new());
        parser.push(bytes);
        parser.finish();
        let mut n_events = 0;
        while let Some(event) = parser.next_event().unwrap() {
            n_events += 1;
            assert!(n_events <= bytes.len());
            if decoder.event(&event, &mut deltas).is_err() {
                break;
            }
        }
        let ended = decoder.finish(&mut deltas).is_ok();
        let finishes = deltas.iter().filter(|delta| matches!(delta, Delta::Finish(_))).count();
        assert!(finishes == usize::from(ended), "{deltas:?}");
        let after = deltas.iter().skip_while(|delta| !matches!(delta, Delta::Finish(_))).skip(1);
        let late: Vec<_> = after.filter(|d| !matches!(d, Delta::Usage(_) | Delta::Other(_))).collect();
        assert!(late.is_empty(), "{late:?} after the finish");
        let mut answer = Answer::default();
        deltas.into_iter().for_each(|delta| answer.push(delta));
        let _ = wire.decode_whole(bytes);
    }
    let _ = Script::parse(&String::from_utf8_lossy(bytes));
}

fn recorded() -> Vec<Vec<u8>> {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/captures");
    let names = [
        "openai-chat/py-openai_chat_interleave.response.sse",
        "openai-chat/real-llama-cpp-python-tool-forced.response.json",
        "anthropic-messages/py-anthropic_think_tool.response.sse",
        "anthropic-messages/js-vercel_ant_generate-1.response.json",
    ];
    let demo = include_bytes!("../../src/scripted/demo.json").to_vec();
    names.iter().map(|name| fs::read(corpus.join(name)).unwrap()).chain([demo]).collect()
}

proptest! {
    #[test]
    fn noise(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_everything(&bytes);
    }

    #[test]
    fn changed_recordings(
        mut bytes in prop::sample::select(recorded()),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..8),
        length in any::<prop::sample::Index>(),
    ) {
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_everything(&bytes);
        bytes.truncate(length.index(bytes.len()));
        read_everything(&bytes);
    }

    #[test]
    fn values_of_other_types(
        field in prop::sample::select(vec![
            "choices", "index", "delta", "content", "tool_calls", "function", "name", "arguments", "id", "usage",
            "finish_reason", "content_block", "type", "partial_json", "message", "error", "stop_reason", "input",
        ]),
        value in prop::sample::select(vec!["null", "0", "-1", "18446744073709551615", "\"\"", "[]", "{}", "[null]", "true", "1.5"]),
        recording in prop::sample::select(recorded()),
    ) {
        let text = String::from_utf8(recording).unwrap();
        for space in ["", " "] {
            let found = format!("\"{field}\":{space}");
            let changed = text.replace(&found, &format!("{found}{value}, \"was_{field}\": "));
            read_everything(changed.as_bytes());
        }
    }
}
