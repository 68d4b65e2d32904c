//! A server on loopback that does exactly what a fault needs.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;

/// What a server does when a request has come.
#[derive(Clone)]
pub(super) enum Does {
    /// Writes this before it was asked anything.
    Greets(Vec<u8>),
    /// Writes this, then nothing more.
    Stalls(Vec<u8>),
    /// Writes this and ends the connection.
    Says(Vec<u8>),
    /// Writes this, a byte now and then.
    Drips(Vec<u8>),
    /// Writes the first, then the second without end.
    Floods(Vec<u8>, Vec<u8>),
    /// Breaks the connection off, after these bytes.
    Resets(Vec<u8>),
}

/// An HTTP reply with its length.
pub(super) fn reply(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Does {
    let body = body.as_ref();
    let head =
        format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {}\r\n\r\n", body.len());
    Does::Says([head.as_bytes(), body].concat())
}

/// A reply with status 200 and a JSON body.
pub(super) fn json(body: impl AsRef<[u8]>) -> Does {
    reply("200 OK", "content-type: application/json\r\n", body)
}

/// Starts one; gives its port.
pub(super) async fn serve(does: Does) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let does = does.clone();
            tokio::spawn(async move {
                if let Does::Greets(bytes) = &does {
                    let _ = socket.write_all(bytes).await;
                }
                read_request(&mut socket).await;
                if let Does::Resets(bytes) = &does {
                    let _ = socket.write_all(bytes).await;
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    socket.set_zero_linger().unwrap();
                    return;
                }
                act(&mut socket, &does).await;
            });
        }
    });
    port
}

/// A port at which nobody listens.
pub(super) async fn closed() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Starts one that speaks TLS with this certificate of `hooks.test`.
pub(super) async fn serve_tls(certificate: &[u8], does: Does) -> u16 {
    let certificate = CertificateDer::from_pem_slice(certificate).unwrap();
    let key = PrivateKeyDer::from_pem_slice(include_bytes!("../../data/server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (socket, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(socket).await {
                read_request(&mut stream).await;
                act(&mut stream, &does).await;
            }
        }
    });
    port
}

async fn act(socket: &mut (impl AsyncWrite + Unpin), does: &Does) {
    match does {
        Does::Stalls(bytes) => {
            let _ = socket.write_all(bytes).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
        }
        Does::Says(bytes) | Does::Resets(bytes) => {
            let _ = socket.write_all(bytes).await;
            let _ = socket.shutdown().await;
        }
        Does::Greets(_) => {}
        Does::Drips(bytes) => {
            for byte in bytes {
                if socket.write_all(&[*byte]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        Does::Floods(first, again) => {
            let _ = socket.write_all(first).await;
            while socket.write_all(again).await.is_ok() {}
        }
    }
}

async fn read_request(socket: &mut (impl AsyncRead + Unpin)) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return;
            }
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece).await {
            Ok(count) if count > 0 => bytes.extend_from_slice(&piece[..count]),
            _ => return,
        }
    }
}
