//! What has arrived together goes on together.
//!
//! A body hands out one chunk at a time, and the HTTP server writes whenever there is no more for the moment: each chunk
//! of a stream could be a write of its own, although many came in one packet. So what is there is taken, to the last
//! chunk, before anything goes on. Nothing waits: where no more is there at once, what was taken goes.

use bytes::{Bytes, BytesMut};
use hyper::body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// So much at once is enough.
const ENOUGH: usize = 64 << 10;

/// A body whose chunks are joined, as far as they are there.
pub(super) struct Joined<B: Body> {
    inner: B,
    /// The chunk that waits, by itself: most often it is the only one, which need not be copied.
    first: Bytes,
    /// Once there are several: all of them.
    more: BytesMut,
    /// What came behind the chunks that wait.
    next: Option<Option<Result<Frame<Bytes>, B::Error>>>,
}

impl<B: Body<Data = Bytes> + Unpin> Joined<B> {
    /// The body around this one.
    pub(super) fn new(inner: B) -> Joined<B> {
        Joined { inner, first: Bytes::new(), more: BytesMut::new(), next: None }
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
                return Poll::Ready(Some(Ok(this.take())));
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
        self.n_waiting() == 0
            && match &self.next {
                None => self.inner.is_end_stream(),
                Some(next) => next.is_none(),
            }
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;

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

    #[tokio::test]
    async fn memory_is_bounded() {
        const LONG: &str = match std::str::from_utf8(&[b'x'; ENOUGH / 2]) {
            Ok(long) => long,
            Err(_) => "",
        };
        check(&[LONG, LONG, LONG], &[&LONG.repeat(2), LONG]).await;
    }
}
