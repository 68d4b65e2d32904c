//! Clients that take nothing of their answers. They are waited for only so long: each holds a connection, the provider's
//! answer behind it and a place among the requests that run.
//!
//! There are two limits, because HTTP/2 has two kinds of room. Where the system takes no more bytes for a connection, the
//! connection ends ([`Socket`]). Where a client reads a connection but gives one stream of it no room, that stream ends
//! ([`Streams`]). What the system buffers counts as taken, and a client that takes a little now and then is slow, not
//! gone; of a stream of several, 8 KiB are the least that is seen to be taken.

use hyper::rt::Executor;
use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// Whether a client takes its answer; clones are of the same answer.
#[derive(Debug, Clone, Default)]
pub(super) struct Taking {
    /// Set when its connection took nothing for too long.
    socket: Arc<AtomicBool>,
    /// Its stream, where there are several in a connection.
    stream: Option<Arc<Stream>>,
}

/// One stream of a connection.
#[derive(Debug, Default)]
struct Stream {
    n_given: AtomicU64,
    /// What was given last may still wait; else the provider is waited for.
    waits: AtomicBool,
    late: AtomicBool,
}

tokio::task_local! {
    /// The stream that a task is for.
    static STREAM: Arc<Stream>;
}

impl Taking {
    /// Of the request that is read in this task, over this connection.
    pub(super) fn of_request(&self) -> Taking {
        Taking { socket: Arc::clone(&self.socket), stream: STREAM.try_with(Arc::clone).ok() }
    }

    /// Whether it is one stream of several: then what it is given at once is buffered whole.
    pub(super) fn is_stream(&self) -> bool {
        self.stream.is_some()
    }

    /// The client was given something (or nothing is there for it).
    pub(super) fn gave(&self, something: bool) {
        if let Some(stream) = &self.stream {
            stream.n_given.fetch_add(u64::from(something), Ordering::Relaxed);
            stream.waits.store(something, Ordering::Relaxed);
        }
    }

    /// It took nothing for too long.
    pub(super) fn is_late(&self) -> bool {
        let stream = self.stream.as_ref().is_some_and(|stream| stream.late.load(Ordering::Relaxed));
        stream || self.socket.load(Ordering::Relaxed)
    }
}

/// A connection whose writes fail once nothing was taken for too long.
pub(super) struct Socket<S> {
    inner: S,
    most: Duration,
    taking: Taking,
    /// Runs while nothing is taken.
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Socket<S> {
    /// The connection around this one, which takes something at least every `most`.
    pub(super) fn new(inner: S, most: Duration) -> Socket<S> {
        Socket { inner, most, taking: Taking::default(), pause: None }
    }

    /// How its client takes its answers.
    pub(super) fn taking(&self) -> Taking {
        self.taking.clone()
    }

    fn watched(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            self.pause = None;
            return written;
        }
        let most = self.most;
        let pause = self.pause.get_or_insert_with(|| Box::pin(tokio::time::sleep(most)));
        ready!(pause.as_mut().poll(context));
        self.taking.socket.store(true, Ordering::Relaxed);
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Socket<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Socket<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.watched(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, slices);
        self.watched(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

/// Runs the streams of connections that have several, each until its client has taken nothing for too long.
#[derive(Debug, Clone)]
pub(super) struct Streams {
    /// How long that is.
    pub(super) most: Duration,
}

impl<F> Executor<F> for Streams
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, stream: F) {
        let state = Arc::<Stream>::default();
        tokio::spawn(STREAM.scope(Arc::clone(&state), watched(stream, state, self.most)));
    }
}

/// Dropping a stream that has not ended resets it, so that the client knows.
async fn watched(stream: impl Future<Output = ()>, state: Arc<Stream>, most: Duration) {
    let mut stream = pin!(stream);
    let mut pause = pin!(tokio::time::sleep(most));
    let mut since = None;
    std::future::poll_fn(|context| {
        if stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        if !state.waits.load(Ordering::Relaxed) {
            since = None;
            return Poll::Pending;
        }
        let given = Some(state.n_given.load(Ordering::Relaxed));
        if since != given {
            since = given;
            pause.as_mut().reset(Instant::now() + most);
        }
        ready!(pause.as_mut().poll(context));
        state.late.store(true, Ordering::Relaxed);
        Poll::Ready(())
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const MOST: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_takes_nothing_ends_and_a_slow_one_does_not() {
        let (gateway, mut client) = duplex(4);
        let mut socket = Socket::new(gateway, MOST);
        let taking = socket.taking();
        let reader = tokio::spawn(async move {
            let mut got = Vec::new();
            for _ in 0..4 {
                tokio::time::sleep(Duration::from_secs(9)).await;
                let mut piece = [0; 2];
                client.read_exact(&mut piece).await.unwrap();
                got.extend(piece);
            }
            (client, got)
        });
        // four are in between, and each further byte waits for the reader
        socket.write_all(b"abcdefghijkl").await.unwrap();
        let (_client, got) = reader.await.unwrap();
        assert_eq!(got, b"abcdefgh");
        assert!(!taking.is_late());
        let began = Instant::now();
        let error = socket.write_all(b"m").await.unwrap_err();
        assert_eq!((error.kind(), began.elapsed()), (io::ErrorKind::TimedOut, MOST));
        assert!(taking.is_late());
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_that_takes_nothing_ends_and_one_that_has_nothing_does_not() {
        let (tell, told) = tokio::sync::oneshot::channel();
        let began = Instant::now();
        Streams { most: MOST }.execute(async move {
            let taking = Taking::default().of_request();
            let pause = || tokio::time::sleep(Duration::from_secs(9));
            for _ in 0..3 {
                taking.gave(true);
                pause().await;
            }
            // the provider thinks
            taking.gave(false);
            tokio::time::sleep(Duration::from_secs(3600)).await;
            taking.gave(true);
            let _keeps = Teller(Some((tell, taking.clone())));
            std::future::pending::<()>().await;
        });
        let was_late = told.await.unwrap();
        assert_eq!((was_late, began.elapsed().as_secs()), (true, 27 + 3600 + 10));
    }

    /// Tells when it is dropped whether the client was late.
    struct Teller(Option<(tokio::sync::oneshot::Sender<bool>, Taking)>);

    impl Drop for Teller {
        fn drop(&mut self) {
            let (tell, taking) = self.0.take().unwrap();
            tell.send(taking.is_late()).unwrap();
        }
    }
}
