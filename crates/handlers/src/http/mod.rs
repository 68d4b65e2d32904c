//! Hooks that ask an endpoint.
//!
//! | part | contract |
//! |---|---|
//! | request | POST to `url`, the event as JSON; `headers` as written; signed when `secret_env` names a variable with a secret (the `sign` module has the scheme) |
//! | verdict | a status 2xx and one JSON object with a `decision`; at pre_response with `append` / `send`, or nothing |
//! | fault at a gate | another status, no content, a web page, other text, a compressed or cut reply, more than 64 KiB |
//! | watched event | any status 2xx is fine, whatever the body |
//! | time | the hook's limit is for everything together: name, connection, head and body |
//! | redirects | not followed |
//! | addresses | loopback and private ones only with `allow_private`; link-local ones, metadata services and what is no single host never. Names are looked up anew for each connection, and only a checked address is connected to |
//! | proxies | those of the environment are not used: they would look names up unchecked |
//! | connections | kept and used again |
//! | again | 429 and 503 with `Retry-After`, once, if the wait fits into the hook's limit. At watched events also what may pass by itself (refused connections, 5xx), twice, with growing pauses |
//!
//! A hook that fails again and again rests for a while, see [`crate::breaker`].

mod body;
mod network;
mod reply;
mod sign;
#[cfg(test)]
mod tests;

pub use network::{Network, check_url};

use crate::breaker::{BreakerLimits, Guarded};
use hookgate_core::future::BoxFuture;
use hookgate_core::handler::{Answer, Call, Fault, Handler, HandlerKind, HandlerSpec, HttpUrl};
use hookgate_core::point::Stage;
use reply::{Again, Miss};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Url};
use serde_json::Value;
use sign::Secret;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The first pause before a repeat that nobody asked for.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// Requests for one watched event.
const MOST_TRIES: u32 = 3;
/// A repeat needs at least this much time after its pause.
const LEAST_TIME: Duration = Duration::from_millis(20);
/// Headers that are not a hook's to set.
const OWN_HEADERS: [&str; 12] = [
    "host",
    "content-length",
    "content-type",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "accept-encoding",
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
];

/// An http hook's handler.
#[derive(Debug)]
struct HttpHandler {
    client: Client,
    url: Url,
    body: Option<Value>,
    headers: HeaderMap,
    secret: Option<Secret>,
}

/// The maker of http handlers for a [`Workshop`](crate::workshop::Workshop).
pub fn maker(
    network: Network,
) -> impl Fn(&HandlerSpec, &Path) -> Result<Arc<dyn Handler>, String> + Send + Sync + 'static {
    move |spec, _| {
        let HandlerKind::Http { url, body, headers, secret_env, allow_private } = &spec.kind else {
            return Err("is no http handler".into());
        };
        let secret = secret_env.as_deref().map(|name| secret(name, std::env::var(name).ok())).transpose()?;
        let url = match url {
            HttpUrl::Written(url) => url.clone(),
            HttpUrl::Env(name) => std::env::var(name)
                .map_err(|_| format!("url_env: the variable `{name}` is not set, or is no text"))?,
        };
        let handler = HttpHandler::new(&network, &url, headers, secret, *allow_private)?;
        let handler = HttpHandler { body: body.clone(), ..handler };
        Ok(Arc::new(Guarded::new(Arc::new(handler), BreakerLimits::default())))
    }
}

fn secret(name: &str, value: Option<String>) -> Result<Secret, String> {
    let value = value.ok_or_else(|| format!("secret_env: the variable `{name}` is not set"))?;
    Secret::parse(&value).map_err(|why| format!("secret_env: the value of `{name}` {why}"))
}

impl HttpHandler {
    fn new(
        network: &Network,
        url: &str,
        headers: &BTreeMap<String, String>,
        secret: Option<Secret>,
        allow_private: bool,
    ) -> Result<HttpHandler, String> {
        let url = network::read_url(url, allow_private).map_err(|why| format!("url: {why}"))?;
        if let Some(why) = network.tls_fault().filter(|_| url.scheme() == "https") {
            return Err(format!("url: TLS cannot be set up here: {why}"));
        }
        let headers = read_headers(headers).map_err(|why| format!("headers: {why}"))?;
        Ok(HttpHandler { client: network.client(allow_private).clone(), url, body: None, headers, secret })
    }

    async fn ask_until(&self, call: Call<'_>, deadline: Instant) -> Result<Answer, Fault> {
        let id = sign::message_id(&call.facts.head().event_id, call.hook);
        let body = match &self.body {
            Some(written) => body::fill(written, call.facts).to_string().into_bytes(),
            None => call.json.as_bytes().to_vec(),
        };
        let stage = call.facts.point().stage();
        let mut tries = 1;
        loop {
            let miss = match self.post(&id, body.clone(), stage).await {
                Ok(answer) => return Ok(answer),
                Err(miss) => miss,
            };
            let pause = pause(miss.again, tries, stage);
            let left = deadline.saturating_duration_since(Instant::now());
            match pause.filter(|pause| pause.saturating_add(LEAST_TIME) < left) {
                Some(pause) => tokio::time::sleep(pause).await,
                None if miss.again == Again::Never => {
                    return Err(Fault::failed(miss.why, self.told(&miss, tries)));
                }
                None => return Err(Fault::passing(miss.why, self.told(&miss, tries))),
            }
            tries += 1;
        }
    }

    async fn post(&self, id: &str, body: Vec<u8>, stage: Stage) -> Result<Answer, Miss> {
        let mut request = self.client.post(self.url.clone()).headers(self.headers.clone());
        request = request.header("content-type", "application/json").header("accept", "application/json");
        request = request.header("webhook-id", id);
        if let Some(secret) = &self.secret {
            let timestamp = sign::now();
            request = request
                .header("webhook-timestamp", timestamp)
                .header("webhook-signature", secret.sign(id, timestamp, &body));
        }
        let response = request.body(body).send().await.map_err(|error| Miss::unsent(&error))?;
        reply::read(response, stage).await
    }

    /// The fault in words. Only the host is named: a path may be a secret.
    fn told(&self, miss: &Miss, tries: u32) -> String {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port().map(|port| format!(":{port}")).unwrap_or_default();
        let times = if tries > 1 { format!(" (asked {tries} times)") } else { String::new() };
        format!("{host}{port}: {}{times}", miss.detail)
    }
}

impl Handler for HttpHandler {
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Result<Answer, Fault>> {
        let now = Instant::now();
        let deadline = now.checked_add(call.within).unwrap_or(now);
        Box::pin(self.ask_until(call, deadline))
    }
}

/// How long to wait before asking again after this many tries; none to give up.
fn pause(again: Again, tries: u32, stage: Stage) -> Option<Duration> {
    match again {
        Again::After(wait) if tries == 1 => Some(wait),
        Again::Perhaps if stage == Stage::Watch && tries < MOST_TRIES => {
            let doubled = FIRST_PAUSE.saturating_mul(1 << tries.min(8));
            Some(doubled.mul_f64(0.5 + 0.5 * fastrand::f64()))
        }
        _ => None,
    }
}

fn read_headers(written: &BTreeMap<String, String>) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let wrong = |why: &str| format!("`{name}` {why}");
        let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong("is no header name"))?;
        if OWN_HEADERS.contains(&name.as_str()) {
            return Err(wrong("is set by Hookgate"));
        }
        let mut value = HeaderValue::try_from(value.as_str())
            .map_err(|_| wrong("has a value that no header can have"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}
