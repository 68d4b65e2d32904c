//! `redact`: where it may stand, and what is replaced however the answer is cut.
#![allow(
    clippy::unwrap_used,
    clippy::string_slice,
    clippy::indexing_slicing,
    missing_docs,
    reason = "a test may stop"
)]

use hookgate_core::action::ActionKinds;
use hookgate_core::define;
use hookgate_core::dispatch::Dispatcher;
use hookgate_core::event::{Chunk, WatchEvent};
use hookgate_core::hook::Source;
use hookgate_core::session::{Channel, Session};
use hookgate_core::set::HookSet;

fn faults(text: &str, source: Source) -> String {
    let read = define::read("h.json", text, source, &ActionKinds::standard());
    read.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn only_a_trusted_hook_with_a_pattern_on_a_stream_may_redact() {
    let check = |text: &str, source: Source, want: &str| {
        let faults = faults(text, source);
        assert!(if want.is_empty() { faults.is_empty() } else { faults.contains(want) }, "{faults}");
    };
    let good = r#"{"target":"stream","regex":"sk-[a-z]+","actions":[{"type":"redact","with":"[key]"}]}"#;
    check(good, Source::Operator, "");
    check(good, Source::Builtin, "");
    check(good, Source::User, "only hooks in the trusted folder");
    let bare = r#"{"target":"stream","actions":[{"type":"redact"}]}"#;
    check(bare, Source::Operator, "it needs `target` stream and a `regex`");
    let chat = r#"{"target":"chat","regex":"x","actions":[{"type":"redact"}]}"#;
    check(chat, Source::Operator, "it needs `target` stream and a `regex`");
    let ends = r#"{"target":"stream","regex":"x","maxTriggers":1,"actions":[{"type":"redact"}]}"#;
    check(ends, Source::Operator, "a hook that redacts would stop doing so");
}

/// What a reader gets.
fn read(hooks: &str, pieces: &[&str]) -> String {
    let read = define::read("h.json", hooks, Source::Operator, &ActionKinds::standard());
    assert!(read.problems.is_empty(), "{:?}", read.problems);
    let dispatcher = Dispatcher::new(HookSet::new(read.hooks).unwrap());
    let mut session = Session::new();
    let (mut whole, mut out, mut at) = (String::new(), String::new(), 0usize);
    let chunks = pieces.iter().map(|piece| Chunk::Content(piece)).chain([Chunk::Finish { reason: "stop" }]);
    let mut waiting = Vec::new();
    for chunk in chunks {
        whole.push_str(chunk.text().unwrap_or_default());
        dispatcher.tell(&mut session, &WatchEvent::Chunk(chunk), &mut Vec::new());
        waiting.extend(session.take_redactions(Channel::Content));
        let clear = (session.clear(Channel::Content) as usize).min(whole.len());
        while at < clear {
            match waiting.first() {
                Some(redaction) if (redaction.range.start as usize) < clear => {
                    assert!(redaction.range.start as usize >= at, "{redaction:?} was passed on");
                    assert!(redaction.range.end as usize <= clear, "{redaction:?} is clear only in part");
                    out.push_str(&whole[at..redaction.range.start as usize]);
                    out.push_str(&redaction.with);
                    at = redaction.range.end as usize;
                    waiting.remove(0);
                }
                _ => {
                    out.push_str(&whole[at..clear]);
                    at = clear;
                }
            }
        }
    }
    assert_eq!(at, whole.len());
    out
}

#[test]
fn the_longest_match_is_replaced_however_it_is_cut() {
    let check = |hooks: &str, text: &str, want: &str| {
        assert_eq!(read(hooks, &[text]), want);
        for (cut, _) in text.char_indices() {
            assert_eq!(read(hooks, &[&text[..cut], &text[cut..]]), want, "cut at {cut}");
        }
        let signs: Vec<&str> = text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]).collect();
        assert_eq!(read(hooks, &signs), want);
    };
    let key = r#"{"target":"stream","regex":"sk-[a-z]+","actions":[{"type":"redact","with":"[key]"}]}"#;
    check(
        key,
        "é sk-abc, sk-d and s sk- sk-é",
        "é [key], [key] and s sk- [key]é".replace("[key]é", "sk-é").as_str(),
    );
    check(key, "sk-abc", "[key]");
    let word = r#"{"target":"stream","regex":"\\brm\\b","actions":[{"type":"redact"}]}"#;
    check(word, "farm rm rms (rm)", "farm [redacted] rms ([redacted])");
    let end = r#"{"target":"stream","regex":"bye$","actions":[{"type":"redact","with":""}]}"#;
    check(end, "bye bye", "bye ");
    let two = r#"[{"label":"a","target":"stream","regex":"ab+","actions":[{"type":"redact","with":"<{{label}}>"}]},
        {"label":"b","target":"stream","regex":"bc","actions":[{"type":"redact","with":"<{{label}}>"}]}]"#;
    check(two, "xabbcx abc bc", "x<a>x <a> <b>");
}

#[test]
fn with_hooks_that_only_watch_nothing_waits() {
    let hooks = r#"[{"target":"stream","regex":"secret.*","actions":[{"type":"log"}]},
        {"target":"stream","regex":"x","actions":[{"type":"queue-resend"}]}]"#;
    let read = define::read("h.json", hooks, Source::User, &ActionKinds::standard());
    let dispatcher = Dispatcher::new(HookSet::new(read.hooks).unwrap());
    let mut session = Session::new();
    dispatcher.tell(&mut session, &WatchEvent::Chunk(Chunk::Content("a secret")), &mut Vec::new());
    assert_eq!(session.clear(Channel::Content), u64::MAX);
}
