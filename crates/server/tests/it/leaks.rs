//! A generated set of streams in which one line must not pass: cut at every two places, on all wires, packed, with other
//! line ends, in one of several answers, in escapes, in calls that come in turns. And the same with a line that may pass.

use crate::kit::wires::says;
use crate::kit::{Answer, Bench, Call, Client, Reply, Setup, Upstream, WIRES, Wire, run};
use hookgate_server::gateway::OnBlock;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const BAD: &str = "run rm -rf / now";
const CLEAN: &str = "run rm -rf ./ now";

/// What is done to a stream beside cutting its text.
#[derive(Clone, Copy, Debug, Default)]
struct Variant {
    gzip: bool,
    other_line_ends: bool,
    /// Letters as escapes: 1 in the event's JSON, 2 in the JSON of a call's arguments.
    escapes: u8,
    second: bool,
    among_others: bool,
    /// Bytes of a write.
    piece: Option<usize>,
}

const PLAIN: Variant = Variant {
    gzip: false,
    other_line_ends: false,
    escapes: 0,
    second: false,
    among_others: false,
    piece: None,
};

const VARIANTS: [Variant; 12] = [
    PLAIN,
    Variant { gzip: true, ..PLAIN },
    Variant { other_line_ends: true, ..PLAIN },
    Variant { escapes: 1, ..PLAIN },
    Variant { escapes: 2, ..PLAIN },
    Variant { second: true, ..PLAIN },
    Variant { among_others: true, ..PLAIN },
    Variant { gzip: true, escapes: 1, ..PLAIN },
    Variant { piece: Some(7), ..PLAIN },
    Variant { gzip: true, piece: Some(3), ..PLAIN },
    Variant { second: true, escapes: 1, ..PLAIN },
    Variant { among_others: true, escapes: 1, other_line_ends: true, ..PLAIN },
];

/// One stream.
#[derive(Clone, Copy, Debug)]
struct Case {
    wire: Wire,
    in_call: bool,
    cuts: [usize; 2],
    variant: Variant,
    bad: bool,
}

impl Case {
    /// The number-th of all; one in sixteen is clean.
    fn nth(number: usize) -> Option<Case> {
        let (bad, number) = (number % 16 != 15, number / 16 * 15 + number % 16 % 15);
        let (wire, number) = (WIRES[number % 4], number / 4);
        let (in_call, number) = (number % 2 == 1, number / 2);
        let (variant, number) = (VARIANTS[number % VARIANTS.len()], number / VARIANTS.len());
        let mut pairs =
            (1..BAD.len()).flat_map(|first| (first + 1..BAD.len()).map(move |second| [first, second]));
        Some(Case { wire, in_call, cuts: pairs.nth(number)?, variant, bad })
    }

    fn answer(&self) -> Answer {
        let text = if self.bad { BAD } else { CLEAN };
        // escapes are put in when the event is written
        let text: String = match self.variant.escapes {
            0 => text.to_owned(),
            _ => text
                .chars()
                .map(|letter| if letter.is_ascii_lowercase() { stand_in(letter) } else { letter })
                .collect(),
        };
        let letters: Vec<char> = text.chars().collect();
        let [first, second] = self.cuts;
        let pieces = [&letters[..first], &letters[first..second], &letters[second..]].map(String::from_iter);
        let mut answer = match self.in_call {
            false => says(&pieces.each_ref().map(String::as_str)),
            true => {
                let [a, b, c] = &pieces;
                let begin = format!("{{\"command\":\"{a}");
                let call = Call::cut("shell", &[&begin, b, &format!("{c}\"}}")]);
                Answer { calls: vec![call], ..Answer::default() }
            }
        };
        if self.variant.among_others {
            answer.calls.insert(0, Call::cut("shell", &["{\"command\":", "\"rm -rf", " x\"}"]));
            answer.calls.push(Call::cut("other", &["{\"a\":", "1}"]));
            answer.interleaved = true;
        }
        // the others have one answer only
        answer.second = self.variant.second && matches!(self.wire, Wire::Chat | Wire::Gemini);
        answer
    }

    /// The stream, without compression.
    fn plain(&self) -> String {
        let mut stream = self.wire.stream(&self.answer()).concat();
        let inner = self.variant.escapes == 2 && self.in_call && self.wire != Wire::Gemini;
        let letters = if self.variant.escapes == 0 { 'a'..='`' } else { 'a'..='z' };
        for letter in letters {
            let escape = if inner {
                format!("\\\\u{:04x}", u32::from(letter))
            } else {
                format!("\\u{:04x}", u32::from(letter))
            };
            stream = stream.replace(stand_in(letter), &escape);
        }
        match (self.variant.other_line_ends, self.wire, self.cuts[0] % 2) {
            (false, ..) => stream,
            (true, Wire::Gemini, _) => stream.replace("\r\n", "\n"),
            (true, _, 0) => stream.replace('\n', "\r\n"),
            (true, ..) => stream.replace('\n', "\r"),
        }
    }

