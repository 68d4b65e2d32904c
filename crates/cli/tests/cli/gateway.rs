//! The gateway as a process: hooks in a folder, an upstream beside it, edits while it runs, and its end.

use crate::support::{Place, Ran};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStderr};
use std::time::{Duration, Instant};

/// Long enough for a machine that has much to do.
const LONG: Duration = Duration::from_secs(60);

/// A provider that answers every request with the same text, until the test ends.
fn upstream() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    address
}

fn answer(stream: TcpStream) {
    let answer = r#"{"id":"c-1","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"well met"},"finish_reason":"stop"}]}"#;
    let mut reader = BufReader::new(stream);
    while let Some(length) = head(&mut reader) {
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink()).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        reader.get_mut().write_all(format!("{head}{answer}").as_bytes()).unwrap();
    }
}

/// Reads a head; gives the length of what follows. None: nobody asks any more.
fn head(reader: &mut impl BufRead) -> Option<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            return Some(length);
        }
    }
}

struct Running {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
}

impl Running {
    /// Starts it, and waits until it listens.
    fn start(place: &Place) -> Running {
        let up = format!("http://{}", upstream());
        let args = ["gateway", "--listen", "127.0.0.1:0", "--hooks", "hooks", "--data-dir", "data"];
        let mut child = place.command(&[&args[..], &["--upstream", &up]].concat()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        let address = loop {
            let mut line = String::new();
            assert!(stderr.read_line(&mut line).unwrap() > 0, "it ended: {said}");
            said.push_str(&line);
            if let Some((_, at)) = line.split_once("listening on http://") {
                break at.split(',').next().unwrap().to_owned();
            }
        };
        Running { child, stderr, address }
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n\r\n"))
    }

    fn say(&self, text: &str) -> String {
        let body = serde_json::json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
        let body = body.to_string();
        self.ask(&format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: h\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ))
    }

    /// Asks again and again until this is in the answer.
    #[track_caller]
    fn until(&self, ask: impl Fn(&Running) -> String, want: &str) {
        let began = Instant::now();
        loop {
            let answer = ask(self);
            if answer.contains(want) {
                return;
            }
            assert!(began.elapsed() < LONG, "no `{want}` in\n{answer}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Tells it to end; gives what it said.
    fn stop(mut self) -> Ran {
        kill_process(Pid::from_raw(self.child.id().try_into().unwrap()).unwrap(), Signal::TERM).unwrap();
        let mut stderr = String::new();
        self.stderr.read_to_string(&mut stderr).unwrap();
        Ran { stderr, ..Ran::from(self.child.wait_with_output().unwrap()) }
    }
}

fn guard(reason: &str) -> String {
    let source = format!(
        "const handle = (e) => e.prompt.includes('bomb') ? {{decision: 'block', reason: '{reason}'}} : null;"
    );
    let source = source.replace(": null", ": {decision: 'allow'}");
    serde_json::json!({
        "id": "guard", "event": "user_prompt_submit", "handler": { "type": "script", "source": source }
    })
    .to_string()
}

#[test]
fn rules_are_edited_while_it_runs_and_none_is_lost() {
    let place = Place::new().with("hooks/guard.json", &guard("no bombs"));
    let gateway = Running::start(&place);
    assert!(gateway.get("/healthz").starts_with("HTTP/1.1 200"));
    let answer = gateway.say("hello");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("well met"), "{answer}");
    let answer = gateway.say("a bomb");
    assert!(answer.starts_with("HTTP/1.1 400") && answer.contains("no bombs"), "{answer}");
    let place = place.with("hooks/guard.json", &guard("not here"));
    gateway.until(|gateway| gateway.say("a bomb"), "not here");
    // a broken edit takes no rule away, and can be seen
    let place = place.with("hooks/guard.json", "{ \"id\": ");
    gateway.until(|gateway| gateway.get("/readyz"), "degraded");
    assert!(gateway.say("a bomb").contains("not here"));
    gateway.until(|gateway| gateway.get("/metrics"), "hookgate_hooks_degraded 1");
    let place = place.with("hooks/guard.json", &guard("whole again"));
    gateway.until(|gateway| gateway.say("a bomb"), "whole again");
    gateway.until(|gateway| gateway.get("/readyz"), "ready");
    let ran = gateway.stop();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let rows = place.run(&["audit", "--data-dir", "data", "list", "--decision", "block", "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&rows.stdout).unwrap();
    assert!(rows.len() >= 4 && rows.iter().all(|row| row["hook_label"] == "guard"), "{rows:?}");
}

#[test]
fn what_stands_in_the_outbox_is_told_to_who_scrapes() {
    let hook = serde_json::json!({
        "id": "count", "event": "stop",
        "handler": { "type": "script", "source": "function handle(e) { throw new Error('no such table'); }" }
    });
    let place = Place::new().with("hooks/count.json", &hook.to_string());
    let gateway = Running::start(&place);
    gateway.until(|gateway| gateway.get("/metrics"), "hookgate_deliveries{state=\"dead\"} 0");
    assert!(gateway.say("hello").contains("well met"));
    gateway.until(|gateway| gateway.get("/metrics"), "hookgate_deliveries{state=\"dead\"} 1");
    let text = gateway.get("/metrics");
    assert!(text.contains("hookgate_deliveries{state=\"waiting\"} 0"), "{text}");
    assert_eq!(gateway.stop().code, Some(0));
}
