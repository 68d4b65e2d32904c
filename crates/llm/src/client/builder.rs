//! Setting up a client.

use std::time::Duration;

use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::redirect::Policy as Redirects;
use secrecy::{ExposeSecret, SecretString};

use super::{Client, Limits, retry, tls};
use crate::wire::Wire;
use crate::{Error, Provider, sse};

/// Sets up a [`Client`]. Everything has a default except what the provider insists on: its key.
#[derive(Clone, Debug)]
#[must_use]
pub struct ClientBuilder {
    wire: &'static Wire,
    base_url: String,
    key: Option<SecretString>,
    /// Values are marked sensitive: they may be keys under another name.
    headers: Vec<(String, SecretString)>,
    limits: Limits,
    retry: retry::Policy,
    event_limit: usize,
    streaming: bool,
    proxy: bool,
}

impl ClientBuilder {
    pub(super) fn new(provider: Provider) -> Self {
        ClientBuilder {
            wire: provider.wire(),
            base_url: provider.default_base_url().into(),
            key: None,
            headers: Vec::new(),
            limits: Limits {
                connect: Duration::from_secs(10),
                first_byte: Duration::from_secs(120),
                idle: Duration::from_secs(60),
            },
            retry: retry::Policy::default(),
            event_limit: sse::DEFAULT_LIMIT,
            streaming: true,
            proxy: true,
        }
    }

    /// Where the server is, with or without `/v1` and a slash at the end. A path without a version gets `/v1`; a URL
    /// that already ends in the wire's path is taken as it is, and a query is kept.
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = url.into();
        self
    }

    /// The API key. It is never printed: not by `Debug`, not in an error, even if the server repeats it.
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        let key: String = key.into();
        self.key = Some(key.trim()).filter(|key| !key.is_empty()).map(|key| key.to_owned().into());
        self
    }

    /// A further header of every request; replaces one that the client would send.
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into().into()));
        self
    }

    /// The limit for opening a connection, name lookup and TLS included. 10 seconds by default.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.limits.connect = limit;
        self
    }

    /// The limit from asking to the first byte of the answer's body. 120 seconds by default.
    pub fn first_byte_timeout(mut self, limit: Duration) -> Self {
        self.limits.first_byte = limit;
        self
    }

    /// The limit from one byte of the answer to the next. 60 seconds by default.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.limits.idle = limit;
        self
    }

    /// How often a request that failed before the first byte is repeated where that may help. 2 by default.
    pub fn max_retries(mut self, n: u32) -> Self {
        self.retry.max_retries = n;
        self
    }

    /// The wait before the first repeat; each further one doubles it, with chance in it. Half a second by default.
    pub fn retry_wait(mut self, wait: Duration) -> Self {
        self.retry.first_wait = wait;
        self
    }

    /// The longest wait before a repeat. A server that asks for a longer one gets no repeat; the error says for how
    /// long it asked. 30 seconds by default.
    pub fn max_retry_wait(mut self, wait: Duration) -> Self {
        self.retry.max_wait = wait;
        self
    }

    /// The most bytes that one event, or an answer that is not streamed, may have. 16 MiB by default.
    pub fn event_limit(mut self, bytes: usize) -> Self {
        self.event_limit = bytes;
        self
    }

    /// Whether to ask for streams; `true` by default. Answers are read either way, whatever was asked for.
    pub fn streaming(mut self, yes: bool) -> Self {
        self.streaming = yes;
        self
    }

    /// Ignores the proxy variables of the environment. Loopback addresses never go through a proxy anyway.
    pub fn no_proxy(mut self) -> Self {
        self.proxy = false;
        self
    }

    /// The client.
    ///
    /// # Errors
    /// [`Error::Setup`] when the base URL, the key or a header is impossible, or TLS cannot be set up.
    pub fn build(self) -> Result<Client, Error> {
        let url = endpoint(&self.base_url, self.wire.path)?;
        let home = endpoint(self.wire.base_url, self.wire.path)?;
        let headers = self.all_headers()?;
        let mut http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config(url.scheme() == "https")?)
            .redirect(Redirects::none())
            .connect_timeout(self.limits.connect)
            .tcp_nodelay(true)
            .user_agent(concat!("hookgate/", env!("CARGO_PKG_VERSION")));
        if !self.proxy || is_loopback(&url) {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| Error::Setup(error.without_url().to_string()))?;
        Ok(Client {
            http,
            wire: self.wire,
            at_home: url.host_str() == home.host_str(),
            url,
            key: self.key,
            headers,
            streaming: self.streaming,
            event_limit: self.event_limit,
            limits: self.limits,
            retry: self.retry,
        })
    }

    fn all_headers(&self) -> Result<HeaderMap, Error> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = if self.streaming { "text/event-stream, application/json" } else { "application/json" };
        headers.insert(ACCEPT, HeaderValue::from_static(accept));
        for (name, value) in self.wire.headers {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        if let Some(key) = &self.key {
            let (name, prefix) = self.wire.key_header;
            headers.insert(name, secret_value("the API key", &format!("{prefix}{}", key.expose_secret()))?);
        }
        for (name, value) in &self.headers {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            let parsed = parsed.map_err(|_| Error::Setup(format!("`{name}` is no name for a header")))?;
            headers.insert(parsed, secret_value(&format!("header `{name}`"), value.expose_secret())?);
        }
        Ok(headers)
    }
}

