//! A provider that answers as a case says.

use super::super::super::{pack, stand_in};
use serde_json::Value;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// It, running.
pub(super) struct Played {
    pub(super) address: SocketAddr,
    script: Arc<Script>,
}

/// What it answers.
struct Script {
    stream: Vec<u8>,
    json: Option<String>,
    split_every: Option<usize>,
    pause: Duration,
    gzip: bool,
    /// It ends without the rest.
    close: bool,
    requests: AtomicUsize,
}

impl Played {
    pub(super) async fn start(setup: &Value) -> Result<Played, String> {
        let flag = |name: &str| setup.get(name).and_then(Value::as_bool).unwrap_or(false);
        let number = |name: &str| setup.get(name).and_then(Value::as_u64);
        let stream = match (setup.get("raw"), setup.get("raw_b64")) {
            (Some(Value::Array(frames)), _) => {
                frames.iter().filter_map(Value::as_str).flat_map(|frame| frame.bytes()).collect()
            }
            (Some(one), _) => stand_in::bytes(one)?,
            (None, Some(coded)) => stand_in::bytes(&serde_json::json!({"b64": coded}))?,
            (None, None) => Vec::new(),
        };
        let script = Arc::new(Script {
            stream,
            json: setup.get("json").map(Value::to_string),
            split_every: number("split_bytes_every").and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0),
            pause: Duration::from_millis(number("delay_ms_between").unwrap_or(0)),
            gzip: flag("gzip"),
            close: flag("close"),
            requests: AtomicUsize::new(0),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        let played = Arc::clone(&script);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let played = Arc::clone(&played);
                tokio::spawn(async move { played.serve(stream).await });
            }
        });
        Ok(Played { address, script })
    }

    /// How many requests came.
    pub(super) fn requests(&self) -> usize {
        self.script.requests.load(Ordering::SeqCst)
    }

    /// The stream that it sends, without compression.
    pub(super) fn sent(&self) -> Vec<u8> {
        self.script.stream.clone()
    }
}

impl Script {
    async fn serve(&self, stream: TcpStream) -> Option<()> {
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let (path, body) = request(&mut read).await?;
            self.requests.fetch_add(1, Ordering::SeqCst);
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            let streams =
                asked.get("stream") == Some(&Value::Bool(true)) || path.contains(":streamGenerateContent");
            match (&self.json, streams && !self.stream.is_empty()) {
                (Some(json), false) => self.whole(&mut write, json).await?,
                _ => self.streamed(&mut write).await?,
            }
        }
    }

    async fn whole(&self, write: &mut (impl AsyncWriteExt + Unpin), json: &str) -> Option<()> {
        let body = if self.gzip { pack::gzip(json.as_bytes()).ok()? } else { json.as_bytes().to_vec() };
        let encoding = if self.gzip { "content-encoding: gzip\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{encoding}content-length: {}\r\n\r\n",
            body.len()
        );
        write.write_all(head.as_bytes()).await.ok()?;
        write.write_all(&body).await.ok()
    }

    async fn streamed(&self, write: &mut (impl AsyncWriteExt + Unpin)) -> Option<()> {
        let body = if self.gzip { pack::gzip(&self.stream).ok()? } else { self.stream.clone() };
        let encoding = if self.gzip { "content-encoding: gzip\r\n" } else { "" };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{encoding}transfer-encoding: chunked\r\n\r\n"
        );
        write.write_all(head.as_bytes()).await.ok()?;
        for piece in body.chunks(self.split_every.unwrap_or(body.len()).max(1)) {
            write.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await.ok()?;
            write.write_all(piece).await.ok()?;
            write.write_all(b"\r\n").await.ok()?;
            write.flush().await.ok()?;
            if !self.pause.is_zero() {
                tokio::time::sleep(self.pause).await;
            }
        }
        if self.close {
            return None;
        }
        write.write_all(b"0\r\n\r\n").await.ok()
    }
}

/// Reads a request: its path and body.
async fn request(read: &mut (impl AsyncBufReadExt + Unpin)) -> Option<(String, Vec<u8>)> {
    let mut line = String::new();
    if read.read_line(&mut line).await.ok()? == 0 {
        return None;
    }
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0usize;
    loop {
        line.clear();
        if read.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.ok()?;
    Some((path, body))
}
