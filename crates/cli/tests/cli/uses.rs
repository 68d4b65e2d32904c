//! The three real uses of the second text, run end to end from their folders in `examples/`.

use crate::support::{Place, Ran};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A place with a copy of an example.
fn example(name: &str) -> Place {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name).join(".");
    let place = Place::new();
    let copied = std::process::Command::new("cp").arg("-r").arg(from).arg(place.dir()).status().unwrap();
    assert!(copied.success());
    place
}

/// One request that reached the receiver.
struct Posted {
    head: String,
    body: String,
}

/// Plays a chat's incoming webhook: wants `{"text": "…"}` and answers `ok`, as plain text. The first `n_down` requests
/// get a 503.
fn webhook(mut n_down: usize, slow: Duration) -> (String, Receiver<Posted>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/services/T/B/secret", listener.local_addr().unwrap());
    let (send, posted) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request = read(&mut stream);
            std::thread::sleep(slow);
            let good = serde_json::from_str::<serde_json::Value>(&request.body)
                .is_ok_and(|body| body["text"].as_str().is_some_and(|text| !text.is_empty()));
            let answer = match (n_down, good) {
                (0, true) => "HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
                (0, false) => {
                    "HTTP/1.1 400 Bad Request\r\ncontent-length: 7\r\nconnection: close\r\n\r\nno_text"
                }
                _ => "HTTP/1.1 503 Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            };
            n_down = n_down.saturating_sub(1);
            stream.write_all(answer.as_bytes()).unwrap();
            if send.send(request).is_err() {
                return;
            }
        }
    });
    (address, posted)
}

fn read(stream: &mut TcpStream) -> Posted {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "the head ends early: {head}");
    }
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap()];
    reader.read_exact(&mut body).unwrap();
    Posted { head, body: String::from_utf8(body).unwrap() }
}

fn order(place: Place, webhook: &str) -> Ran {
    // the receiver is on loopback, which a hook must allow: the only thing changed in the example
    let file = place.path("hooks/orders.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let allowed = text.replace("\"type\": \"http\",", "\"type\": \"http\", \"allow_private\": true,");
    assert_ne!(text, allowed);
    std::fs::write(&file, allowed).unwrap();
    let place = place.env("SLACK_WEBHOOK_URL", webhook);
    place.chat(&["--hooks", "hooks", "--tools", "exec", "--agent", "shop", "Three packets of tea, please"])
}

const ORDERED: &str = "Done. {\"exit_code\":0,\"stdout\":\"3 x tea ordered, number 4711\\n\"}\n";
const RAN: &str = "tool exec {\"command\":\"./order.sh tea 3\"}\n";
const TOLD: &str = r#"{"text":"New order (shop): 3 x tea ordered, number 4711\n"}"#;

#[test]
fn an_order_is_told_to_the_team() {
    let (address, posted) = webhook(0, Duration::ZERO);
    order(example("order-notification"), &address).is(0, ORDERED, RAN);
    let Posted { head, body } = posted.recv_timeout(Duration::from_secs(5)).unwrap();
    assert_eq!(body, TOLD);
    assert!(head.starts_with("POST /services/T/B/secret HTTP/1.1\r\n"), "{head}");
    assert!(posted.try_recv().is_err(), "told once");
}

#[test]
fn a_receiver_that_is_down_for_a_moment_is_told_later() {
    let (address, posted) = webhook(1, Duration::ZERO);
    order(example("order-notification"), &address).is(0, ORDERED, RAN);
    let tries: Vec<Posted> = posted.try_iter().collect();
    assert_eq!(tries.len(), 2);
    assert!(tries.iter().all(|posted| posted.body == TOLD));
    let id = |posted: &Posted| {
        let line = posted.head.lines().find(|line| line.to_lowercase().starts_with("webhook-id:")).unwrap();
        line.to_owned()
    };
    assert_eq!(id(&tries[0]), id(&tries[1]), "a receiver can drop a double by its id");
}

#[test]
fn the_answer_does_not_wait_for_the_receiver() {
    let (address, posted) = webhook(0, Duration::from_millis(1500));
    let place = example("order-notification").env("SLACK_WEBHOOK_URL", &address);
    let file = place.path("hooks/orders.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(
        &file,
        text.replace("\"type\": \"http\",", "\"type\": \"http\", \"allow_private\": true,"),
    )
    .unwrap();
    let args = ["chat", "--script", "script.json", "--hooks", "hooks", "--tools", "exec", "Tea"];
    let began = Instant::now();
    let mut child = place.command(&args).spawn().unwrap();
    let mut answer = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut answer).unwrap();
    let answered = began.elapsed();
    assert!(child.wait().unwrap().success());
    assert!(answer.starts_with("Done."), "{answer}");
    assert!(answered < Duration::from_millis(1400), "{answered:?}");
    assert!(
        began.elapsed() >= Duration::from_millis(1500),
        "but the program ends only when the team was told"
    );
    assert_eq!(posted.try_iter().count(), 1);
}

#[test]
fn the_policy_text_is_there_a_hundred_times_of_a_hundred() {
    let place = example("policy-text")
        .with("plain.json", r#"{"turns":[{"text":"{prompt}"}]}"#)
        .with("tools.json", r#"{"turns":[{"tool_calls":[{"tool":"exec","args":{"command":"echo hi"}}]},{"text":"It says hi."}]}"#)
        .with("long.json", &serde_json::json!({"turns": [{"text": "word ".repeat(5000)}]}).to_string())
        .with("lines.json", r#"{"turns":[{"text":"Grüße\n\n- a\n- b\n"}]}"#);
    let scripts = ["script.json", "plain.json", "tools.json", "long.json", "lines.json"];
    let missing: usize = std::thread::scope(|scope| {
        let halves: Vec<_> = [0, 1]
            .map(|half| {
                let place = &place;
                scope.spawn(move || {
                    (0..50)
                        .filter(|n| !carries_the_text(place, scripts[(n * 2 + half) % scripts.len()]))
                        .count()
                })
            })
            .into_iter()
            .collect();
        halves.into_iter().map(|half| half.join().unwrap()).sum()
    });
    assert_eq!(missing, 0, "of 100 answers");
}

fn carries_the_text(place: &Place, script: &str) -> bool {
    let ran =
        place.run(&["chat", "--script", script, "--hooks", "hooks", "--tools", "exec", "May I cancel?"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout.ends_with("\n-- This answer is no legal advice.\n")
}

#[test]
fn an_answer_without_its_policy_text_is_not_delivered() {
    let place = example("policy-text");
    let file = place.path("hooks/policy-text.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("\"mode\":", "\"on_timeout\": \"block\", \"mode\":")).unwrap();
    std::fs::remove_file(place.path("hooks/notice.txt")).unwrap();
    let ran = place.chat(&["--hooks", "hooks", "--json", "May I cancel?"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.lines().iter().any(|line| line["type"] == "blocked"), "{}", ran.stdout);
}
