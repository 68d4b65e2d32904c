//! Credentials in a stream, replaced before the reader sees them: every text of the corpus, cut everywhere.

use hookgate_core::dispatch::Dispatcher;
use hookgate_core::event::{Chunk, WatchEvent};
use hookgate_core::session::{Channel, Session};
use hookgate_core::set::HookSet;
use hookgate_handlers::builtin;
use serde_json::{Value, json};
use std::sync::OnceLock;

/// What a reader gets of a text that arrives in these pieces, and how many bytes waited at most.
fn read(dispatcher: &Dispatcher, pieces: &[&str]) -> (String, usize) {
    let mut session = Session::new();
    let (mut passed, mut held, mut most) = (String::new(), String::new(), 0);
    // the place of `held`'s first byte
    let mut at = 0u64;
    let mut redactions = Vec::new();
    let finish = [Chunk::Finish { reason: "stop" }];
    let chunks = pieces.iter().map(|piece| Chunk::Content(piece)).chain(finish);
    for chunk in chunks {
        held.push_str(chunk.text().unwrap_or_default());
        dispatcher.tell(&mut session, &WatchEvent::Chunk(chunk), &mut Vec::new());
        redactions.extend(session.take_redactions(Channel::Content));
        let clear = session.clear(Channel::Content).min(at + held.len() as u64);
        let mut now: String = held.drain(..(clear - at) as usize).collect();
        for redaction in redactions.iter().rev() {
            let cut = |place: u64| (place.clamp(at, clear) - at) as usize;
            let (from, to) = (cut(redaction.range.start), cut(redaction.range.end));
            let begins = redaction.range.start >= at && redaction.range.start < clear;
            assert!(redaction.range.start >= at || redaction.range.end > at || now.is_empty() || to == 0);
            now.replace_range(from..to, if begins { &redaction.with } else { "" });
        }
        redactions.retain(|redaction: &hookgate_core::reading::Redaction| redaction.range.end > clear);
        at = clear;
        passed.push_str(&now);
        most = most.max(held.len());
    }
    assert!(held.is_empty(), "{held:?} was kept at the end");
    (passed, most)
}

fn guard() -> &'static Dispatcher {
    static GUARD: OnceLock<Dispatcher> = OnceLock::new();
    GUARD.get_or_init(|| {
        let settings = json!({"redact": true, "kinds": ["secret", "pii"]});
        let hook = builtin::hook("secrets_stream", settings.as_object().unwrap()).unwrap();
        Dispatcher::new(HookSet::new(vec![hook]).unwrap())
    })
}

struct Sample {
    id: String,
    pieces: Vec<String>,
    /// What must not reach the reader whole.
    secrets: Vec<String>,
    gray: bool,
}

fn samples() -> Vec<Sample> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/corpora/secrets.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let read = |line: &str| {
        let sample: Value = serde_json::from_str(line).unwrap();
        let list = |name: &str| sample[name].as_array().unwrap().clone();
        let pieces: Vec<String> = list("chunks").iter().map(|c| c.as_str().unwrap().to_owned()).collect();
        let signs: Vec<char> = pieces.concat().chars().collect();
        let at = |span: &Value, n: usize| span[n].as_u64().unwrap() as usize;
        let secrets =
            list("spans").iter().map(|span| signs[at(span, 0)..at(span, 1)].iter().collect()).collect();
        let gray = sample["gray"].as_bool().unwrap();
        Sample { id: sample["id"].as_str().unwrap().to_owned(), pieces, secrets, gray }
    };
    text.lines().map(read).collect()
}

#[test]
fn no_secret_of_the_corpus_reaches_the_reader_however_it_is_cut() {
    let samples = samples();
    assert!(samples.len() > 150);
    let mut looked = 0;
    for sample in samples.iter().filter(|sample| !sample.gray) {
        let whole = sample.pieces.concat();
        // of a long text not every place
        let cuts = whole.char_indices().map(|(at, _)| at).skip(1).step_by(whole.len() / 400 + 1);
        let given: Vec<&str> = sample.pieces.iter().map(String::as_str).collect();
        let signs: Vec<&str> = whole.char_indices().map(|(at, c)| &whole[at..at + c.len_utf8()]).collect();
        let two = cuts.map(|cut| vec![&whole[..cut], &whole[cut..]]);
        let alone = read(guard(), &[&whole]).0;
        for pieces in two.chain([given, signs, vec![&whole]]) {
            let (passed, _) = read(guard(), &pieces);
            assert_eq!(passed, alone, "{}: cut as {pieces:?}", sample.id);
            for secret in &sample.secrets {
                assert!(!passed.contains(secret.as_str()), "{}: {passed:?} of {pieces:?}", sample.id);
            }
            if sample.secrets.is_empty() {
                assert_eq!(passed, whole, "{}", sample.id);
            }
            looked += 1;
        }
    }
    assert!(looked > 9_000, "{looked}");
}

#[test]
fn ordinary_text_waits_for_a_word_at_most() {
    let text = "The quick brown fox jumps over the lazy dog. Let's look at the code: it reads the file, then \
                builds a list of routes and returns them, sorted by cost (about 1,234 of 56,789).\n";
    let signs: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
    let (passed, most) = read(guard(), &signs);
    assert_eq!(passed, text);
    assert!(most <= 16, "{most} bytes waited");
}

#[test]
fn a_key_behind_much_text_is_found_wherever_the_text_is_taken_apart() {
    for words in 335..346 {
        let text = format!("{}AKIAEXAMPLEEXAMPLE22 end", "lorem ipsum ".repeat(words));
        for cut in [1, 5, 7, 230] {
            let (passed, _) = read(guard(), &[&text[..cut], &text[cut..]]);
            assert!(passed.ends_with("ipsum [redacted aws_access_key_id] end"), "{words} {cut}");
        }
    }
}
