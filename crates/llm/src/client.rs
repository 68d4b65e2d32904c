//! Asking a provider over HTTP.
//!
//! One [`Client`] speaks one provider's format to one base URL and may be shared. It reads no environment except the
//! usual proxy variables, follows no redirect, and repeats a request only while nothing of the answer has come. The
//! answer is read as it is written: an event stream, or JSON from a server that does not stream. Its length has no
//! bound; single events and the time between two bytes have.

mod builder;
mod flow;
mod retry;
mod tls;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use futures_core::future::BoxFuture;
use reqwest::header::{HeaderMap, HeaderName};
use reqwest::{Response, Url};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::{Instant, timeout, timeout_at};

pub use builder::ClientBuilder;

use crate::wire::{Failure, Wire};
use crate::{DeltaStream, Error, Limit, Model, Provider, Refusal, Request};

/// The most that is read of an answer that is an error.
const ERROR_BODY_LIMIT: usize = 64 * 1024;

/// Headers in which providers put their id of a request.
const REQUEST_ID: [HeaderName; 2] =
    [HeaderName::from_static("x-request-id"), HeaderName::from_static("request-id")];

/// A model behind HTTP. Made by [`Client::builder`].
pub struct Client {
    http: reqwest::Client,
    wire: &'static Wire,
    url: Url,
    /// The URL is the provider's own, not an imitator's.
    at_home: bool,
    key: Option<SecretString>,
    headers: HeaderMap,
    streaming: bool,
    event_limit: usize,
    limits: Limits,
    retry: retry::Policy,
}

/// How long the client waits for what.
#[derive(Clone, Copy, Debug)]
struct Limits {
    connect: Duration,
    first_byte: Duration,
    idle: Duration,
}

impl Client {
    /// A builder for a client of this provider, with the provider's own base URL.
    ///
    /// ```
    /// use hookgate_llm::{Client, Provider};
    /// let client = Client::builder(Provider::OpenAiChat).base_url("http://127.0.0.1:8080").build()?;
    /// assert_eq!(client.url(), "http://127.0.0.1:8080/v1/chat/completions");
    /// # Ok::<(), hookgate_llm::Error>(())
    /// ```
    pub fn builder(provider: Provider) -> ClientBuilder {
        ClientBuilder::new(provider)
    }

    /// Where requests go.
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    async fn ask(&self, request: &Request) -> Result<DeltaStream, Error> {
        let body = self.body(request);
        let mut attempts = 0;
        loop {
            attempts += 1;
            let error = match self.attempt(body.clone()).await {
                Ok(stream) => return Ok(stream),
                Err(error) => self.without_key(error),
            };
            match self.retry.wait(&error, attempts) {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return Err(with_attempts(error, attempts)),
            }
        }
    }

    fn body(&self, request: &Request) -> Bytes {
        let mut body = (self.wire.encode)(request, self.streaming);
        if let Some(fields) = body.as_object_mut().filter(|_| self.at_home) {
            (self.wire.at_home)(fields);
        }
        body.to_string().into()
    }

    /// Asks once, and waits until the answer has begun.
    async fn attempt(&self, body: Bytes) -> Result<DeltaStream, Error> {
        let limits = &self.limits;
        let deadline = Instant::now() + limits.first_byte;
        let late = || Error::Timeout { limit: Limit::FirstByte, after: limits.first_byte };
        let request = self.http.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let sent = timeout_at(deadline, request.send()).await.map_err(|_| late())?;
        let mut response = sent.map_err(|error| self.send_error(error))?;
        if !response.status().is_success() {
            return Err(self.refused(response).await);
        }
        let first = timeout_at(deadline, response.chunk()).await.map_err(|_| late())?.map_err(broken)?;
        let settings = flow::Settings { wire: self.wire, idle: limits.idle, event_limit: self.event_limit };
        let scrub = self.scrubber();
        flow::open(response, first.unwrap_or_default().to_vec(), settings, scrub).await
    }

    fn send_error(&self, error: reqwest::Error) -> Error {
        if error.is_connect() && error.is_timeout() {
            return Error::Timeout { limit: Limit::Connect, after: self.limits.connect };
        }
        if error.is_builder() {
            return Error::Setup(error.without_url().to_string());
        }
        if !error.is_connect() {
            return broken(error);
        }
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let host = format!("{}{port}", self.url.host_str().unwrap_or_default());
        Error::Connect { host, source: Box::new(error.without_url()) }
    }

    async fn refused(&self, mut response: Response) -> Error {
        let status = response.status();
        let headers = std::mem::take(response.headers_mut());
        let mut body = Vec::new();
        while body.len() < ERROR_BODY_LIMIT {
            // A body that breaks off still says more than none.
            let Ok(Ok(Some(chunk))) = timeout(self.limits.idle, response.chunk()).await else { break };
            body.extend_from_slice(&chunk);
        }
        body.truncate(ERROR_BODY_LIMIT);
        let mut failure = Failure::from_body(&body);
        if status.is_redirection() {
            failure.message =
                "it redirects elsewhere, which is not followed; set the base URL to where it is".into();
        } else if failure.message.is_empty() {
            failure.message = status.canonical_reason().unwrap_or("no message").to_lowercase();
        }
        let id = REQUEST_ID.iter().find_map(|name| headers.get(name)?.to_str().ok());
        Error::Refused(Box::new(Refusal {
            status: status.as_u16(),
            message: failure.message,
            kind: failure.kind,
            request_id: id.map(Into::into).or(failure.request_id),
            retry_after: retry::asked_wait(&headers),
            attempts: 1,
        }))
    }

    /// Servers that repeat the key in their message must not carry it into a log.
    fn without_key(&self, error: Error) -> Error {
        (self.scrubber())(error)
    }

    fn scrubber(&self) -> flow::Scrub {
        let key = self.key.clone();
        Box::new(move |error| match key.as_ref().map(ExposeSecret::expose_secret) {
            Some(key) => error.edit_texts(|text| {
                if text.contains(key) {
                    *text = text.replace(key, "[api key]");
                }
            }),
            None => error,
        })
    }
}

impl Model for Client {
    fn name(&self) -> &str {
        self.wire.name
    }

    fn stream(&self, request: Request) -> BoxFuture<'_, Result<DeltaStream, Error>> {
        Box::pin(async move { self.ask(&request).await })
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("provider", &self.wire.name)
            .field("host", &self.url.host_str())
            .field("key", &self.key)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// The connection broke while an answer was due.
fn broken(error: reqwest::Error) -> Error {
    Error::Cut { said: None, source: Some(Box::new(error.without_url())) }
}

fn with_attempts(mut error: Error, attempts: u32) -> Error {
    if let Error::Refused(refusal) = &mut error {
        refusal.attempts = attempts;
    }
    error
}
