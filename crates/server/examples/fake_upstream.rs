//! A provider for measurements: `fake_upstream ADDRESS` answers chat completions on loopback as fast as it can, whole (1 KB)
//! or, where the body says `"stream": true`, as 200 events with a write each. See `benches/gateway`.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::string_slice,
    clippy::arithmetic_side_effects,
    reason = "a tool of the bench"
)]

use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Events of a stream that carry text.
const EVENTS: usize = 200;

/// What is written, piece by piece.
struct Answers {
    whole: Vec<u8>,
    stream: Vec<Vec<u8>>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:9100".to_owned());
    let listener = TcpListener::bind(address).await.unwrap();
    let answers = Arc::new(Answers { whole: whole(), stream: stream() });
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&answers)));
    }
}

/// Answers until the other side goes away.
async fn serve(mut stream: TcpStream, answers: Arc<Answers>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut got = Vec::new();
    loop {
        let (head, length) = loop {
            if let Some(found) = request(&got) {
                break found;
            }
            if stream.read_buf(&mut got).await.ok()? == 0 {
                return None;
            }
        };
        let body = &got[head..head + length];
        let streamed = body.windows(6).any(|at| at == b"stream") && body.windows(4).any(|at| at == b"true");
        match streamed {
            false => stream.write_all(&answers.whole).await.ok()?,
            true => {
                for piece in &answers.stream {
                    stream.write_all(piece).await.ok()?;
                }
            }
        }
        got.drain(..head + length);
    }
}

/// Where the first request's body begins and how long it is, once all of it is there.
fn request(got: &[u8]) -> Option<(usize, usize)> {
    let head = got.windows(4).position(|at| at == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&got[..head]).ok()?.to_ascii_lowercase();
    let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length = length.map_or(0, |length| length.trim().parse().unwrap_or(0));
    (got.len() >= head + length).then_some((head, length))
}

fn whole() -> Vec<u8> {
    let text = "lorem ipsum dolor sit amet ".repeat(40);
    let body = format!(
        r#"{{"id":"1","object":"chat.completion","created":1,"model":"bench","choices":[{{"index":0,"message":{{"role":"assistant","content":"{}"}},"finish_reason":"stop"}}],"usage":{{"prompt_tokens":20,"completion_tokens":200,"total_tokens":220}}}}"#,
        &text[..1024]
    );
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    (head + &body).into_bytes()
}

fn stream() -> Vec<Vec<u8>> {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len()).into_bytes();
    let event = |delta: &str, finish: &str| {
        chunk(&format!(
            "data: {{\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"bench\",\"choices\":[{{\"index\":0,\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n"
        ))
    };
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    let mut pieces = vec![head.as_bytes().to_vec()];
    pieces.extend((0..EVENTS).map(|n| event(&format!("{{\"content\":\" word{n}\"}}"), "null")));
    pieces.push(event("{}", "\"stop\""));
    pieces.push(chunk("data: [DONE]\n\n"));
    pieces.push(b"0\r\n\r\n".to_vec());
    pieces
}
