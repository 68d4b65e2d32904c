//! Test servers on loopback that play the replies of a case.

use super::super::super::stand_in;
use super::tls;
use crate::corpus::pack;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The servers of a case, by name.
#[derive(Default)]
pub(super) struct Servers {
    by_name: BTreeMap<String, Server>,
    /// One of them does.
    pub(super) speak_tls: bool,
}

struct Server {
    port: u16,
    /// When each request came.
    log: Arc<Mutex<Vec<Instant>>>,
}

impl Servers {
    /// Starts those of a set-up.
    pub(super) async fn start(setup: Option<&Value>) -> Result<Servers, String> {
        let mut servers = Servers::default();
        for (name, plan) in setup.and_then(Value::as_object).into_iter().flatten() {
            let tls = plan.get("tls").filter(|tls| !matches!(tls, Value::Null | Value::Bool(false)));
            let tls = tls.map(tls::acceptor).transpose()?;
            servers.speak_tls |= tls.is_some();
            let listener = TcpListener::bind("127.0.0.1:0").await.map_err(|error| error.to_string())?;
            let port = listener.local_addr().map_err(|error| error.to_string())?.port();
            let log = Arc::new(Mutex::new(Vec::new()));
            if plan.get("closed").is_none() {
                // it ends with the runtime of the case
                tokio::spawn(accept(listener, tls, prepared(plan)?, log.clone()));
            }
            servers.by_name.insert(name.clone(), Server { port, log });
        }
        Ok(servers)
    }

    /// Puts addresses and ports in the place of their stand-ins.
    pub(super) fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, server) in &self.by_name {
            let port = server.port;
            for scheme in ["http", "https"] {
                text = text.replace(&format!("{{{scheme}:{name}}}"), &format!("{scheme}://127.0.0.1:{port}"));
            }
            text = text.replace(&format!("{{port:{name}}}"), &port.to_string());
        }
        text
    }

    /// When requests came, in order, over all servers.
    pub(super) fn requests(&self) -> Vec<Instant> {
        let mut all: Vec<Instant> =
            self.by_name.values().flat_map(|server| locked(&server.log).clone()).collect();
        all.sort_unstable();
        all
    }
}

fn locked(log: &Mutex<Vec<Instant>>) -> MutexGuard<'_, Vec<Instant>> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn accept(listener: TcpListener, tls: Option<TlsAcceptor>, plan: Value, log: Arc<Mutex<Vec<Instant>>>) {
    while let Ok((socket, _)) = listener.accept().await {
        let (tls, plan, log) = (tls.clone(), plan.clone(), log.clone());
        tokio::spawn(async move {
            match tls {
                None => serve(socket, plan, log).await,
                Some(tls) => {
                    // a client that does not trust it is what such a case is about
                    if let Ok(stream) = tls.accept(socket).await {
                        serve(stream, plan, log).await;
                    }
                }
            }
        });
    }
}

async fn serve(mut socket: impl AsyncRead + AsyncWrite + Unpin, plan: Value, log: Arc<Mutex<Vec<Instant>>>) {
    while read_request(&mut socket).await {
        let number = {
            let mut log = locked(&log);
            log.push(Instant::now());
            log.len().saturating_sub(1)
        };
        let reply = match plan.get("sequence").and_then(Value::as_array) {
            Some(replies) => replies.get(number).or(replies.last()),
            None => Some(&plan),
        };
        let stays = match reply {
            Some(reply) => send(&mut socket, reply).await.is_ok_and(|stays| stays),
            None => false,
        };
        if !stays {
            return;
        }
    }
}

/// Reads a request to its end; false if there is none.
async fn read_request(socket: &mut (impl AsyncRead + Unpin)) -> bool {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return true;
            }
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(piece.get(..count).unwrap_or_default()),
            _ => return false,
        }
    }
}

/// Sends a reply; true if the connection stays open.
async fn send(socket: &mut (impl AsyncWrite + Unpin), reply: &Value) -> std::io::Result<bool> {
    let number = |key: &str| reply.get(key).and_then(Value::as_u64);
    if let Some(ms) = number("delay_ms") {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let body = stand_in::bytes(reply.get("body").unwrap_or(&Value::Null)).map_err(std::io::Error::other)?;
    let mut head = format!("HTTP/1.1 {} Reply\r\n", number("status").unwrap_or(200));
    let (mut told_length, mut names_encoding) = (number("status") == Some(204), false);
    for (name, value) in reply.get("headers").and_then(Value::as_object).into_iter().flatten() {
        told_length |= name.eq_ignore_ascii_case("content-length");
        names_encoding |= name.eq_ignore_ascii_case("content-encoding");
        head.push_str(&format!("{name}: {}\r\n", value.as_str().unwrap_or_default()));
    }
    if reply.get("body_gzip_of").is_some() && !names_encoding {
        head.push_str("content-encoding: gzip\r\n");
    }
    if !told_length {
        head.push_str(&format!("content-length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    socket.write_all(head.as_bytes()).await?;
    match number("byte_delay_ms") {
        None => socket.write_all(&body).await?,
        Some(ms) => {
            for byte in body {
                socket.write_all(&[byte]).await?;
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
        }
    }
    socket.flush().await?;
    Ok(reply.get("close_after_body").is_none())
}

/// A plan with the bytes of its bodies, packed where it says so. Done once: a bomb takes a while.
fn prepared(plan: &Value) -> Result<Value, String> {
    let mut plan = plan.clone();
    if let Some(replies) = plan.get_mut("sequence").and_then(Value::as_array_mut) {
        *replies = replies.iter().map(prepared).collect::<Result<_, _>>()?;
    }
    let body = match (plan.get("body_gzip_of"), plan.get("body")) {
        (Some(text), _) => pack::gzip(&stand_in::bytes(text)?)?,
        (None, Some(text)) => stand_in::bytes(text)?,
        (None, None) => return Ok(plan),
    };
    if let Some(members) = plan.as_object_mut() {
        members.insert("body".into(), json!({"b64": STANDARD.encode(body)}));
    }
    Ok(plan)
}
