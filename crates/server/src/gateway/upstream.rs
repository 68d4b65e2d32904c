//! The providers behind the gateway, and the client that asks them.

use super::body::Body;
use super::driven::{Driven, Hands, Lines};
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Response, Uri, Version};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use rustls_platform_verifier::BuilderVerifierExt;
use secrecy::{ExposeSecret, SecretString};
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

/// A provider.
#[derive(Debug)]
pub struct Upstream {
    /// Where it is: scheme, host, port and a path that stands before every request's.
    base: Uri,
    /// Only requests under this path, which is taken away before they go on. Empty: all.
    mount: String,
    /// Only requests for these models: whole names, `*` at the end stands for any rest. Empty: all.
    models: Vec<String>,
    /// The key that the gateway keeps, so that agents never hold it.
    key: Option<SecretString>,
}

/// An address that cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("the upstream `{found}` is no address: expected http://HOST[:PORT][/PATH] or https://…")]
pub struct NoAddress {
    found: String,
}

impl Upstream {
    /// A provider at this address.
    ///
    /// # Errors
    /// [`NoAddress`] for anything but an http or https URL with a host.
    pub fn new(address: &str) -> Result<Upstream, NoAddress> {
        let wrong = || NoAddress { found: address.to_owned() };
        let base: Uri = address.parse().map_err(|_| wrong())?;
        let scheme = base.scheme_str().unwrap_or_default();
        if !matches!(scheme, "http" | "https") || base.authority().is_none() || base.query().is_some() {
            return Err(wrong());
        }
        Ok(Upstream { base, mount: String::new(), models: Vec::new(), key: None })
    }

    /// Only for requests under this path.
    #[must_use]
    pub fn under(mut self, mount: &str) -> Upstream {
        let mount = mount.trim_matches('/');
        self.mount = if mount.is_empty() { String::new() } else { format!("/{mount}") };
        self
    }

    /// Only for these models.
    #[must_use]
    pub fn for_models(mut self, models: Vec<String>) -> Upstream {
        self.models = models;
        self
    }

    /// With a key of its own: whatever key a client sends is replaced by it.
    #[must_use]
    pub fn with_key(mut self, key: SecretString) -> Upstream {
        self.key = Some(key);
        self
    }

    /// The address, for people.
    pub fn address(&self) -> String {
        self.base.to_string()
    }

    /// Whether the request's model must be known to choose it.
    pub(super) fn chooses_by_model(&self) -> bool {
        !self.models.is_empty()
    }

    /// The request's path without the mount, if it is one for this provider.
    pub(super) fn takes<'p>(&self, path: &'p str, model: Option<&str>) -> Option<&'p str> {
        let rest = match self.mount.as_str() {
            "" => path,
            mount => path.strip_prefix(mount).filter(|rest| rest.is_empty() || rest.starts_with('/'))?,
        };
        let fits = |pattern: &String| match (pattern.strip_suffix('*'), model) {
            (Some(start), Some(model)) => model.starts_with(start),
            (None, Some(model)) => model == pattern,
            // a request without a model fits the first that the path fits
            (_, None) => true,
        };
        (self.models.is_empty() || self.models.iter().any(fits)).then_some(rest)
    }

    /// The address of a request. A `/v1` that stands at the end of the base and at the beginning of the path is one.
    fn uri(&self, path: &str, query: Option<&str>) -> Result<Uri, http::Error> {
        let base = self.base.path().trim_end_matches('/');
        let path = match base.rsplit_once('/').map(|(_, last)| last).filter(|last| !last.is_empty()) {
            Some(last) => path
                .strip_prefix('/')
                .and_then(|path| path.strip_prefix(last))
                .filter(|rest| rest.starts_with('/'))
                .unwrap_or(path),
            None => path,
        };
        let slash = if path.starts_with('/') { "" } else { "/" };
        let whole = match query {
            Some(query) => format!("{base}{slash}{path}?{query}"),
            None => format!("{base}{slash}{path}"),
        };
        let mut parts = self.base.clone().into_parts();
        parts.path_and_query = Some(PathAndQuery::try_from(whole)?);
        Ok(Uri::from_parts(parts)?)
    }
}

/// What a request is, beside its body.
#[derive(Debug, Clone)]
pub(super) struct Outgoing {
    pub(super) method: Method,
    /// Without the mount.
    pub(super) path: String,
    pub(super) query: Option<String>,
    pub(super) headers: HeaderMap,
}

/// Why a provider gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("the upstream cannot be reached: {0}")]
    Unreachable(String),
    #[error("the upstream sent nothing for {} s", .0.as_secs_f64())]
    Late(Duration),
}

/// Asks providers over connections that are kept.
#[derive(Debug, Clone)]
pub(super) struct Courier {
    client: Client<Lines<HttpsConnector<HttpConnector>>, Body>,
    first_byte: Duration,
}

impl Courier {
    /// `first_byte`: how long a provider may think before its answer's head.
    pub(super) fn new(first_byte: Duration) -> Result<Courier, rustls::Error> {
        let connector = Lines(connector()?);
        let client = Client::builder(Hands)
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            // a provider that is gone without a word must not be asked for ever
            .http2_keep_alive_interval(Duration::from_secs(30))
            .http2_keep_alive_timeout(Duration::from_secs(20))
            .pool_idle_timeout(Duration::from_secs(60))
            .build(connector);
        Ok(Courier { client, first_byte })
    }

