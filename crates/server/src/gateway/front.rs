//! Connections: TCP, TLS or a Unix socket in front; the gateway's own few pages; an end that lets answers finish.

use super::beginning::Beginning;
use super::body::{Body, full};
use super::taking::{Socket, Streams, Taking};
use super::{Gateway, Shared, handle};
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

/// Where clients connect. It is bound already, so that who starts a gateway knows its address.
#[derive(Debug)]
pub enum Listen {
    /// TCP, with or without TLS.
    Tcp(TcpListener, Option<Tls>),
    /// A Unix socket.
    Unix(UnixListener),
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Tls(TlsAcceptor);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// From PEM texts.
    ///
    /// # Errors
    /// When one of them is no PEM, or they do not fit together.
    pub fn new(certificates: &[u8], key: &[u8]) -> Result<Tls, String> {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let chain = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| format!("the certificate cannot be read: {error}"))?;
        if chain.is_empty() {
            return Err("the certificate file holds no certificate".to_owned());
        }
        let key =
            PrivateKeyDer::from_pem_slice(key).map_err(|error| format!("the key cannot be read: {error}"))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|config| config.with_no_client_auth().with_single_cert(chain, key))
            .map_err(|error| format!("certificate and key cannot be used: {error}"))?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls(TlsAcceptor::from(Arc::new(config))))
    }
}

impl Gateway {
    /// Serves until `stop` is done, then lets open answers finish for `drain` at most. Gives how many could not.
    ///
    /// # Errors
    /// When the listener fails for good.
    pub async fn serve(
        &self,
        listen: Listen,
        stop: impl Future<Output = ()>,
        drain: Duration,
    ) -> io::Result<usize> {
        let room = Arc::new(Semaphore::new(self.shared.limits.connections));
        let open = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let graceful = GracefulShutdown::new();
        let server = builder(&self.shared);
        tokio::pin!(stop);
        loop {
            // beyond the bound new connections wait in the system's queue
            let next = async {
                let permit = Arc::clone(&room).acquire_owned().await;
                (permit, accept(&listen).await)
            };
            let (permit, accepted) = tokio::select! {
                next = next => next,
                () = &mut stop => break,
            };
            let Ok(permit) = permit else { break };
            let connection = match accepted {
                Ok(connection) => connection,
                Err(error) if is_passing(&error) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let tls = match &listen {
                Listen::Tcp(_, tls) => tls.clone(),
                Listen::Unix(_) => None,
            };
            let (shared, server, watcher) = (Arc::clone(&self.shared), server.clone(), graceful.watcher());
            let counted = Counted::new(&open);
            tokio::spawn(async move {
                let _here = (permit, counted);
                let within = shared.limits.head;
                let connection = Socket::new(connection, shared.limits.client_idle);
                let taking = connection.taking();
                match tls {
                    None => serve_one(connection, taking, server, shared, watcher).await,
                    Some(Tls(acceptor)) => {
                        // a client that does not shake hands must not keep a place
                        if let Ok(Ok(stream)) =
                            tokio::time::timeout(within, acceptor.accept(connection)).await
                        {
                            serve_one(stream, taking, server, shared, watcher).await;
                        }
                    }
                }
            });
        }
        drop(listen);
        tokio::select! {
            // all are done, also those that are just being counted down
            () = graceful.shutdown() => return Ok(0),
            () = tokio::time::sleep(drain) => {}
        }
        Ok(open.load(std::sync::atomic::Ordering::Relaxed))
    }
}

/// One of the connections that are open.
struct Counted(Arc<std::sync::atomic::AtomicUsize>);

impl Counted {
    fn new(open: &Arc<std::sync::atomic::AtomicUsize>) -> Counted {
        open.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Counted(Arc::clone(open))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
    }
}

/// Anything bytes go through.
trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn accept(listen: &Listen) -> io::Result<Box<dyn Stream>> {
    match listen {
        Listen::Tcp(listener, _) => {
            let (stream, _) = listener.accept().await?;
            // small pieces must not wait for the client's acknowledgement of the last
            stream.set_nodelay(true)?;
            Ok(Box::new(stream))
        }
        Listen::Unix(listener) => Ok(Box::new(listener.accept().await?.0)),
    }
}

/// Faults of one connection, or of the moment: too many files are open.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::Interrupted
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotConnected
    ) || matches!(error.raw_os_error(), Some(23 | 24 | 12 | 105))
}

fn builder(shared: &Shared) -> auto::Builder<Streams> {
    let mut server = auto::Builder::new(Streams { most: shared.limits.client_idle });
    server
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.limits.head)
        .max_buf_size(shared.limits.max_head_bytes.max(8192))
        .max_headers(256);
    server
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_header_list_size(u32::try_from(shared.limits.max_head_bytes).unwrap_or(u32::MAX));
    server
}

async fn serve_one(
    stream: impl Stream + 'static,
    taking: Taking,
    server: auto::Builder<Streams>,
    shared: Arc<Shared>,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let stream = Beginning::within(shared.limits.head, stream);
    let service = service_fn(move |request: Request<Incoming>| {
        let (shared, taking) = (Arc::clone(&shared), taking.clone());
        async move {
            // here, and not before: this runs in the stream's own task
            let taking = taking.of_request();
            let response = match own_page(&shared, &request) {
                Some(page) => page,
                None => handle::handle(shared, request, taking).await,
            };
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let connection = server.serve_connection(TokioIo::new(stream), service);
    // what goes wrong on a connection is told by its requests
    let _ = watcher.watch(connection.into_owned()).await;
}

/// The gateway's own pages: whether it lives, whether it is ready, what it counted.
fn own_page(shared: &Shared, request: &Request<Incoming>) -> Option<Response<Body>> {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return None;
    }
    let page = |status: StatusCode, kind: &'static str, text: String| {
        let mut response = Response::new(full(text));
        *response.status_mut() = status;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Some(response)
    };
    match request.uri().path() {
        "/healthz" => page(StatusCode::OK, "text/plain", "ok\n".to_owned()),
        "/readyz" => match (shared.degraded)() {
            None => page(StatusCode::OK, "text/plain", "ready\n".to_owned()),
            // the last good hooks still hold, so it goes on; who looks sees that they are not the newest
            Some(_) if shared.tenants.are_several() => {
                page(StatusCode::OK, "text/plain", "degraded\n".to_owned())
            }
            Some(why) => page(StatusCode::OK, "text/plain", format!("degraded\n{why}\n")),
        },
        "/metrics" => {
            let metrics = shared.metrics.as_ref()?;
            page(StatusCode::OK, "application/openmetrics-text; version=1.0.0; charset=utf-8", metrics())
        }
        _ => None,
    }
}
