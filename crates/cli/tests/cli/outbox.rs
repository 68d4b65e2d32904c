//! Watching hooks whose receiver is down, slow or gone, and processes that are killed meanwhile.

use crate::support::{Place, Ran};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const SCRIPT: &str = r#"{"turns": [{"text": "done"}]}"#;
/// Long enough for a machine that has much to do.
const LONG: Duration = Duration::from_secs(60);

fn place(port: u16) -> Place {
    let hook = serde_json::json!({
        "id": "notify", "event": "stop",
        "handler": { "type": "http", "url": format!("http://127.0.0.1:{port}/hook"), "allow_private": true }
    });
    Place::new().with("hooks/notify.json", &hook.to_string()).with("script.json", SCRIPT)
}

fn chat(place: &Place) -> Ran {
    place.chat(&["--hooks", "hooks", "--data-dir", "data", "go"])
}

fn outbox(place: &Place, args: &[&str]) -> Ran {
    place.run(&[&["outbox", "--data-dir", "data"], args].concat())
}

fn jobs(place: &Place, args: &[&str]) -> Vec<serde_json::Value> {
    let ran = outbox(place, &[&["list", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

fn rows(place: &Place) -> Vec<(String, String)> {
    let ran = place.run(&["audit", "--data-dir", "data", "list", "--json"]);
    let rows: Vec<serde_json::Value> = serde_json::from_str(&ran.stdout).unwrap();
    let text = |row: &serde_json::Value, name: &str| row[name].as_str().unwrap().to_owned();
    rows.iter().map(|row| (text(row, "event_id"), text(row, "decision"))).collect()
}

/// Takes one request and gives its message id; the connection stays open.
fn take(listener: &TcpListener) -> (TcpStream, String) {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut piece = [0; 4096];
    while !String::from_utf8_lossy(&request).contains("}") {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "the request broke off");
        request.extend_from_slice(&piece[..count]);
    }
    let text = String::from_utf8(request).unwrap();
    let id = text.lines().find_map(|line| line.strip_prefix("webhook-id: ")).unwrap().to_owned();
    (stream, id)
}

fn answer(mut stream: TcpStream) {
    stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").unwrap();
}

#[test]
fn what_was_under_way_when_the_process_was_killed_is_delivered_by_the_next() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = place(listener.local_addr().unwrap().port());
    let args = ["chat", "--script", "script.json", "--hooks", "hooks", "--data-dir", "data", "go"];
    let mut child = place.command(&args).spawn().unwrap();
    let (stream, first) = take(&listener);
    // SIGKILL: it can do nothing about it
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stream);
    assert!(rows(&place).is_empty(), "it is not known how it ended");
    let ids = Arc::new(Mutex::new(Vec::new()));
    let taken = Arc::clone(&ids);
    // it ends with the test's process
    std::thread::spawn(move || {
        loop {
            let (stream, id) = take(&listener);
            taken.lock().unwrap().push(id);
            answer(stream);
        }
    });
    // a run may be over before what the dead process had is found: then the next one delivers it
    let mut runs = 0;
    while !ids.lock().unwrap().contains(&first) {
        runs += 1;
        assert!(runs < 10, "the same message id, so that a receiver can drop a double: {first} {ids:?}");
        let ran = chat(&place);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    assert_eq!(jobs(&place, &[]).len(), 0);
    let done = jobs(&place, &["--state", "done"]);
    assert_eq!(done.len(), runs + 1);
    assert!(done.iter().any(|job| job["attempts"] == 2), "{done:?}");
    assert!(rows(&place).iter().all(|(_, decision)| decision == "allow"));
    assert_eq!(rows(&place).len(), runs + 1);
}

#[test]
fn a_receiver_that_was_down_gets_it_later() {
    // a port that nobody listens at
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let place = place(address.port());
    let ran = chat(&place);
    assert!(ran.stderr.contains("it is tried again later (postponed)"), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 run of a watching hook waits in the outbox"), "{}", ran.stderr);
    let waiting = jobs(&place, &[]);
    assert_eq!((waiting.len(), &waiting[0]["state"], &waiting[0]["attempts"]), (1, &"due".into(), &1.into()));
    assert!(waiting[0]["error"].as_str().unwrap().contains("connection refused"), "{waiting:?}");
    assert!(outbox(&place, &["list"]).stdout.contains("notify"), "a table for people");
    assert!(rows(&place).is_empty(), "a try that is repeated leaves no row");
    // another folder's hooks do not get it, though they have the same name
    let other = place.with(
        "elsewhere/notify.json",
        r#"{"id": "notify", "event": "stop", "handler": {"type": "command", "shell": "touch ran"}}"#,
    );
    let listener = TcpListener::bind(address).unwrap();
    let receiver = std::thread::spawn(move || answer(take(&listener).0));
    let began = Instant::now();
    while !jobs(&other, &[]).is_empty() {
        assert!(began.elapsed() < LONG);
        assert_eq!(outbox(&other, &["drain", "--hooks", "elsewhere", "--within", "5s"]).code, Some(0));
        let drained = outbox(&other, &["drain", "--hooks", "hooks", "--within", "20s"]);
        assert_eq!(drained.code, Some(0), "{}", drained.stderr);
    }
    receiver.join().unwrap();
    assert!(!other.path("elsewhere/ran").exists());
    assert_eq!(rows(&other).len(), 1);
    assert_eq!(outbox(&other, &["drain", "--hooks", "hooks"]).stdout, "nothing is left\n");
}

#[test]
fn what_cannot_be_done_is_a_dead_letter_that_can_be_sent_again() {
    let hook = |source: &str| {
        serde_json::json!({
            "id": "count", "event": "stop", "handler": { "type": "script", "source": source }
        })
        .to_string()
    };
    let broken = hook("function handle(e) { throw new Error('no such table'); }");
    let place = Place::new().with("hooks/count.json", &broken).with("script.json", SCRIPT);
    let ran = chat(&place);
    assert!(ran.stderr.contains("given up; the outbox keeps it (dead_letter)"), "{}", ran.stderr);
    let dead = jobs(&place, &["--state", "dead"]);
    assert_eq!((dead.len(), &dead[0]["hook"]), (1, &"count".into()));
    assert!(dead[0]["error"].as_str().unwrap().contains("no such table"), "{dead:?}");
    assert_eq!(rows(&place)[0].1, "error");
    outbox(&place, &["resend", "99"]).fails(2, "there is no dead letter 99");
    outbox(&place, &["resend"]).fails(2, "<ID>");
    let place = place.with("hooks/count.json", &hook("function handle(e) {}"));
    let id = dead[0]["id"].to_string();
    assert!(outbox(&place, &["resend", &id]).stdout.starts_with("1 dead letter is due again"));
    assert_eq!(outbox(&place, &["drain", "--hooks", "hooks"]).stdout, "nothing is left\n");
    assert_eq!(outbox(&place, &["resend", "--all", "--json"]).stdout, "{\"resent\":0}\n");
    assert_eq!(jobs(&place, &["--state", "done"]).len(), 1);
}

#[test]
fn where_there_is_no_outbox_that_is_said() {
    let place = Place::new();
    place.run(&["outbox", "list"]).fails(2, "which outbox?");
    place.run(&["outbox", "--data-dir", "nowhere", "list"]).fails(2, "there is no outbox in nowhere");
}
