//! A connection to a provider is driven by whoever reads its answer.
//!
//! The HTTP client gives each connection a task of its own, and that hands the reader, who is another task, one chunk at a
//! time: a stream of 200 chunks would be 400 turns of tasks, with a write to the client behind most of them, although many
//! chunks come in one packet. So a reader that took a chunk drives the connection itself, within its own turn, and gets
//! at once whatever has arrived. The connection's task stays: it is what the network wakes, so a reader that pauses stops
//! nothing (HTTP/1 only; with HTTP/2 there is no such hand-over).
//!
//! The client has no word for "the task of this connection". [`Hands`] runs its tasks, and while it does, says which
//! one runs; the connection's stream ([`Line`]) is read by no other, takes note, and hands that on in the answer's
//! extensions.

use bytes::Bytes;
use http::{Response, Uri, Version};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::rt::{Executor, Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use std::cell::RefCell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::task::{Context, Poll, Waker, ready};
use tower_service::Service;

thread_local! {
    /// The task that is being polled on this thread.
    static RUNNING: RefCell<Option<Arc<Task>>> = const { RefCell::new(None) };
}

/// Runs the client's tasks in the runtime.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hands;

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Hands {
    fn execute(&self, future: F) {
        let state = State { future: Some(Box::pin(future)), waker: Waker::noop().clone() };
        tokio::spawn(Own(Arc::new(Task(Mutex::new(state)))));
    }
}

/// A task that others may drive too.
struct Task(Mutex<State>);

struct State {
    /// None once it is done.
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Of the runtime's task, which is woken whoever drives.
    waker: Waker,
}

impl Task {
    fn poll(self: &Arc<Task>, state: &mut State) -> Poll<()> {
        if let Some(future) = &mut state.future {
            let _running = Running::now(self);
            ready!(future.as_mut().poll(&mut Context::from_waker(&state.waker)));
            state.future = None;
        }
        Poll::Ready(())
    }

    /// Goes on with it now. Where its own turn is just running, in another thread, that will do.
    fn drive(self: &Arc<Task>) {
        if let Ok(mut state) = self.0.try_lock()
            && self.poll(&mut state).is_ready()
        {
            state.waker.wake_by_ref();
        }
    }
}

/// While it lives, a task counts as the one that runs.
struct Running(Option<Arc<Task>>);

impl Running {
    fn now(task: &Arc<Task>) -> Running {
        Running(RUNNING.replace(Some(Arc::clone(task))))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.set(self.0.take());
    }
}

/// The runtime's task for it.
struct Own(Arc<Task>);

impl Future for Own {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut state = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.waker.clone_from(context.waker());
        self.0.poll(&mut state)
    }
}

/// Where a connection's stream notes which task reads it.
#[derive(Clone, Default)]
struct Driver(Arc<OnceLock<Weak<Task>>>);

/// The stream of a connection.
pub(super) struct Line<S> {
    stream: S,
    driver: Driver,
}

impl<S: Connection> Connection for Line<S> {
    fn connected(&self) -> Connected {
        self.stream.connected().extra(self.driver.clone())
    }
}

impl<S: Read + Unpin> Read for Line<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        if self.driver.0.get().is_none() {
            let running = RUNNING.with_borrow(|task| task.as_ref().map(Arc::downgrade));
            let _ = running.map(|task| self.driver.0.set(task));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: Write + Unpin> Write for Line<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, bytes)
    }
}

/// Connects as the connector inside does.
#[derive(Debug, Clone)]
pub(super) struct Lines<C>(pub(super) C);

impl<C: Service<Uri>> Service<Uri> for Lines<C>
where
    C::Future: Send + 'static,
{
    type Response = Line<C::Response>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Line<C::Response>, C::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        let connecting = self.0.call(address);
        Box::pin(async { Ok(Line { stream: connecting.await?, driver: Driver::default() }) })
    }
}

