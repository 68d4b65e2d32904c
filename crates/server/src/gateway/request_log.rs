//! One structured line for each request, told when its answer is out or given up.

use super::body::{Body, BoxError};
use super::taking::Taking;
use super::{Happened, Shared, Story};
use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// What is said of a request.
#[derive(Debug)]
pub struct Line {
    shared: Arc<Shared>,
    begun: Instant,
    taking: Taking,
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
    /// What hookgate itself answered, or why it gave the client up.
    pub error: Option<String>,
    /// Why an answer under way was ended, once somebody ends it.
    pub(super) trouble: Arc<OnceLock<String>>,
    /// What happened meanwhile, where traces are wanted.
    pub story: Option<Arc<Story>>,
}

impl Line {
    pub(super) fn new(shared: &Arc<Shared>, method: &str, path: &str, taking: Taking) -> Line {
        Line {
            shared: Arc::clone(shared),
            begun: Instant::now(),
            taking,
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
            trouble: Arc::default(),
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
        if let (None, Some(trouble)) = (&self.error, self.trouble.get()) {
            self.complete = false;
            self.error = Some(trouble.clone());
        }
        if self.error.is_none() && self.taking.is_late() {
            // its last piece may have been given, but not taken
            self.complete = false;
            let most = self.shared.limits.client_idle.as_secs_f64();
            self.error = Some(format!("the client took nothing of its answer for {most} s"));
        }
        let shared = Arc::clone(&self.shared);
        shared.happened(&Happened::Request(self));
    }
}

/// So much at once is given to a client that has several streams: what it is given is buffered until it takes it.
const SLICE: usize = 8 << 10;

/// A body that tells the line when it ends, and frees its place among the requests that run at a time.
pub(super) struct Tracked {
    inner: Body,
    /// What is there and was not given yet.
    rest: Bytes,
    line: Line,
    broke_off: Option<BoxError>,
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl Tracked {
    pub(super) fn around(inner: Body, line: Line, permit: Option<tokio::sync::OwnedSemaphorePermit>) -> Body {
        Tracked { inner, rest: Bytes::new(), line, broke_off: None, _permit: permit }.boxed_unsync()
    }

    fn poll_inner(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            return Poll::Ready(Some(Ok(self.slice(rest))));
        }
        match Pin::new(&mut self.inner).poll_frame(context) {
            Poll::Ready(Some(Ok(frame))) if self.line.taking.is_stream() => {
                Poll::Ready(Some(Ok(match frame.into_data() {
                    Ok(data) => self.slice(data),
                    Err(trailers) => trailers,
                })))
            }
            polled => polled,
        }
    }

    fn slice(&mut self, mut data: Bytes) -> Frame<Bytes> {
        if data.len() > SLICE {
            self.rest = data.split_off(SLICE);
        }
        Frame::data(data)
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
        let polled = self.poll_inner(context);
        self.line.taking.gave(matches!(polled, Poll::Ready(Some(Ok(_)))));
        match &polled {
            Poll::Ready(None) => self.line.complete = true,
            Poll::Ready(Some(Ok(frame))) => {
                let more = frame.data_ref().map_or(0, |data| data.len() as u64);
                self.line.bytes = self.line.bytes.saturating_add(more);
                // who knows the length does not ask for the end
                self.line.complete = self.is_end_stream();
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
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let inner = self.inner.size_hint();
        let waiting = self.rest.len() as u64;
        let mut hint = SizeHint::new();
        hint.set_lower(inner.lower().saturating_add(waiting));
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper.saturating_add(waiting));
        }
        hint
    }
}
