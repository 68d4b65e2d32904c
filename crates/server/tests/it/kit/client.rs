//! A client that sees every byte, over one connection that is kept while it can be.

use super::wires::{Seen, Wire};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// Longer than this nothing takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer.
#[derive(Debug, Default)]
pub(crate) struct Got {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
    /// The connection ended before the body did.
    pub(crate) cut: bool,
    /// When each piece came.
    pub(crate) times: Vec<(Instant, usize)>,
}

impl Got {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// What a client of the wire makes of it.
    pub(crate) fn seen(&self, wire: Wire) -> Seen {
        wire.read(&self.body)
    }
}

/// A connection.
pub(crate) struct Client {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Client {
        Client { address, stream: None }
    }

    /// Sends bytes as they are and reads one answer.
    pub(crate) async fn raw(&mut self, bytes: &[u8]) -> Got {
        self.send(bytes).await;
        tokio::time::timeout(PATIENCE, self.read()).await.expect("no end of the answer")
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        if self.stream.is_none() {
            let stream = TcpStream::connect(self.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            self.stream = Some(BufReader::new(stream));
        }
        // a gateway that refuses early may not read all
        let _ = self.stream.as_mut().unwrap().write_all(bytes).await;
    }

    /// Posts JSON.
    pub(crate) async fn post(&mut self, path: &str, headers: &[(&str, &str)], body: &Value) -> Got {
        self.raw(&post(path, headers, body.to_string().as_bytes())).await
    }

    pub(crate) fn hang_up(&mut self) {
        self.stream = None;
    }

    /// Reads the head, and the body until so many bytes are there or it ends.
    pub(crate) async fn read_some(&mut self, least: usize) -> Got {
        self.answer(Some(least)).await
    }

    pub(crate) async fn read(&mut self) -> Got {
        self.answer(None).await
    }

    /// So many bytes more of a body that was read in part.
    pub(crate) async fn read_more(&mut self, got: &mut Got, more: usize) {
        let least = got.body.len() + more;
        let _ = body(self.stream.as_mut().unwrap(), got, Some(least)).await;
    }

    /// The rest of an answer that was read in part.
    pub(crate) async fn go_on(&mut self, mut got: Got) -> Got {
        got.cut = body(self.stream.as_mut().unwrap(), &mut got, None).await.is_none();
        got
    }

    async fn answer(&mut self, least: Option<usize>) -> Got {
        let mut got = self.read_head().await;
        let Some(stream) = &mut self.stream else { return got };
        let complete = body(stream, &mut got, least).await;
        got.cut = complete.is_none();
        let closes = got.header("connection").is_some_and(|value| value == "close");
        if got.cut || closes {
            self.stream = None;
        }
        got
    }

    /// Reads the head; [`Client::go_on`] reads the rest.
    pub(crate) async fn read_head(&mut self) -> Got {
        let mut got = Got::default();
        let Some(stream) = &mut self.stream else { return got };
        loop {
            let before = got.head.len();
            match stream.read_line(&mut got.head).await {
                Ok(read) if read > 0 => {}
                _ => {
                    self.stream = None;
                    return got;
                }
            }
            if got.head[before..].trim().is_empty() {
                break;
            }
        }
        got.status = got.head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap();
        if got.status == 100 {
            return Box::pin(self.read_head()).await;
        }
        got
    }
}

async fn body(stream: &mut BufReader<TcpStream>, got: &mut Got, least: Option<usize>) -> Option<()> {
    let chunked = got.header("transfer-encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked"));
    if let Some(length) = got.header("content-length").and_then(|length| length.parse::<usize>().ok()) {
        let mut room = vec![0; 64 * 1024];
        while got.body.len() < length {
            let most = room.len().min(length - got.body.len());
            let read = stream.read(&mut room[..most]).await.ok().filter(|read| *read > 0)?;
            got.body.extend_from_slice(&room[..read]);
            got.times.push((Instant::now(), read));
        }
        return Some(());
    }
    if !chunked {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest).await;
        got.body = rest;
        return Some(());
    }
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok().filter(|read| *read > 0)?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).await.ok()?;
        if size == 0 {
            return Some(());
        }
        got.body.extend_from_slice(&chunk[..size]);
        got.times.push((Instant::now(), size));
        if least.is_some_and(|least| got.body.len() >= least) {
            return Some(());
        }
    }
}

/// A request's bytes.
pub(crate) fn post(path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut head = format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    [head.as_bytes(), b"\r\n", body].concat()
}
