//! One structured line for each request, told when its answer is out or given up.

use super::body::{Body, BoxError};
use super::{Happened, Shared, Story};
use bytes::Bytes;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What is said of a request.
#[derive(Debug)]
pub struct Line {
    shared: Arc<Shared>,
    begun: Instant,
    /// Its id; events in the audit trail are numbered behind it.
    pub id: String,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The tenant, where there are several.
    pub tenant: Option<String>,
    /// The conversation; empty where hooks did not look.
    pub session: String,
    /// The model; empty where hooks did not look.
    pub model: String,
    /// The status of the answer.
    pub status: u16,
    /// Bytes of the answer's body.
    pub bytes: u64,
    /// How long the provider took for its answer's head.
    pub upstream: Option<Duration>,
    /// How long all took.
    pub took: Duration,
    /// The answer went out to its end.
    pub complete: bool,
    /// What hookgate itself answered.
    pub error: Option<String>,
    /// What happened meanwhile, where traces are wanted.
    pub story: Option<Arc<Story>>,
}

impl Line {
    pub(super) fn new(shared: &Arc<Shared>, method: &str, path: &str) -> Line {
        Line {
            shared: Arc::clone(shared),
            begun: Instant::now(),
            id: shared.next_id(),
            method: method.to_owned(),
            path: path.to_owned(),
            tenant: None,
            session: String::new(),
            model: String::new(),
            status: 0,
            bytes: 0,
            upstream: None,
            took: Duration::ZERO,
            complete: false,
            error: None,
            story: None,
        }
    }

    /// The provider's head is there.
    pub(super) fn answered(&mut self) {
        self.upstream = Some(self.begun.elapsed());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.took = self.begun.elapsed();
        let shared = Arc::clone(&self.shared);
        shared.happened(&Happened::Request(self));
    }
}

/// A body that tells the line when it ends, and frees its place among the requests that run at a time.
pub(super) struct Tracked {
    inner: Body,
    line: Line,
    broke_off: Option<BoxError>,
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Tracked {
    pub(super) fn around(inner: Body, line: Line, permit: Option<tokio::sync::OwnedSemaphorePermit>) -> Body {
        Tracked { inner, line, broke_off: None, _permit: permit }.boxed_unsync()
    }
}

impl http_body::Body for Tracked {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(error) = self.broke_off.take() {
            return Poll::Ready(Some(Err(error)));
        }
        let polled = Pin::new(&mut self.inner).poll_frame(context);
        match &polled {
            Poll::Ready(None) => self.line.complete = true,
            Poll::Ready(Some(Ok(frame))) => {
                let more = frame.data_ref().map_or(0, |data| data.len() as u64);
                self.line.bytes = self.line.bytes.saturating_add(more);
                // who knows the length does not ask for the end
                self.line.complete = self.inner.is_end_stream();
            }
            Poll::Ready(Some(Err(error))) => self.line.error = Some(error.to_string()),
            Poll::Pending => {}
        }
        if let Poll::Ready(Some(Err(error))) = polled {
            // a server drops what it has not written yet when a body fails: what came before must be out first
            self.broke_off = Some(error);
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}