fn secret_value(what: &str, text: &str) -> Result<HeaderValue, Error> {
    let value = HeaderValue::from_str(text);
    let mut value =
        value.map_err(|_| Error::Setup(format!("{what} has characters that no header can carry")))?;
    value.set_sensitive(true);
    Ok(value)
}

/// The URL of the requests under this base URL.
fn endpoint(base: &str, path: &str) -> Result<Url, Error> {
    let base = base.trim();
    let mut url = Url::parse(base).map_err(|error| {
        Error::Setup(format!(
            "base URL cannot be read ({error}); expected something like `http://127.0.0.1:8080/v1`"
        ))
    })?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(Error::Setup(format!(
            "base URL begins with `{}:`; expected http: or https:",
            url.scheme()
        )));
    }
    let mut full = url.path().trim_end_matches('/').to_owned();
    if !full.ends_with(&format!("/{path}")) {
        if !full.split('/').any(is_version) {
            full.push_str("/v1");
        }
        full.push('/');
        full.push_str(path);
    }
    url.set_path(&full);
    url.set_fragment(None);
    Ok(url)
}

/// `v1`, `v1beta`, `v4` and the like.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    address.map_or(host == "localhost" || host.ends_with(".localhost"), |ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_joined_sensibly() {
        let cases = [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("https://api.openai.com/v1/", "https://api.openai.com/v1/chat/completions"),
            ("http://localhost:11434", "http://localhost:11434/v1/chat/completions"),
            ("http://localhost:11434//", "http://localhost:11434/v1/chat/completions"),
            ("https://host/v1beta/openai/", "https://host/v1beta/openai/chat/completions"),
            ("https://host/api/paas/v4", "https://host/api/paas/v4/chat/completions"),
            ("https://host/openai", "https://host/openai/v1/chat/completions"),
            (
                "https://host/x/chat/completions?api-version=1",
                "https://host/x/chat/completions?api-version=1",
            ),
            ("https://host/vision", "https://host/vision/v1/chat/completions"),
        ];
        for (base, expected) in cases {
            assert_eq!(endpoint(base, "chat/completions").unwrap().as_str(), expected);
        }
        for base in ["", "localhost:80", "ftp://host", "http://", "/v1"] {
            assert!(matches!(endpoint(base, "messages"), Err(Error::Setup(_))), "{base}");
        }
    }

    #[test]
    fn loopback_is_known_in_every_spelling() {
        for (url, expected) in [
            ("http://127.0.0.1:1", true),
            ("http://2130706433", true),
            ("http://[::1]", true),
            ("http://[::ffff:127.0.0.1]", true),
            ("http://localhost", true),
            ("http://api.localhost", true),
            ("http://10.0.0.1", false),
            ("http://localhost.example", false),
        ] {
            assert_eq!(is_loopback(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }

    #[test]
    fn keys_are_never_printed() {
        let builder =
            Client::builder(Provider::Anthropic).api_key("sk-very-secret\n").header("x-token", "tok-secret");
        assert!(!format!("{builder:?}").contains("secret\""), "{builder:?}");
        let client = builder.clone().build().unwrap();
        assert!(!format!("{client:?} {builder:?}").contains("-secret"), "{client:?}");
        let error = builder.api_key("sk-secret\nx").build().unwrap_err().to_string();
        assert_eq!(error, "model client: the API key has characters that no header can carry");
    }
}
