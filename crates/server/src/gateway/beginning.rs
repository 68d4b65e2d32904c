//! Connections on which nothing begins. The HTTP server waits for a head only so long, but first it finds out which version
//! is spoken, and for that it would wait for ever.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

/// So many bytes tell the versions apart: HTTP/2 begins with them, and no request is shorter.
const ENOUGH: usize = 24;

/// A connection that fails if it does not begin in time.
pub(super) struct Beginning<S> {
    inner: S,
    n_read: usize,
    /// None once it has begun.
    limit: Option<Pin<Box<Sleep>>>,
}

impl<S> Beginning<S> {
    /// The connection around this one, which must begin within this time from now on.
    pub(super) fn within(limit: Duration, inner: S) -> Beginning<S> {
        Beginning { inner, n_read: 0, limit: Some(Box::pin(tokio::time::sleep(limit))) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Beginning<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if let Some(limit) = &mut self.limit {
            if polled.is_pending() && limit.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            self.n_read = self.n_read.saturating_add(buffer.filled().len().saturating_sub(before));
            if self.n_read >= ENOUGH {
                self.limit = None;
            }
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Beginning<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write_vectored(context, slices)
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
