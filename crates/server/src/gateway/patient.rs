//! A body that is waited for only so long: who stops in the middle of one must not keep a place for ever.

use super::body::{BoxError, NotRead};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// A body with a longest pause.
pub(super) struct Patient<B> {
    inner: B,
    idle: Duration,
    /// Since when nothing has come; none while something comes.
    since: Option<Instant>,
    /// Made at the first pause. It is moved on only when it is over: to set it anew for each piece costs more.
    clock: Option<Pin<Box<Sleep>>>,
}

impl<B> Patient<B> {
    /// The body around this one, with no pause longer than `idle`.
    pub(super) fn new(inner: B, idle: Duration) -> Patient<B> {
        Patient { inner, idle, since: None, clock: None }
    }
}

impl<B: Body<Data = Bytes, Error = BoxError> + Unpin> Body for Patient<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(context) {
            this.since = None;
            return Poll::Ready(frame);
        }
        let idle = this.idle;
        let due = *this.since.get_or_insert_with(Instant::now) + idle;
        let clock = this.clock.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        loop {
            ready!(clock.as_mut().poll(context));
            if clock.deadline() >= due {
                return Poll::Ready(Some(Err(Box::new(NotRead::Late(idle)).into())));
            }
            clock.as_mut().reset(due);
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::body::full;
    use http_body_util::{BodyExt, StreamBody};

    #[tokio::test(start_paused = true)]
    async fn pauses_are_allowed_and_too_long_ones_end_it() {
        let idle = Duration::from_secs(10);
        let pieces = futures_util::stream::unfold([1, 9, 9, 3600].into_iter(), |mut pauses| async move {
            tokio::time::sleep(Duration::from_secs(pauses.next()?)).await;
            Some((Ok::<_, BoxError>(Frame::data(Bytes::from("x"))), pauses))
        });
        let mut body = Patient::new(StreamBody::new(Box::pin(pieces)), idle);
        for _ in 0..3 {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "x");
        }
        let began = tokio::time::Instant::now();
        let error = body.frame().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), "the body stopped coming for 10 s");
        assert_eq!(began.elapsed(), idle);
        let mut body = Patient::new(full("x"), idle);
        assert!(body.frame().await.unwrap().is_ok() && body.frame().await.is_none());
    }
}
