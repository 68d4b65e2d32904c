//! The handler against servers on loopback that are slow, dead, lying or worse.

use super::*;
use crate::address::Lookup;
use hookgate_core::facts::{Facts, GateEvent, Head, LifeEvent, ShapeEvent};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// How a server behaves after the whole request has come.
#[derive(Clone)]
enum Reply {
    /// These bytes, then the next request of the same connection.
    Keep(String),
    /// These bytes, then the end.
    End(String),
    /// One byte now and then.
    Drip(String),
    /// These bytes, then zeros without end.
    Flood(String),
    /// Nothing.
    Silence,
}

struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
    connections: Arc<Mutex<usize>>,
}

impl Server {
    /// Plays the replies in turn; the last repeats.
    async fn new(replies: Vec<Reply>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            port: listener.local_addr().unwrap().port(),
            requests: Arc::default(),
            connections: Arc::default(),
        };
        let (requests, connections) = (server.requests.clone(), server.connections.clone());
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                *connections.lock().unwrap() += 1;
                tokio::spawn(serve(socket, replies.clone(), requests.clone()));
            }
        });
        server
    }

    async fn one(reply: Reply) -> Server {
        Server::new(vec![reply]).await
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(mut socket: TcpStream, replies: Vec<Reply>, requests: Arc<Mutex<Vec<String>>>) {
    while let Some(request) = read_request(&mut socket).await {
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        match replies.get(number).or(replies.last()).unwrap() {
            Reply::Keep(text) => socket.write_all(text.as_bytes()).await.unwrap(),
            Reply::End(text) => {
                let _ = socket.write_all(text.as_bytes()).await;
                return;
            }
            Reply::Drip(text) => {
                for byte in text.bytes() {
                    if socket.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
            Reply::Flood(text) => {
                let _ = socket.write_all(text.as_bytes()).await;
                while socket.write_all(&[b'0'; 4096]).await.is_ok() {}
                return;
            }
            Reply::Silence => tokio::time::sleep(Duration::from_secs(60)).await,
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<String> {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return Some(text);
            }
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}

fn http(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

fn ok(body: &str) -> Reply {
    Reply::Keep(http("200 OK", "content-type: application/json\r\n", body))
}

/// Answers of a resolver in turn; the last repeats.
#[derive(Debug)]
struct Names(Mutex<Vec<IpAddr>>, Mutex<usize>);

impl Names {
    fn new(addresses: &[&str]) -> Arc<Names> {
        Arc::new(Names(Mutex::new(addresses.iter().map(|a| a.parse().unwrap()).collect()), Mutex::new(0)))
    }
}

impl Lookup for Names {
    fn lookup<'a>(&'a self, _: &'a str) -> BoxFuture<'a, std::io::Result<Vec<IpAddr>>> {
        *self.1.lock().unwrap() += 1;
        let mut left = self.0.lock().unwrap();
        let address = if left.len() > 1 { left.remove(0) } else { left[0] };
        Box::pin(std::future::ready(Ok(vec![address])))
    }
}

#[derive(Clone, Copy)]
enum At {
    Gate,
    Shape,
    Watch,
}

fn facts(at: At, event_id: &str) -> Facts {
    let head = Head { event_id: event_id.into(), session_id: "s-1".into(), ..Head::default() };
    let (tool_name, tool_input) = ("exec".to_owned(), json!({"command": "ls"}));
    match at {
        At::Gate => Facts::of_gate(&head, GateEvent::PreToolUse { tool_name, tool_input }),
        At::Shape => Facts::of_shape(&head, ShapeEvent::PreResponse { response: "x".into() }),
        At::Watch => {
            Facts::of_life(&head, LifeEvent::PostToolUse { tool_name, tool_input, tool_output: json!("a") })
        }
    }
}

fn handler(url: &str, allow_private: bool) -> HttpHandler {
    let secret = Some(Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap());
    let headers = BTreeMap::from([("x-team".to_owned(), "blue".to_owned())]);
    HttpHandler::new(&Network::new().unwrap(), url, &headers, secret, allow_private).unwrap()
}

async fn ask(handler: &dyn Handler, at: At, within_ms: u64) -> Result<Answer, Fault> {
    let facts = facts(at, "e-1");
    let (json, hook, within) = (facts.to_json(), Arc::from("h"), Duration::from_millis(within_ms));
    let call = Call { facts: &facts, json: &json, within, hook: &hook };
    tokio::time::timeout(within, handler.ask(call)).await.unwrap_or(Err(Fault::Timeout))
}

async fn asked(reply: Reply, at: At) -> Result<Answer, Fault> {
    let server = Server::one(reply).await;
    ask(&handler(&format!("http://127.0.0.1:{}/check", server.port), true), at, 2000).await
}

#[track_caller]
fn fails(result: Result<Answer, Fault>, words: &str) {
    let error = result.unwrap_err().to_string();
    assert!(error.contains(words), "{error:?} lacks {words:?}");
}

#[tokio::test]
async fn a_verdict_is_2xx_with_an_object() {
    let answer = asked(ok(r#"{"decision":"block","reason":"no"}"#), At::Gate).await.unwrap();
    assert_eq!((answer.decision.as_deref(), answer.reason.as_deref()), (Some("block"), Some("no")));
    let html = http("200 OK", "content-type: text/html\r\n", "<html>Please sign in</html>");
    let bomb = http("200 OK", "content-encoding: gzip\r\n", "\x1f\u{8b}");
    for (reply, words) in [
        (Reply::Keep(html), "web page"),
        (Reply::Keep(http("204 No Content", "", "")), "nothing is no verdict"),
        (ok(""), "nothing is no verdict"),
        (ok("[]"), "is no JSON object"),
        (ok("allow"), "is no JSON object"),
        (ok(r#"{"decision":"allow"}{"decision":"allow"}"#), "is no JSON object"),
        (Reply::Keep(http("500 Internal Server Error", "", "x")), "it answered 500"),
        (Reply::Keep(http("401 Unauthorized", "", r#"{"decision":"allow"}"#)), "it answered 401"),
        (Reply::Keep(bomb), "compressed (gzip)"),
        (ok(&format!(r#"{{"decision":"allow","x":"{}"}}"#, "x".repeat(70_000))), "longer than 64 KiB"),
        (Reply::Flood("HTTP/1.1 200 OK\r\n\r\n".into()), "longer than 64 KiB"),
        (Reply::Flood("HTTP/1.1 200 OK\r\nx: ".into()), ""),
        (Reply::End("HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{\"decision\":".into()), "broke off"),
        (Reply::End(String::new()), ""),
        (Reply::End("SSH-2.0-OpenSSH\r\n".into()), ""),
    ] {
        fails(asked(reply, At::Gate).await, words);
    }
    assert_eq!(asked(ok(r#"{"decision":"perhaps"}"#), At::Gate).await.unwrap().decision.unwrap(), "perhaps");
    assert_eq!(asked(ok(r#"{"append":"x"}"#), At::Shape).await.unwrap().additions.len(), 1);
    assert!(asked(Reply::Keep(http("204 No Content", "", "")), At::Shape).await.is_ok());
    assert!(asked(ok("ok"), At::Watch).await.is_ok());
}

#[tokio::test]
async fn the_limit_is_for_everything_together() {
    for reply in [Reply::Silence, Reply::Drip(http("200 OK", "", r#"{"decision":"allow"}"#))] {
        let server = Server::one(reply).await;
        let began = Instant::now();
        let result = ask(&handler(&format!("http://127.0.0.1:{}/", server.port), true), At::Gate, 400).await;
        assert_eq!(result, Err(Fault::Timeout));
        assert!(began.elapsed() < Duration::from_millis(500 * 2), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn nobody_listening_is_known_at_once() {
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let began = Instant::now();
    fails(ask(&handler(&format!("http://127.0.0.1:{port}/s3cret"), true), At::Gate, 10_000).await, "refused");
    assert!(began.elapsed() < Duration::from_secs(1));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Server::one(ok(r#"{"decision":"allow"}"#)).await;
    for place in ["http://169.254.169.254/latest/".to_owned(), format!("http://127.0.0.1:{}/", other.port)] {
        let reply = Reply::Keep(http("302 Found", &format!("location: {place}\r\n"), ""));
        fails(asked(reply, At::Gate).await, "redirects are not followed");
    }
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn requests_are_signed_and_connections_kept() {
    let server = Server::one(ok(r#"{"decision":"allow"}"#)).await;
    let handler = handler(&format!("http://127.0.0.1:{}/check?x=1", server.port), true);
    for _ in 0..3 {
        ask(&handler, At::Gate, 2000).await.unwrap();
    }
    assert_eq!(*server.connections.lock().unwrap(), 1);
    let request = server.requests().remove(0);
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /check?x=1 HTTP/1.1\r\n"), "{head}");
    let header =
        |name: &str| head.lines().find_map(|line| line.strip_prefix(&format!("{name}: "))).unwrap_or("");
    assert_eq!((header("webhook-id"), header("x-team")), ("e-1:h", "blue"));
    assert_eq!((header("content-type"), header("accept-encoding")), ("application/json", ""));
    let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let timestamp = header("webhook-timestamp").parse().unwrap();
    assert_eq!(header("webhook-signature"), secret.sign("e-1:h", timestamp, body.as_bytes()));
    assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["toolInput"].is_object());
}

#[tokio::test]
async fn a_server_that_asks_for_time_is_asked_once_more_if_the_time_is_there() {
    let later =
        |after: &str| Reply::Keep(http("429 Too Many Requests", &format!("retry-after: {after}\r\n"), ""));
    let yes = ok(r#"{"decision":"allow"}"#);
    for (replies, tries, works) in [
        (vec![later("0.2"), yes.clone()], 2, true),
        (vec![later("0.2"), later("0.2"), yes.clone()], 2, false),
        (vec![later("600"), yes.clone()], 1, false),
        (vec![Reply::Keep(http("503 Service Unavailable", "", "")), yes.clone()], 1, false),
    ] {
        let server = Server::new(replies).await;
        let handler = handler(&format!("http://127.0.0.1:{}/", server.port), true);
        assert_eq!(ask(&handler, At::Gate, 1500).await.is_ok(), works);
        assert_eq!(server.requests().len(), tries);
        let id = |request: &String| request.lines().find(|l| l.starts_with("webhook-id")).map(str::to_owned);
        assert!(server.requests().iter().all(|request| id(request) == id(&server.requests()[0])));
    }
}

#[tokio::test]
async fn watched_events_are_told_again_within_bounds() {
    let sick = Reply::Keep(http("503 Service Unavailable", "", ""));
    let server = Server::new(vec![sick.clone(), sick.clone(), ok("ok")]).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    ask(&handler(&url, true), At::Watch, 10_000).await.unwrap();
    assert_eq!(server.requests().len(), 3);
    let server = Server::one(sick).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    fails(ask(&handler(&url, true), At::Watch, 10_000).await, "asked 3 times");
}

#[tokio::test]
async fn a_failing_notifier_does_not_multiply_requests() {
    let storm = Reply::Keep(http("429 Too Many Requests", "retry-after: 600\r\n", ""));
    let server = Server::one(storm).await;
    let url = format!("http://127.0.0.1:{}/", server.port);
    let guarded = Guarded::new(Arc::new(handler(&url, true)), BreakerLimits::default());
    for _ in 0..50 {
        ask(&guarded, At::Watch, 2000).await.unwrap_err();
    }
    assert_eq!(server.requests().len(), 5);
}

#[tokio::test]
async fn private_addresses_need_leave_and_metadata_never_has_it() {
    let refused = |url: &str, private| {
        HttpHandler::new(&Network::new().unwrap(), url, &BTreeMap::new(), None, private).unwrap_err()
    };
    for url in [
        "http://127.0.0.1/",
        "http://0x7f.1/",
        "http://[::1]/",
        "http://10.0.0.1/",
        "http://[64:ff9b::7f00:1]/",
    ] {
        assert!(refused(url, false).contains("not allowed"), "{url}");
        HttpHandler::new(&Network::new().unwrap(), url, &BTreeMap::new(), None, true).unwrap();
    }
    for url in
        ["http://169.254.169.254/x", "http://2852039166/", "http://[::ffff:a9fe:a9fe]/", "http://[fe80::1]/"]
    {
        assert!(refused(url, true).contains("not allowed"), "{url}");
    }
    assert!(refused("file:///etc/passwd", true).contains("only http: and https:"));
    assert!(refused("http://user:pw@policy.example@169.254.169.254/", true).contains("password"));
    assert!(refused("policy.example/check", true).contains("no URL"));
}

#[tokio::test]
async fn a_name_that_changes_its_mind_is_checked_each_time() {
    let server = Server::one(ok(r#"{"decision":"allow"}"#)).await;
    let url = format!("http://hooks.test:{}/", server.port);
    let names = Names::new(&["93.184.215.14", "127.0.0.1"]);
    check_url(&url, false, &*names).await.unwrap();
    let network = Network::with_lookup(names.clone()).unwrap();
    let bound = HttpHandler::new(&network, &url, &BTreeMap::new(), None, false).unwrap();
    fails(ask(&bound, At::Gate, 2000).await, "a loopback address");
    assert!(server.requests().is_empty() && *server.connections.lock().unwrap() == 0);
    let names = Names::new(&["127.0.0.1", "169.254.169.254"]);
    let network = Network::with_lookup(names.clone()).unwrap();
    let bound = HttpHandler::new(&network, &url, &BTreeMap::new(), None, true).unwrap();
    ask(&bound, At::Gate, 2000).await.unwrap();
    assert_eq!(*names.1.lock().unwrap(), 1, "what was checked is what was connected to");
    assert!(check_url(&url, true, &*names).await.unwrap_err().contains("metadata"));
}

#[test]
fn headers_and_secrets_are_checked_when_they_are_read() {
    let headers =
        |name: &str, value: &str| read_headers(&BTreeMap::from([(name.to_owned(), value.to_owned())]));
    assert!(headers("Webhook-Id", "x").unwrap_err().contains("set by Hookgate"));
    assert!(headers("a b", "x").unwrap_err().contains("no header name"));
    assert!(headers("a", "x\r\ny: z").unwrap_err().contains("no header can have"));
    assert!(format!("{:?}", headers("authorization", "Bearer x").unwrap()).contains("Sensitive"));
    assert!(secret("X", None).unwrap_err().contains("`X` is not set"));
}
