//! Numbers that 64 bits do not hold pass unchanged beside what a hook changes, on all wires.

use crate::kit::client::post;
use crate::kit::wires::says;
use crate::kit::{Answer, Call, Client, Reply, Setup, Upstream, WIRES, Wire, run};
use serde_json::json;

const ODD: &str = "[12345678901234567890123,1e400,0.10000000000000000555,9007199254740993,1.0]";
/// Stands where `ODD` is to be until the text is made.
const MARK: &str = "424242";
const MAIL: &str = "joe@example.com";

/// The text of an answer as the provider sends it.
fn sent(wire: Wire, stream: bool, answer: &Answer) -> String {
    let text = if stream { wire.stream(answer).concat() } else { wire.body(answer).to_string() };
    text.replace("\"x_odd\":7", &format!("\"x_odd\":{MARK}")).replace(MARK, ODD)
}

fn reply(stream: bool, text: &str) -> Reply {
    let kind = if stream { "text/event-stream" } else { "application/json" };
    Reply::bytes(text.as_bytes().to_vec())
        .with(|reply| reply.headers = vec![("content-type".into(), kind.into())])
}

#[test]
fn a_request_that_a_hook_changes_keeps_them() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::json(&wire.body(&says(&["ok"])))]).await;
            let bench = Setup::builtin("pii_prompt", json!({})).start(&upstream).await;
            let mut request = wire.with_result(false, "done", false);
            request["seed"] = MARK.parse::<u64>().unwrap().into();
            let body = request.to_string();
            let body = body.replace("do it", MAIL).replace("\\\"ls\\\"", MARK).replace("\"ls\"", MARK);
            assert!(body.matches(MARK).count() == 2, "{body}");
            let body = body.replace(MARK, ODD);
            let got = Client::new(bench.address).raw(&post(wire.path(false), &[], body.as_bytes())).await;
            assert_eq!(got.status, 200, "{wire:?} {}", got.text());
            let came = String::from_utf8(upstream.last().body).unwrap();
            let (before, after) = body.split_once(MAIL).unwrap();
            let changed = came.strip_prefix(before).and_then(|came| came.strip_suffix(after));
            assert!(
                changed.is_some_and(|text| text.starts_with("[redacted") && !text.contains('"')),
                "{wire:?}: all but the address is as it was: {came}"
            );
        }
    });
}

#[test]
fn an_answer_that_a_hook_changes_keeps_them() {
    run(async {
        let redact = json!([{"target": "stream", "chunks": ["content"], "regex": "[a-z]+@example.com",
            "actions": [{"type": "redact", "with": "<mail>"}]}]);
        let call = Call::new("mail", &format!("{{\"to\":\"{MAIL}\",\"n\":{MARK},\"m\":{{\"k\":{MARK}}}}}"));
        let asks = says(&["a word"]).and(call);
        let speaks = says(&["to ", MAIL, " now"]);
        for (setup, answer) in
            [(Setup::trusted(redact).hooks, speaks), (Setup::builtin("pii_tools", json!({})).hooks, asks)]
        {
            for wire in WIRES {
                for stream in [true, false] {
                    let text = sent(wire, stream, &answer);
                    let n = text.matches(ODD).count();
                    // the events of a text alone have no number to keep there
                    let has_none = wire == Wire::Messages && stream && answer.calls.is_empty();
                    assert_eq!(n == 0, has_none, "{text}");
                    let upstream = Upstream::playing(vec![reply(stream, &text)]).await;
                    let bench =
                        Setup::default().with(|bench| bench.hooks = setup.clone()).start(&upstream).await;
                    let got = bench.ask(wire, stream).await;
                    let got = got.text();
                    assert!(!got.contains(MAIL) && got.contains("mail"), "{wire:?} {stream} {got}");
                    assert_eq!(got.matches(ODD).count(), n, "{wire:?} {stream}\n{text}\n{got}");
                }
            }
        }
    });
}
