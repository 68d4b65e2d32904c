//! A provider that answers as a test says, and keeps what it got.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// As it should: chunked, with its last chunk.
    Regular,
    /// The connection breaks off in the middle of the chunked body.
    Cut,
    /// It is as long as this says, whatever was sent; then the connection closes.
    Length(usize),
    /// Nothing follows, and the connection stays open.
    Silent,
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    /// One write each.
    pub(crate) pieces: Vec<Vec<u8>>,
    /// Before each piece but the first.
    pub(crate) pause: Duration,
    /// Before the head.
    pub(crate) think: Duration,
    pub(crate) close: Close,
}

impl Reply {
    fn new(kind: &str, pieces: Vec<Vec<u8>>) -> Reply {
        Reply {
            status: 200,
            headers: vec![("content-type".into(), kind.into())],
            pieces,
            pause: Duration::ZERO,
            think: Duration::ZERO,
            close: Close::Regular,
        }
    }

    /// A stream of these events, one write each.
    pub(crate) fn stream(events: &[String]) -> Reply {
        Reply::new("text/event-stream", events.iter().map(|event| event.clone().into_bytes()).collect())
    }

    /// A stream in one write.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Reply {
        Reply::new("text/event-stream", vec![bytes])
    }

    pub(crate) fn json(value: &serde_json::Value) -> Reply {
        Reply::new("application/json", vec![value.to_string().into_bytes()])
    }

    pub(crate) fn with(mut self, change: impl FnOnce(&mut Reply)) -> Reply {
        change(&mut self);
        self
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Reply {
        self.with(|reply| reply.headers.push((name.into(), value.into())))
    }

    pub(crate) fn all(&self) -> Vec<u8> {
        self.pieces.concat()
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

type Script = dyn Fn(usize, &Request) -> Reply + Send + Sync;

/// It, running. Clones share it.
#[derive(Clone)]
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    script: Mutex<Arc<Script>>,
    requests: Mutex<Vec<Request>>,
    hung_up: Mutex<Vec<Instant>>,
    written: Mutex<usize>,
}

impl Upstream {
    /// Answers as the script says, by the number of the request and what it is.
    pub(crate) async fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            script: Mutex::new(Arc::new(script)),
            requests: Mutex::default(),
            hung_up: Mutex::default(),
            written: Mutex::default(),
        });
        let mine = shared.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = mine.clone();
                tokio::spawn(async move { shared.serve(stream).await });
            }
        });
        Upstream { address, shared }
    }

    /// Gives these answers in turn, the last again and again.
    pub(crate) async fn playing(replies: Vec<Reply>) -> Upstream {
        Upstream::start(move |n, _| replies[n.min(replies.len() - 1)].clone()).await
    }

    /// From now on these, counted from the next request.
    pub(crate) fn play(&self, replies: Vec<Reply>) {
        let from = self.count();
        *self.shared.script.lock().unwrap() =
            Arc::new(move |n: usize, _: &Request| replies[(n - from).min(replies.len() - 1)].clone());
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.requests.lock().unwrap().clone()
    }

    pub(crate) fn last(&self) -> Request {
        self.shared.requests.lock().unwrap().last().cloned().expect("no request came")
    }

    pub(crate) fn count(&self) -> usize {
        self.shared.requests.lock().unwrap().len()
    }

    /// When the gateway gave an answer up that was not finished.
    pub(crate) fn hung_up(&self) -> Vec<Instant> {
        self.shared.hung_up.lock().unwrap().clone()
    }

    /// Bytes of bodies that went out.
    pub(crate) fn written(&self) -> usize {
        *self.shared.written.lock().unwrap()
    }
}

impl Shared {
    async fn serve(&self, stream: TcpStream) -> Option<()> {
        stream.set_nodelay(true).ok()?;
        let (read, mut write) = stream.into_split();
        let mut read = BufReader::new(read);
        loop {
            let request = request(&mut read).await?;
            let number = {
                let mut requests = self.requests.lock().unwrap();
                requests.push(request.clone());
                requests.len() - 1
            };
            let script = self.script.lock().unwrap().clone();
            let reply = script(number, &request);
            tokio::select! {
                sent = self.answer(&mut write, &reply) => {
                    if sent.is_none() && !matches!(reply.close, Close::Cut | Close::Length(_)) {
                        self.hung_up.lock().unwrap().push(Instant::now());
                    }
                    sent?;
                }
                // nothing is sent before the answer is out: this is the end of the connection
                _ = read.fill_buf() => {
                    self.hung_up.lock().unwrap().push(Instant::now());
                    return None;
                }
            }
        }
    }

    async fn answer(&self, write: &mut OwnedWriteHalf, reply: &Reply) -> Option<()> {
        tokio::time::sleep(reply.think).await;
        let mut head = format!("HTTP/1.1 {} Played\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        match reply.close {
            Close::Length(length) => head.push_str(&format!("content-length: {length}\r\n\r\n")),
            _ => head.push_str("transfer-encoding: chunked\r\n\r\n"),
        }
        write.write_all(head.as_bytes()).await.ok()?;
        for (n, piece) in reply.pieces.iter().enumerate() {
            if n > 0 && !reply.pause.is_zero() {
                tokio::time::sleep(reply.pause).await;
            }
            if let Close::Length(_) = reply.close {
                write.write_all(piece).await.ok()?;
            } else if !piece.is_empty() {
                let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat();
                write.write_all(&chunk).await.ok()?;
            }
            *self.written.lock().unwrap() += piece.len();
        }
        match reply.close {
            Close::Regular => write.write_all(b"0\r\n\r\n").await.ok(),
            Close::Silent => std::future::pending().await,
            Close::Cut | Close::Length(_) => {
                let _ = write.shutdown().await;
                None
            }
        }
    }
}

async fn request(read: &mut BufReader<OwnedReadHalf>) -> Option<Request> {
    let mut head = String::new();
    loop {
        let before = head.len();
        if read.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
        if head[before..].trim().is_empty() {
            break;
        }
    }
    let mut request = Request { head, body: Vec::new() };
    if request.header("transfer-encoding").is_some() {
        loop {
            let mut line = String::new();
            read.read_line(&mut line).await.ok()?;
            let size = usize::from_str_radix(line.trim(), 16).ok()?;
            let mut chunk = vec![0; size + 2];
            read.read_exact(&mut chunk).await.ok()?;
            if size == 0 {
                return Some(request);
            }
            request.body.extend_from_slice(&chunk[..size]);
        }
    }
    let length = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    request.body = vec![0; length];
    read.read_exact(&mut request.body).await.ok()?;
    Some(request)
}
