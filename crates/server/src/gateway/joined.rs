//! What has arrived together goes on together.
//!
//! The HTTP client hands out one chunk at a time, and the HTTP server writes whenever there is no more for the moment:
//! each chunk of a stream would be a write of its own, although many came in one packet. So when a chunk is there, the
//! tasks that are ready get their turn first, among them the one that reads the connection and may bring the next; the
//! chunk goes on when none of them has more to do. Nothing waits for the network.

use bytes::{Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use hyper::body::{Body, Frame, SizeHint};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker, ready};

/// So much at once is enough.
const ENOUGH: usize = 64 << 10;

/// A body whose chunks are joined, as far as they are there.
pub(super) struct Joined<B: Body> {
    inner: B,
    /// The chunk that waits, by itself: most often it is the only one, which need not be copied.
    first: Bytes,
    /// Once there are several: all of them.
    more: BytesMut,
    /// Set once a chunk waits: the others' turn.
    others: Option<Arc<Turn>>,
    /// What came behind the chunks that wait.
    next: Option<Option<Result<Frame<Bytes>, B::Error>>>,
}

impl<B: Body<Data = Bytes> + Unpin> Joined<B> {
    /// The body around this one.
    pub(super) fn new(inner: B) -> Joined<B> {
        Joined { inner, first: Bytes::new(), more: BytesMut::new(), others: None, next: None }
    }

    fn n_waiting(&self) -> usize {
        self.first.len().saturating_add(self.more.len())
    }

    fn add(&mut self, data: Bytes) {
        if self.n_waiting() == 0 {
            self.first = data;
            return;
        }
        if self.more.is_empty() {
            self.more.reserve(4096);
            self.more.extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(&data);
    }

    fn take(&mut self) -> Frame<Bytes> {
        self.others = None;
        Frame::data(match self.more.is_empty() {
            true => std::mem::take(&mut self.first),
            false => self.more.split().freeze(),
        })
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Joined<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if let Some(next) = this.next.take() {
            return Poll::Ready(next);
        }
        loop {
            let polled = Pin::new(&mut this.inner).poll_frame(context);
            let waits = this.n_waiting() > 0;
            if polled.is_pending() && waits {
                return match &this.others {
                    Some(others) if others.is_over(context) => Poll::Ready(Some(Ok(this.take()))),
                    Some(_) => Poll::Pending,
                    None => {
                        this.others = Some(Turn::begin(context));
                        Poll::Pending
                    }
                };
            }
            let behind = match ready!(polled) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.add(data);
                        if this.n_waiting() >= ENOUGH {
                            return Poll::Ready(Some(Ok(this.take())));
                        }
                        continue;
                    }
                    Err(trailers) => Some(Ok(trailers)),
                },
                end => end,
            };
            if !waits {
                return Poll::Ready(behind);
            }
            this.next = Some(behind);
            return Poll::Ready(Some(Ok(this.take())));
        }
    }

    fn is_end_stream(&self) -> bool {
        self.n_waiting() == 0 && self.next.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.size_hint();
        let waiting = u64::try_from(self.n_waiting()).unwrap_or(u64::MAX);
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(waiting));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(waiting));
        }
        hint
    }
}

/// The turn that other tasks get. Being polled again does not end it: the HTTP server asks twice in a row.
#[derive(Default)]
struct Turn {
    is_over: AtomicBool,
    task: AtomicWaker,
}

impl Turn {
    /// The runtime ends it when no task on this thread is ready.
    fn begin(context: &Context<'_>) -> Arc<Turn> {
        let turn = Arc::new(Turn::default());
        turn.task.register(context.waker());
        let waker = Waker::from(Arc::clone(&turn));
        // the first poll is what leaves the waker with the runtime
        let _ = pin!(tokio::task::yield_now()).poll(&mut Context::from_waker(&waker));
        turn
    }

    fn is_over(&self, context: &Context<'_>) -> bool {
        self.task.register(context.waker());
        self.is_over.load(Ordering::Acquire)
    }
}

impl Wake for Turn {
    fn wake(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt;
    use std::collections::VecDeque;
    use tokio::sync::mpsc::Receiver;

    /// Plays what an HTTP client's body does, poll by poll; a dot is a poll with nothing there.
    struct Played(VecDeque<&'static str>);

    impl Body for Played {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            match self.0.pop_front() {
                None => Poll::Ready(None),
                Some(".") => {
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                Some("cut") => Poll::Ready(Some(Err("cut"))),
                Some("trailers") => Poll::Ready(Some(Ok(Frame::trailers(http::HeaderMap::new())))),
                Some(text) => Poll::Ready(Some(Ok(Frame::data(Bytes::from(text))))),
            }
        }
    }

    /// What is read, frame by frame, by a task that polls `eager` times in each of its turns.
    async fn check(steps: &[&'static str], want: &[&str]) {
        for eager in [1, 2, 5] {
            let mut body = Joined::new(Played(steps.iter().copied().collect()));
            let mut got = Vec::new();
            loop {
                let read = std::future::poll_fn(|context| {
                    for _ in 1..eager {
                        if let Poll::Ready(read) = Pin::new(&mut body).poll_frame(context) {
                            return Poll::Ready(read);
                        }
                    }
                    Pin::new(&mut body).poll_frame(context)
                });
                let Some(frame) = read.await else { break };
                got.push(match frame.map(Frame::into_data) {
                    Ok(Ok(data)) => String::from_utf8(data.to_vec()).unwrap(),
                    Ok(Err(_)) => "trailers".to_owned(),
                    Err(error) => error.to_owned(),
                });
            }
            assert_eq!(got, want, "{steps:?}, polled {eager} times a turn");
        }
    }

    #[tokio::test]
    async fn what_is_there_at_once_is_joined_and_nothing_is_lost() {
        check(&[], &[]).await;
        check(&["a"], &["a"]).await;
        check(&["a", "b", "c"], &["abc"]).await;
        check(&[".", ".", "a"], &["a"]).await;
        check(&["a", "b", "cut"], &["ab", "cut"]).await;
        check(&["a", ".", "trailers"], &["a", "trailers"]).await;
        check(&["trailers"], &["trailers"]).await;
        check(&["a", "", "b"], &["ab"]).await;
    }

    struct Channel(Receiver<Bytes>);

    impl Body for Channel {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            self.0.poll_recv(context).map(|text| text.map(|text| Ok(Frame::data(text))))
        }
    }

    /// A task beside it brings the chunks, each when it is asked for, as the client's connection does.
    #[tokio::test]
    async fn who_reads_the_connection_gets_a_turn() {
        let (give, take) = tokio::sync::mpsc::channel::<Bytes>(1);
        let (go, begun) = tokio::sync::oneshot::channel();
        tokio::spawn(async move {
            for text in ["a", "b", "c"] {
                give.send(Bytes::from(text)).await.unwrap();
            }
            begun.await.unwrap();
            for text in ["d", "e"] {
                give.send(Bytes::from(text)).await.unwrap();
            }
        });
        let mut body = Joined::new(Channel(take));
        let reader = tokio::spawn(async move {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
            go.send(()).unwrap();
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "de");
            assert!(body.frame().await.is_none());
        });
        reader.await.unwrap();
    }

    #[tokio::test]
    async fn memory_is_bounded() {
        const LONG: &str = match std::str::from_utf8(&[b'x'; ENOUGH / 2]) {
            Ok(long) => long,
            Err(_) => "",
        };
        check(&[LONG, LONG, LONG], &[&LONG.repeat(2), LONG]).await;
    }
}
