//! The client over loopback, against a server that writes exactly the bytes of each case.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use hookgate_llm::{
    Answer, Client, ClientBuilder, Delta, Error, Fault, Limit, Message, Model, Provider, Request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// For limits that are to pass; and for limits that must not, however busy the machine is.
const SHORT: Duration = Duration::from_millis(150);
const LONG: Duration = Duration::from_secs(20);

/// What the server does with a request.
#[derive(Clone)]
enum Step {
    Write(Vec<u8>),
    /// One write a byte, with a pause after each.
    Drip(Vec<u8>, Duration),
    Wait(Duration),
    /// Waits until the client hangs up, and says so on the server's channel.
    UntilGone,
}

struct Server {
    base: String,
    n_requests: Arc<AtomicUsize>,
    seen: mpsc::UnboundedReceiver<String>,
}

/// A server that answers its nth connection with the nth answer; the last one repeats.
async fn server(answers: Vec<Vec<Step>>) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let n_requests = Arc::new(AtomicUsize::new(0));
    let (tell, seen) = mpsc::unbounded_channel();
    let counter = n_requests.clone();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            let n = counter.fetch_add(1, Ordering::SeqCst).min(answers.len() - 1);
            tokio::spawn(serve(socket, answers[n].clone(), tell.clone()));
        }
    });
    Server { base, n_requests, seen }
}