    /// Sends a request and waits for the answer's head.
    pub(super) async fn send(
        &self,
        upstream: &Upstream,
        outgoing: Outgoing,
        body: Body,
    ) -> Result<Response<Driven>, NoAnswer> {
        let unreachable = |error: &dyn std::error::Error| NoAnswer::Unreachable(whole_text(error));
        let own_key = upstream.key.is_some();
        let query =
            outgoing.query.as_deref().map(|query| if own_key { without_key(query) } else { query.into() });
        let query = query.filter(|query| !own_key || !query.is_empty());
        let uri = upstream.uri(&outgoing.path, query.as_deref()).map_err(|error| unreachable(&error))?;
        let mut request = Request::new(body);
        *request.method_mut() = outgoing.method;
        *request.uri_mut() = uri;
        *request.version_mut() = Version::HTTP_11;
        *request.headers_mut() = outgoing.headers;
        if let Some(key) = &upstream.key {
            let in_query = outgoing.query.as_deref().is_some_and(has_key);
            replace_key(request.headers_mut(), key, in_query, &outgoing.path);
        }
        match tokio::time::timeout(self.first_byte, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(Driven::answer(response)),
            Ok(Err(error)) => Err(unreachable(&error)),
            Err(_) => Err(NoAnswer::Late(self.first_byte)),
        }
    }
}

/// Connects to http and https addresses, with the system's certificates.
pub(crate) fn connector() -> Result<HttpsConnector<HttpConnector>, rustls::Error> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(Duration::from_secs(60)));
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(Duration::from_secs(10)));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_platform_verifier()?
        .with_no_client_auth();
    Ok(HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(tcp))
}

/// The headers that carry keys, on the wires there are.
const KEY_HEADERS: [&str; 3] = ["authorization", "x-api-key", "x-goog-api-key"];

fn is_key(pair: &str) -> bool {
    pair.starts_with("key=")
}

fn has_key(query: &str) -> bool {
    query.split('&').any(is_key)
}

/// The query without the client's key.
fn without_key(query: &str) -> Cow<'_, str> {
    if !has_key(query) {
        return query.into();
    }
    query.split('&').filter(|pair| !is_key(pair)).collect::<Vec<_>>().join("&").into()
}

/// Puts the gateway's key where the wire wants it. Clients of messages may send theirs as a bearer token, which the
/// provider does not take for an API key; only one wire has keys in the query, and it has a header for them too.
fn replace_key(headers: &mut HeaderMap, key: &SecretString, in_query: bool, path: &str) {
    let path = path.to_ascii_lowercase();
    let used = KEY_HEADERS.into_iter().find(|name| headers.contains_key(*name));
    let used = match used {
        _ if path.contains("/messages") => "x-api-key",
        Some(name) => name,
        None if in_query => "x-goog-api-key",
        None => "authorization",
    };
    for name in KEY_HEADERS {
        headers.remove(name);
    }
    let text = match used {
        "authorization" => format!("Bearer {}", key.expose_secret()),
        _ => key.expose_secret().to_owned(),
    };
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        headers.insert(HeaderName::from_static(used), value);
    }
}

/// The key that a client sent, as it stands in its header, or in `key` of the query.
pub(super) fn key_of<'r>(headers: &'r HeaderMap, query: Option<&'r str>) -> Option<&'r str> {
    let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = of("authorization").map(|value| match value.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
        _ => value,
    });
    let in_query = || query?.split('&').find_map(|pair| pair.strip_prefix("key="));
    bearer.or_else(|| of("x-api-key")).or_else(|| of("x-goog-api-key")).or_else(in_query)
}

/// The headers that concern one connection, beside those that it names itself.
const HOP_BY_HOP: [&str; 9] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Takes away what concerns only one connection (RFC 9110, 7.6.1).
pub(super) fn strip_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    // to look at the few that are there is less than to look for each that may be
    let own: Vec<HeaderName> =
        headers.keys().filter(|name| HOP_BY_HOP.contains(&name.as_str())).cloned().collect();
    for name in named.iter().chain(&own) {
        headers.remove(name);
    }
}

/// An error with all that stands behind it.
pub(crate) fn whole_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(deeper) = source {
        let next = deeper.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        source = deeper.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_joined_to_the_base_once() {
        let check = |base: &str, path: &str, want: &str| {
            let upstream = Upstream::new(base).unwrap();
            assert_eq!(upstream.uri(path, Some("a=b")).unwrap().to_string(), format!("{want}?a=b"));
        };
        check("http://h:1", "/v1/x", "http://h:1/v1/x");
        check("http://h/v1", "/v1/x", "http://h/v1/x");
        check("http://h/v1/", "/x", "http://h/v1/x");
        check("https://h/api/openai/v1", "/v1/x", "https://h/api/openai/v1/x");
        check("http://h/api", "/apiary", "http://h/api/apiary");
        check("http://h/v1", "/v1", "http://h/v1/v1");
    }

    #[test]
    fn requests_find_their_provider() {
        let check = |mount: &str, models: &[&str], path: &str, model: Option<&str>, want: Option<&str>| {
            let models = models.iter().map(|name| (*name).to_owned()).collect();
            let upstream = Upstream::new("http://h").unwrap().under(mount).for_models(models);
            assert_eq!(
                upstream.takes(path, model),
                want,
                "{mount} {models:?} {path} {model:?}",
                models = upstream.models
            );
        };
        check("", &[], "/v1/x", None, Some("/v1/x"));
        check("/openai/", &[], "/openai/v1/x", None, Some("/v1/x"));
        check("openai", &[], "/openaix/v1", None, None);
        check("", &["gpt-*", "o3"], "/v1", Some("gpt-5"), Some("/v1"));
        check("", &["gpt-*", "o3"], "/v1", Some("o3-mini"), None);
        check("", &["gpt-*"], "/v1", None, Some("/v1"));
    }

    #[test]
    fn only_web_addresses_are_upstreams() {
        for wrong in ["", "h", "ftp://h", "http://", "http://h?x=1", "/v1"] {
            assert!(Upstream::new(wrong).is_err(), "{wrong}");
        }
    }
}
