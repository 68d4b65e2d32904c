//! Asking the provider, once or again in the same client's name.

use super::Shared;
use super::body::full;
use super::driven::Driven;
use super::upstream::{NoAnswer, Outgoing, Upstream};
use bytes::Bytes;
use hookgate_llm::proxy::{Middle, Odd, RequestChange, rewritten};
use http::Response;
use http::header;
use serde_json::Value;
use std::sync::Arc;

/// A request that can be asked again.
pub(super) struct Asking {
    pub(super) shared: Arc<Shared>,
    pub(super) middle: &'static dyn Middle,
    pub(super) upstream: Arc<Upstream>,
    pub(super) outgoing: Outgoing,
    /// The body as it came.
    pub(super) bytes: Bytes,
    /// The same without its compression.
    pub(super) plain: Bytes,
    /// The same, read.
    pub(super) body: Value,
}

impl Asking {
    /// Changes the request. What is not changed stays byte for byte as it came.
    pub(super) fn change(&mut self, changes: &[RequestChange]) -> Result<(), Odd> {
        if changes.is_empty() {
            return Ok(());
        }
        self.middle.change(&mut self.body, changes)?;
        let plain = String::from_utf8_lossy(&self.plain);
        self.plain = rewritten(&plain, &self.body).into();
        self.bytes = self.plain.clone();
        self.outgoing.headers.remove(header::CONTENT_LENGTH);
        self.outgoing.headers.remove(header::CONTENT_ENCODING);
        Ok(())
    }

    /// Sends it.
    pub(super) async fn send(&self) -> Result<Response<Driven>, NoAnswer> {
        self.shared.courier.send(&self.upstream, self.outgoing.clone(), full(self.bytes.clone())).await
    }
}