/// The body of an answer.
pub(super) struct Driven {
    body: Incoming,
    task: Option<Arc<Task>>,
    /// A chunk was taken: the next may be there already.
    took: bool,
}

impl Driven {
    /// The answer with this body.
    pub(super) fn answer(mut response: Response<Incoming>) -> Response<Driven> {
        let driver = response.extensions_mut().remove::<Driver>();
        let driver = driver.filter(|_| response.version() < Version::HTTP_2);
        let task = driver.and_then(|driver| driver.0.get()?.upgrade());
        response.map(|body| Driven { body, task, took: false })
    }
}

impl Body for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let mut polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_pending()
            && self.took
            && let Some(task) = &self.task
        {
            task.drive();
            polled = Pin::new(&mut self.body).poll_frame(context);
        }
        self.took = polled.is_ready();
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::body::{self, full};
    use crate::gateway::joined::Joined;
    use http::Request;
    use http_body_util::BodyExt;
    use hyper_util::client::legacy::Client;
    use hyper_util::client::legacy::connect::HttpConnector;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    /// Asks a server that is played on one connection.
    async fn ask<F, P>(body: body::Body, play: P) -> Driven
    where
        F: Future<Output = ()> + Send + 'static,
        P: FnOnce(TcpStream) -> F + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { play(listener.accept().await.unwrap().0).await });
        let client: Client<_, body::Body> = Client::builder(Hands).build(Lines(HttpConnector::new()));
        let request = Request::post(format!("http://{address}/")).body(body).unwrap();
        Driven::answer(client.request(request).await.unwrap()).into_body()
    }

    async fn skip_head(stream: &mut TcpStream) {
        let mut seen = Vec::new();
        while !seen.ends_with(b"\r\n\r\n") {
            seen.push(stream.read_u8().await.unwrap());
        }
    }

    const HEAD: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

    #[tokio::test]
    async fn what_came_in_one_packet_is_read_in_one_turn() {
        let body = ask(full(""), |mut stream| async move {
            skip_head(&mut stream).await;
            stream.write_all(HEAD.as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            let chunks: String = (100..300).map(|n| format!("3\r\n{n}\r\n")).collect();
            stream.write_all(format!("{chunks}0\r\n\r\n").as_bytes()).await.unwrap();
        });
        let mut body = Joined::new(body.await);
        let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!(first, (100..300).map(|n| n.to_string()).collect::<String>());
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn a_reader_that_pauses_stops_nothing() {
        const LENGTH: usize = 8 << 20;
        let (done, is_done) = tokio::sync::oneshot::channel();
        let mut body = ask(full(vec![b'x'; LENGTH]), |mut stream| async move {
            skip_head(&mut stream).await;
            stream.write_all(format!("{HEAD}1\r\na\r\n").as_bytes()).await.unwrap();
            tokio::time::sleep(Duration::from_millis(50)).await;
            stream.read_exact(&mut vec![0; LENGTH]).await.unwrap();
            stream.write_all(b"1\r\nb\r\n0\r\n\r\n").await.unwrap();
            done.send(()).unwrap();
        })
        .await;
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "a");
        // the reader took all that is there, and drove in vain; then it is busy elsewhere
        assert!(futures_util::poll!(body.frame()).is_pending());
        tokio::time::timeout(Duration::from_secs(20), is_done).await.unwrap().unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "b");
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn who_drops_the_answer_hangs_up() {
        let (ended, end) = tokio::sync::oneshot::channel();
        let mut body = ask(full(""), |mut stream| async move {
            skip_head(&mut stream).await;
            stream.write_all(format!("{HEAD}1\r\na\r\n1\r\nb\r\n").as_bytes()).await.unwrap();
            assert_eq!(stream.read(&mut [0]).await.unwrap(), 0);
            ended.send(()).unwrap();
        })
        .await;
        assert!(body.frame().await.is_some());
        drop(body);
        tokio::time::timeout(Duration::from_secs(20), end).await.unwrap().unwrap();
    }
}
