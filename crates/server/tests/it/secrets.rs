//! Every text of the corpus of credentials, cut at several places, through the real gateway: nothing of a find reaches
//! the client, and what is no find is not touched.

use crate::kit::wires::says;
use crate::kit::{Client, Reply, Setup, Upstream, WIRES, run};
use serde_json::{Value, json};

fn corpus() -> Vec<Value> {
    let text = include_str!("../../../../corpus/corpora/secrets.jsonl");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn chunks(text: &Value) -> Vec<String> {
    text["chunks"].as_array().unwrap().iter().map(|chunk| chunk.as_str().unwrap().to_owned()).collect()
}

#[test]
fn no_credential_of_the_corpus_reaches_the_client() {
    run(async {
        let mut found = 0;
        let mut benches = Vec::new();
        for (name, kinds) in
            [("secret", json!(["secret"])), ("pii", json!(["pii"])), ("", json!(["secret", "pii"]))]
        {
            let upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            let bench = Setup::builtin("secrets_stream", json!({"redact": true, "kinds": kinds}))
                .start(&upstream)
                .await;
            benches.push((name, (upstream, bench)));
        }
        for (number, text) in corpus().iter().enumerate() {
            let wire = WIRES[number % WIRES.len()];
            let whole = chunks(text).concat();
            let letters: Vec<usize> = whole.char_indices().map(|(at, _)| at).collect();
            let at = |part: usize| letters[letters.len() * part / 4];
            let cut = |places: [usize; 2]| {
                vec![&whole[..places[0]], &whole[places[0]..places[1]], &whole[places[1]..]]
            };
            let own = chunks(text);
            let mut plays = vec![own.iter().map(String::as_str).collect::<Vec<_>>()];
            plays.extend([[1, 2], [2, 3], [1, 3]].map(|[a, b]| cut([at(a), at(b)])));
            // what has several kinds in it must be read for all
            let kind = text["kind"].as_str().filter(|_| text["positive"] == false).unwrap_or_default();
            let (upstream, bench) = &benches.iter().find(|(name, _)| *name == kind).unwrap().1;
            let mut client = Client::new(bench.address);
            let mut first = None;
            for pieces in plays {
                let pieces: Vec<&str> = pieces.into_iter().filter(|piece| !piece.is_empty()).collect();
                upstream.play(vec![Reply::stream(&wire.stream(&says(&pieces)))]);
                let got = client.post(wire.path(true), &[], &wire.request(true, "hi")).await;
                let seen = got.seen(wire);
                assert!(seen.whole && seen.errors.is_empty(), "{} {seen:?}", text["id"]);
                let first = first.get_or_insert_with(|| seen.text().to_owned());
                assert_eq!(seen.text(), first, "the verdict does not depend on the cut: {}", text["id"]);
                if text["gray"] == true {
                    continue;
                }
                for span in text["spans"].as_array().unwrap() {
                    let secret: String = whole
                        .chars()
                        .skip(span[0].as_u64().unwrap() as usize)
                        .take((span[1].as_u64().unwrap() - span[0].as_u64().unwrap()) as usize)
                        .collect();
                    assert!(!seen.text().contains(&secret), "{}: {}", text["id"], seen.text());
                    found += 1;
                }
                if text["positive"] == false {
                    assert_eq!(seen.text(), whole, "{}", text["id"]);
                }
            }
        }
        assert!(found > 300, "{found}");
    });
}
