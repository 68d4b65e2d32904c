//! A provider that plays a few answers, for the demonstration: chat completions over HTTP on loopback.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::convert::Infallible;
use tokio::net::TcpListener;

/// Serves for ever.
pub(super) async fn serve(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(async move {
            let server = hyper::server::conn::http1::Builder::new();
            // a client that goes away is nobody's fault
            let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: http::Request<Incoming>) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let body =
        request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let mut response = http::Response::new(Full::new(stream(&play(&asked)).into()));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// What the model says.
enum Said {
    Pieces(Vec<String>),
    Call(&'static str),
}

/// The provider's pieces of the answer to a prompt, for people.
pub(super) const KEY_PIECES: [&str; 4] = ["Use AK", "IAEXAM", "PLEEXAMPLE", "22 for now."];

fn play(asked: &Value) -> Said {
    let messages = asked.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let of = |role: &str| {
        let said =
            messages.iter().rev().filter(move |message| message.get("role").is_some_and(|r| r == role));
        said.filter_map(|message| message.get("content").and_then(Value::as_str)).next().map(str::to_owned)
    };
    let words = |text: &str| Said::Pieces(text.split_inclusive(' ').map(str::to_owned).collect());
    let prompt = of("user").unwrap_or_default();
    match (prompt.as_str(), of("tool")) {
        (_, Some(result)) => words(&format!("I could not: {result}.")),
        (prompt, None) if prompt.contains("key") => Said::Pieces(KEY_PIECES.map(str::to_owned).into()),
        (prompt, None) if prompt.contains("space") => Said::Call("rm -rf /srv/data"),
        (prompt, None) if prompt.contains("Look it up") => words("Quito is the capital of Ecuador."),
        _ => words("I don't know."),
    }
}

fn stream(said: &Said) -> String {
    let event = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk =
            json!({"id": "demo", "object": "chat.completion.chunk", "model": "demo", "choices": [choice]});
        format!("data: {chunk}\n\n")
    };
    let mut out = String::new();
    match said {
        Said::Pieces(pieces) => {
            for piece in pieces {
                out.push_str(&event(json!({"content": piece}), Value::Null));
            }
            out.push_str(&event(json!({}), json!("stop")));
        }
        Said::Call(command) => {
            let function = json!({"name": "exec", "arguments": json!({"command": command}).to_string()});
            let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
            out.push_str(&event(json!({"tool_calls": [call]}), Value::Null));
            out.push_str(&event(json!({}), json!("tool_calls")));
        }
    }
    out.push_str("data: [DONE]\n\n");
    out
}
