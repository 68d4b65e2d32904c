//! A client that sees every byte.

use hookgate_llm::proxy::{Call, ChannelKind, Exchange, Piece, Route, read_json, route};
use hookgate_llm::sse::Parser;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Longer than this no case takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What the client saw.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) took: Duration,
    pub(super) status: u64,
    pub(super) body: Vec<u8>,
    /// The connection ended before the body did.
    pub(super) cut: bool,
    pub(super) events: Vec<String>,
    pub(super) text: String,
    pub(super) calls: Vec<Value>,
    pub(super) finish: Option<String>,
    pub(super) error: bool,
}

/// Sends one request and reads the answer.
pub(super) async fn ask(gateway: SocketAddr, step: &Value) -> Result<Seen, String> {
    let request = step.get("request").cloned().unwrap_or_default();
    let text = |name: &str, or: &str| request.get(name).and_then(Value::as_str).unwrap_or(or).to_owned();
    let (method, path) = (text("method", "POST"), text("path", "/v1/chat/completions"));
    let body = match request.get("json") {
        Some(json) => json.to_string(),
        None => text("body", ""),
    };
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in request.get("headers").and_then(Value::as_object).into_iter().flatten() {
        head.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap_or_default()));
    }
    let begun = Instant::now();
    let mut stream = TcpStream::connect(gateway).await.map_err(|error| error.to_string())?;
    stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.map_err(|error| error.to_string())?;
    let hang_up = step.get("hang_up_after_events").and_then(Value::as_u64);
    let bytes = tokio::time::timeout(PATIENCE, read(&mut stream, hang_up))
        .await
        .map_err(|_| "no end of the answer")?;
    let mut seen = Seen { took: begun.elapsed(), ..Seen::default() };
    seen.take_apart(&bytes)?;
    let Route::Judged(middle) = route(&method, &path) else { return Ok(seen) };
    if (200..300).contains(&seen.status) {
        seen.understand(middle);
    }
    Ok(seen)
}

async fn read(stream: &mut TcpStream, hang_up: Option<u64>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut room = vec![0; 64 * 1024];
    while let Ok(read) = stream.read(&mut room).await {
        let Some(more) = room.get(..read).filter(|more| !more.is_empty()) else { break };
        bytes.extend_from_slice(more);
        let events = || bytes.windows(2).filter(|pair| *pair == b"\n\n").count() as u64;
        if hang_up.is_some_and(|after| events() >= after) {
            break;
        }
    }
    bytes
}

impl Seen {
    /// Head, then the body without its chunking.
    fn take_apart(&mut self, bytes: &[u8]) -> Result<(), String> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").ok_or("no head came")?;
        let (head, rest) = bytes.split_at_checked(end.saturating_add(4)).ok_or("no head came")?;
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        self.status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or("no status came")?;
        if !head.contains("transfer-encoding: chunked") {
            self.body = rest.to_vec();
            return Ok(());
        }
        let mut rest = rest;
        loop {
            let line_end = rest.windows(2).position(|two| two == b"\r\n");
            let size = line_end.and_then(|at| {
                usize::from_str_radix(std::str::from_utf8(rest.get(..at)?).ok()?.trim(), 16).ok()
            });
            let (Some(at), Some(size)) = (line_end, size) else {
                self.cut = true;
                return Ok(());
            };
            if size == 0 {
                return Ok(());
            }
            let from = at.saturating_add(2);
            let to = from.saturating_add(size);
            self.body.extend_from_slice(rest.get(from..to.min(rest.len())).unwrap_or_default());
            match rest.get(to.saturating_add(2)..) {
                Some(later) => rest = later,
                None => {
                    self.cut = true;
                    return Ok(());
                }
            }
        }
    }

    /// What a client of this wire makes of the body.
    fn understand(&mut self, middle: &'static dyn hookgate_llm::proxy::Middle) {
        let body = std::mem::take(&mut self.body);
        if let Some(value) = read_json(&body).filter(Value::is_object) {
            let mut exchange = middle.exchange(true);
            let read = exchange.read_body(&value, &mut |piece| self.take(piece));
            self.error |= read.is_err();
        } else {
            self.understand_stream(middle.exchange(false).as_mut(), &body);
        }
        self.body = body;
    }

    fn understand_stream(&mut self, exchange: &mut dyn Exchange, body: &[u8]) {
        let mut parser = Parser::new();
        parser.push(body);
        parser.finish();
        while let Ok(Some(event)) = parser.next_event() {
            self.events.push(event.data.to_string());
            let read = exchange.read(&event, &mut |piece| self.take(piece));
            self.error |= read.is_err();
        }
        exchange.ended(&mut |piece| self.take(piece));
    }

    fn take(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::Text { channel, text } if channel.kind == ChannelKind::Content => {
                self.text.push_str(&text)
            }
            Piece::CallEnd { call: Call { name, arguments, .. }, .. } => {
                self.calls.push(json!({"name": name, "arguments": arguments}));
            }
            Piece::Finish { reason, .. } => self.finish = Some(reason.into_owned()),
            Piece::Error(_) => self.error = true,
            _ => {}
        }
    }
}