async fn serve(mut socket: TcpStream, steps: Vec<Step>, tell: mpsc::UnboundedSender<String>) {
    socket.set_nodelay(true).unwrap();
    let _ = tell.send(request(&mut socket).await);
    for step in steps {
        match step {
            Step::Write(bytes) => {
                if socket.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            Step::Drip(bytes, pause) => {
                for byte in bytes {
                    if socket.write_all(&[byte]).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                }
            }
            Step::Wait(pause) => tokio::time::sleep(pause).await,
            Step::UntilGone => {
                let _ = socket.read(&mut [0; 64]).await;
                let _ = tell.send("gone".into());
            }
        }
    }
}

/// The request's head and body.
async fn request(socket: &mut TcpStream) -> String {
    let mut all = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let n = socket.read(&mut buffer).await.unwrap_or(0);
        all.extend_from_slice(&buffer[..n]);
        let text = String::from_utf8_lossy(&all).to_string();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
        if n == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn head(status: &str, more: &str) -> String {
    format!("HTTP/1.1 {status}\r\nconnection: close\r\n{more}\r\n")
}

fn answer(status: &str, more: &str, body: &str) -> Vec<Step> {
    vec![Step::Write((head(status, more) + body).into_bytes())]
}

fn chunk(text: &str) -> String {
    format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n")
}

const END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";

fn hello() -> String {
    chunk("hel") + &chunk("lo") + END + "data: [DONE]\n\n"
}

fn client(server: &Server) -> ClientBuilder {
    let client = Client::builder(Provider::OpenAiChat).base_url(&server.base).api_key("sk-test-secret");
    client.idle_timeout(LONG).first_byte_timeout(LONG).retry_wait(Duration::from_millis(1))
}

async fn ask(client: &Client) -> (Answer, Option<Error>) {
    let request = Request { model: "m".into(), messages: vec![Message::user("hi")], ..Request::default() };
    let mut answer = Answer::default();
    let mut stream = match client.stream(request).await {
        Ok(stream) => stream,
        Err(error) => return (answer, Some(error)),
    };
    while let Some(item) = stream.next().await {
        match item {
            Ok(delta) => answer.push(delta),
            Err(error) => {
                assert!(stream.next().await.is_none());
                return (answer, Some(error));
            }
        }
    }
    (answer, None)
}

/// What comes of this answer: the text, and the error's text.
async fn check(steps: Vec<Step>, text: &str, error: &str) -> Option<Error> {
    check_with(|client| client, steps, text, error).await
}

async fn check_with(
    set: impl Fn(ClientBuilder) -> ClientBuilder,
    steps: Vec<Step>,
    text: &str,
    error: &str,
) -> Option<Error> {
    let server = server(vec![steps]).await;
    let (answer, got) = ask(&set(client(&server).max_retries(0)).build().unwrap()).await;
    assert_eq!(answer.message.content, text);
    assert_eq!(got.as_ref().map(ToString::to_string).unwrap_or_default(), error);
    assert_eq!(answer.finish.is_some(), error.is_empty());
    got
}

#[tokio::test]
async fn a_stream_is_read() {
    let mut server = server(vec![answer("200 OK", "content-type: text/event-stream\r\n", &hello())]).await;
    let (answer, error) = ask(&client(&server).header("x-extra", "1").build().unwrap()).await;
    assert!(error.is_none(), "{error:?}");
    assert_eq!((answer.message.content.as_str(), answer.finish.unwrap().as_str()), ("hello", "stop"));
    let sent = server.seen.recv().await.unwrap();
    assert!(sent.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{sent}");
    for part in [
        "authorization: Bearer sk-test-secret\r\n",
        "x-extra: 1\r\n",
        "\"stream\":true",
        "\"content\":\"hi\"",
    ] {
        assert!(sent.contains(part), "{sent}");
    }
}

#[tokio::test]
async fn anthropic_gets_its_headers() {
    let body = "{\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"stop_reason\":\"end_turn\"}";
    let mut server = server(vec![answer("200 OK", "", body)]).await;
    let client = Client::builder(Provider::Anthropic).base_url(&server.base).api_key("k").streaming(false);
    let (answer, error) = ask(&client.build().unwrap()).await;
    assert!(error.is_none() && answer.message.content == "hi", "{error:?}");
    let sent = server.seen.recv().await.unwrap();
    assert!(sent.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{sent}");
    assert!(
        sent.contains("x-api-key: k\r\n") && sent.contains("anthropic-version: 2023-06-01\r\n"),
        "{sent}"
    );
    assert!(!sent.contains("\"stream\""), "{sent}");
}

#[tokio::test]
async fn answers_are_read_whatever_they_are_called() {
    let whole = "\n {\"choices\":[{\"message\":{\"content\":\"all\"},\"finish_reason\":\"stop\"}]}";
    check(answer("200 OK", "content-type: text/event-stream\r\n", whole), "all", "").await;
    check(answer("200 OK", "content-type: application/json\r\n", &hello()), "hello", "").await;
    check(answer("200 OK", "", &(chunk("a") + END)), "a", "").await;
    let half = head("200 OK", "content-length: 9999\r\n") + &chunk("a") + END;
    check(vec![Step::Write(half.into_bytes())], "a", "").await;
}

#[tokio::test]
async fn what_is_no_answer_is_said_so() {
    let html = "<html>\n<title>Login</title>";
    let error = check(
        answer("200 OK", "", html),
        "",
        "the answer is not an event stream or JSON: `<html> <title>Login</title>`",
    )
    .await;
    assert!(!error.unwrap().retry_may_help());
    check(answer("200 OK", "", "upstream  down\n"), "", "the answer is not an event stream: `upstream down`")
        .await;
    check(answer("200 OK", "", "{\"ok\":true}"), "", "the answer is not a chat completion: `{\"ok\":true}`")
        .await;
    check(answer("200 OK", "", "{\"choi"), "", "the answer is not JSON: `{\"choi`").await;
    check(answer("200 OK", "", "{\"error\":{\"message\":\"no\"}}"), "", "the provider broke off: no").await;
    check(answer("200 OK", "", ""), "", "the answer was cut off before its end").await;
    let text = chunk("a") + "oops\n";
    check(answer("200 OK", "", &text), "a", "the answer was cut off before its end; it also said `oops`")
        .await;
    let half = chunk("a") + "data: {\"choices\":[";
    check(answer("200 OK", "", &half), "a", "the answer was cut off before its end").await;
    let bare = chunk("a") + "data: Internal error\n\n";
    check(answer("200 OK", "", &bare), "a", "the answer is not JSON: `Internal error`").await;
    let event = chunk("a") + "event: error\ndata: Internal error\n\n";
    check(answer("200 OK", "", &event), "a", "the provider broke off: Internal error").await;
}

#[tokio::test]
async fn refusals_carry_everything() {
    let body = "{\"error\":{\"message\":\"bad key sk-test-secret\",\"type\":\"auth\"}}";
    let steps = answer("401 Unauthorized", "x-request-id: req-7\r\n", body);
    let text = "the provider answered 401: bad key [api key] (auth), request req-7";
    let error = check(steps, "", text).await.unwrap();
    assert_eq!((error.fault(), error.retry_may_help()), (Fault::Caller, false));
    let steps = answer("503 Service Unavailable", "retry-after: 7\r\n", "");
    let text = "the provider answered 503: service unavailable; asking again may help after 7 s";
    let error = check(steps, "", text).await.unwrap();
    assert_eq!((error.fault(), error.retry_may_help()), (Fault::Provider, true));
    let text = "the provider answered 302: it redirects elsewhere, which is not followed; set the base URL to where it is";
    check(answer("302 Found", "location: http://127.0.0.1:1/\r\n", ""), "", text).await;
    let server =
        server(vec![vec![Step::Write(head("500 Oops", "").into_bytes()), Step::Write(vec![b'x'; 1 << 20])]])
            .await;
    let (_, error) = ask(&client(&server).max_retries(0).build().unwrap()).await;
    assert!(error.unwrap().to_string().len() < 300);
}

#[tokio::test]
async fn refusals_that_may_pass_are_repeated() {
    let busy = || answer("529 Overloaded", "retry-after: 0\r\n", "{\"error\":{\"message\":\"busy\"}}");
    let ok = || answer("200 OK", "", &hello());
    for (answers, retries, n_requests, error) in [
        (vec![busy(), ok()], 2, 2, ""),
        (vec![vec![], ok()], 2, 2, ""),
        (
            vec![busy()],
            1,
            2,
            "the provider answered 529: busy, asked 2 times; asking again may help after 0 s",
        ),
        (vec![busy(), ok()], 0, 1, "the provider answered 529: busy; asking again may help after 0 s"),
        (vec![answer("400 Bad", "", "no"), ok()], 2, 1, "the provider answered 400: no"),
        (vec![answer("200 OK", "", &chunk("a")), ok()], 2, 1, "the answer was cut off before its end"),
    ] {
        let server = server(answers).await;
        let (_, got) = ask(&client(&server).max_retries(retries).build().unwrap()).await;
        assert_eq!(got.map(|error| error.to_string()).unwrap_or_default(), error);
        assert_eq!(server.n_requests.load(Ordering::SeqCst), n_requests, "{error}");
    }
}

#[tokio::test]
async fn limits_are_named() {
    let first = |client: ClientBuilder| client.first_byte_timeout(SHORT);
    let idle = |client: ClientBuilder| client.idle_timeout(SHORT);
    let late = "first-byte limit of 0.15 s passed without an answer";
    check_with(first, vec![Step::Wait(LONG)], "", late).await;
    check_with(first, vec![Step::Write(head("200 OK", "").into_bytes()), Step::Wait(LONG)], "", late).await;
    let late = "idle limit of 0.15 s passed without a further byte";
    let begin = head("200 OK", "") + &chunk("a");
    let error =
        check_with(idle, vec![Step::Write(begin.clone().into_bytes()), Step::Wait(LONG)], "a", late).await;
    assert!(matches!(error, Some(Error::Timeout { limit: Limit::Idle, .. })));
    let ended = begin + END;
    check_with(idle, vec![Step::Write(ended.into_bytes()), Step::Wait(LONG)], "a", "").await;
}

#[tokio::test]
async fn slow_is_not_idle() {
    let limit = Duration::from_millis(500);
    let steps =
        vec![Step::Write(head("200 OK", "").into()), Step::Drip(hello().into(), Duration::from_millis(4))];
    let started = Instant::now();
    check_with(|client| client.idle_timeout(limit), steps, "hello", "").await;
    assert!(started.elapsed() > limit);
}

#[tokio::test]
async fn nobody_there_is_a_connect_error() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = Client::builder(Provider::OpenAiChat).base_url(format!("http://{address}"));
    let (_, error) = ask(&client.retry_wait(Duration::from_millis(1)).build().unwrap()).await;
    let error = error.unwrap();
    assert!(matches!(&error, Error::Connect { .. }), "{error:?}");
    assert_eq!(error.to_string(), format!("no connection to {address}"));
    assert_eq!((error.fault(), error.retry_may_help()), (Fault::Network, true));
}

#[tokio::test]
async fn a_connection_that_breaks_is_told_from_an_answer_that_stops() {
    let text = head("200 OK", "content-length: 9999\r\n") + &chunk("a");
    let error = check(vec![Step::Write(text.into_bytes())], "a", "the answer was cut off before its end")
        .await
        .unwrap();
    assert!(matches!(&error, Error::Cut { source: Some(_), .. }), "{error:?}");
    assert_eq!(error.fault(), Fault::Network);
}

#[tokio::test]
async fn events_have_a_limit() {
    let text = hello() + &chunk(&"x".repeat(5000));
    let server = server(vec![
        answer("200 OK", "", &format!("data: {}", "x".repeat(5000))),
        answer("200 OK", "", &text),
    ])
    .await;
    let client = client(&server).event_limit(1000).build().unwrap();
    let (_, error) = ask(&client).await;
    assert_eq!(error.unwrap().to_string(), "the answer, or one event of it, is larger than 1000 bytes");
}

#[tokio::test]
async fn an_answer_stays_complete_when_the_rest_of_the_stream_is_odd() {
    let text = chunk("a") + END + "data: {\"odd\"\n\n";
    let server = server(vec![answer("200 OK", "", &text)]).await;
    let (answer, error) = ask(&client(&server).build().unwrap()).await;
    assert_eq!((answer.message.content.as_str(), answer.finish.unwrap().raw.as_str()), ("a", "stop"));
    assert_eq!(error.unwrap().to_string(), "the answer is not JSON: `{\"odd\"`");
}

#[tokio::test]
async fn dropping_the_stream_hangs_up() {
    let begin = head("200 OK", "") + &chunk("a");
    let mut server = server(vec![vec![Step::Write(begin.into_bytes()), Step::UntilGone]]).await;
    let client = client(&server).idle_timeout(Duration::from_secs(20)).build().unwrap();
    let mut stream = client.stream(Request::default()).await.unwrap();
    assert_eq!(stream.next().await.unwrap().unwrap(), Delta::Content("a".into()));
    server.seen.recv().await.unwrap();
    drop(stream);
    let gone = tokio::time::timeout(Duration::from_secs(5), server.seen.recv()).await;
    assert_eq!(gone.unwrap().unwrap(), "gone");
}

#[tokio::test]
async fn a_finished_connection_is_used_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let body = hello();
    let text = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        loop {
            request(&mut socket).await;
            socket.write_all(text.as_bytes()).await.unwrap();
        }
    });
    let client =
        Client::builder(Provider::OpenAiChat).base_url(base).first_byte_timeout(Duration::from_secs(2));
    let client = client.build().unwrap();
    for _ in 0..3 {
        let (answer, error) = ask(&client).await;
        assert!(error.is_none() && answer.message.content == "hello", "{error:?}");
    }
}