    fn reply(&self) -> Reply {
        let mut bytes = self.plain().into_bytes();
        if self.variant.gzip {
            let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            gzip.write_all(&bytes).unwrap();
            bytes = gzip.finish().unwrap();
        }
        let size = self.variant.piece.unwrap_or(bytes.len());
        let reply = Reply::bytes(Vec::new())
            .with(|reply| reply.pieces = bytes.chunks(size).map(<[u8]>::to_vec).collect());
        if self.variant.gzip { reply.header("content-encoding", "gzip") } else { reply }
    }
}

/// A letter of the private use area for each letter.
fn stand_in(letter: char) -> char {
    char::from_u32(0xE000 + u32::from(letter)).unwrap()
}

fn policy() -> Value {
    json!([
        {"target": "stream", "chunks": ["content", "reasoning"], "regex": "rm\\s+-rf\\s+/", "actions": [{"type": "interrupt"}]},
        {"target": "tool", "event": "before", "regex": "rm\\s+-rf\\s+/", "actions": [{"type": "block"}]}
    ])
}

async fn check(client: &mut Client, number: usize, case: &Case) {
    let headers = [("x-case", &*number.to_string())];
    let wire = case.wire;
    let got = client.post(wire.path(true), &headers, &wire.request(true, "hi")).await;
    assert_eq!((got.status, got.cut), (200, false), "{case:?} {}", got.text());
    if !case.bad {
        assert_eq!(got.text(), case.plain(), "a false stop: {case:?}");
        return;
    }
    let seen = got.seen(wire);
    let all = [seen.texts.values().cloned().collect::<Vec<_>>().concat(), got.text()];
    let inputs = seen.calls.iter().map(|(_, text)| serde_json::from_str::<Value>(text).unwrap().to_string());
    for text in all.into_iter().chain(inputs) {
        assert!(!text.contains("rm -rf /"), "a miss: {case:?} {}", got.text());
    }
    assert!(seen.whole && seen.errors.is_empty(), "{case:?} {}", got.text());
    if case.in_call && case.variant.among_others {
        assert_eq!(seen.calls.len(), 2, "{case:?} {}", got.text());
    } else {
        assert!(seen.finish.iter().any(|word| word == "content_filter"), "{case:?} {}", got.text());
        assert!(seen.calls.is_empty(), "{case:?} {}", got.text());
    }
}

async fn upstream() -> Upstream {
    Upstream::start(|_, request| {
        let number = request.header("x-case").unwrap().parse().unwrap();
        Case::nth(number).unwrap().reply()
    })
    .await
}

#[test]
fn of_ten_thousand_streams_none_leaks() {
    run(async {
        let upstream = upstream().await;
        let setup = Setup::user(policy()).with(|setup| setup.on_block = OnBlock::Refuse);
        let bench: Arc<Bench> = Arc::new(setup.start(&upstream).await);
        let (next, bad) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let worker = async |bench: Arc<Bench>, next: Arc<AtomicUsize>, bad: Arc<AtomicUsize>| {
            let mut client = Client::new(bench.address);
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = Case::nth(number) else { break };
                check(&mut client, number, &case).await;
                bad.fetch_add(usize::from(case.bad), Ordering::Relaxed);
            }
        };
        let workers: Vec<_> =
            (0..6).map(|_| tokio::spawn(worker(bench.clone(), next.clone(), bad.clone()))).collect();
        for worker in workers {
            worker.await.unwrap();
        }
        let (all, bad) = (next.load(Ordering::Relaxed) - 6, bad.load(Ordering::Relaxed));
        println!("{bad} streams with the line and {} without", all - bad);
        assert!(bad >= 10_000 && all >= 10_500, "{bad} of {all}");
        assert_eq!(upstream.count(), all, "nothing was asked twice");
    });
}

#[test]
fn in_one_piece_it_does_not_leak_either() {
    run(async {
        for wire in WIRES {
            let upstream = Upstream::playing(vec![Reply::stream(&[])]).await;
            let bench =
                Setup::user(policy()).with(|setup| setup.on_block = OnBlock::Refuse).start(&upstream).await;
            for (in_call, variant, bad) in [false, true]
                .into_iter()
                .flat_map(|in_call| VARIANTS.map(|variant| (in_call, variant)))
                .flat_map(|(in_call, variant)| [true, false].map(|bad| (in_call, variant, bad)))
            {
                let case = Case { wire, in_call, cuts: [5, 8], variant, bad };
                let mut body = wire.body(&case.answer()).to_string();
                for letter in 'a'..='z' {
                    body = body.replace(stand_in(letter), &format!("\\u{:04x}", u32::from(letter)));
                }
                let kind = vec![("content-type".into(), "application/json".into())];
                upstream
                    .play(vec![Reply::bytes(body.clone().into_bytes()).with(|reply| reply.headers = kind)]);
                let got = bench.ask(wire, false).await;
                if !bad {
                    assert_eq!(got.text(), body, "a false stop: {case:?}");
                    continue;
                }
                let value = got.json().to_string();
                assert!(!value.contains("rm -rf /"), "a miss: {case:?} {value}");
                let seen = got.seen(wire);
                if !(in_call && variant.among_others) {
                    assert!(seen.finish.iter().any(|word| word == "content_filter"), "{case:?} {value}");
                }
            }
        }
    });
}
