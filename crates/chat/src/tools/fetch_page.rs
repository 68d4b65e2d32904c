//! `fetch_page {"url"}`: gets a page from the web with GET and returns its status, type and text.
//!
//! The model, or a page that it read, chooses the address. So every hop is checked (see [`address`]), proxies of the
//! environment are not used (they would look names up unchecked), nothing but GET is sent, and no cookie or key.

use super::{Tool, ToolError, arguments};
use futures_util::future::BoxFuture;
use hookgate_handlers::address::{self, CheckedResolver, Refused};
use hookgate_llm::ToolSpec;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};
use rustls_platform_verifier::BuilderVerifierExt;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How [`FetchPage`] fetches.
#[derive(Debug, Clone)]
pub struct FetchPageSettings {
    /// Whether this machine and private networks may be fetched from. `false` by default.
    pub allow_private: bool,
    /// The limit for everything together. 20 seconds by default.
    pub timeout: Duration,
    /// How many redirects are followed. 5 by default.
    pub max_redirects: usize,
    /// How much of a page is read, in bytes. 1 MiB by default.
    pub body_limit: usize,
    /// How much of its text the model gets, in bytes. 64 KiB by default.
    pub text_limit: usize,
}

impl Default for FetchPageSettings {
    fn default() -> Self {
        FetchPageSettings {
            allow_private: false,
            timeout: Duration::from_secs(20),
            max_redirects: 5,
            body_limit: 1024 * 1024,
            text_limit: 64 * 1024,
        }
    }
}

/// The tool `fetch_page`.
#[derive(Debug, Clone)]
pub struct FetchPage {
    settings: FetchPageSettings,
    client: Client,
}

/// Why no [`FetchPage`] could be made.
#[derive(Debug, thiserror::Error)]
#[error("fetch_page: {0}")]
pub struct SetupError(String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    url: String,
}

impl FetchPage {
    /// The tool with these settings.
    ///
    /// # Errors
    /// TLS cannot be set up, for example because the system has no certificates.
    pub fn new(settings: FetchPageSettings) -> Result<FetchPage, SetupError> {
        let tls_error = |error: rustls::Error| SetupError(format!("TLS cannot be set up: {error}"));
        let tls =
            rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .and_then(|builder| builder.with_platform_verifier())
                .map_err(tls_error)?
                .with_no_client_auth();
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .dns_resolver(Arc::new(CheckedResolver::system(settings.allow_private)))
            .redirect(redirect::Policy::none())
            .no_proxy()
            .user_agent(concat!("hookgate/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| SetupError(error.to_string()))?;
        Ok(FetchPage { settings, client })
    }

    async fn fetch(&self, url: &str) -> Result<Value, ToolError> {
        let mut url = Url::parse(url).map_err(|error| {
            ToolError(format!("`{url}` is no URL ({error}); give one like `https://example.com/`"))
        })?;
        for _ in 0..=self.settings.max_redirects {
            let response = self.get(&url).await?;
            match target(&response, &url)? {
                Some(next) => url = next,
                None => return self.page(response, &url).await,
            }
        }
        Err(ToolError(format!("more than {} redirects", self.settings.max_redirects)))
    }

    async fn get(&self, url: &Url) -> Result<Response, ToolError> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(ToolError(format!("`{}:` cannot be fetched; only http: and https:", url.scheme())));
        }
        let host = url.host_str().unwrap_or_default();
        address::check_host(host, self.settings.allow_private)
            .map_err(|refused| ToolError(refused.to_string()))?;
        let sent =
            self.client.get(url.clone()).header("accept", "text/*, application/json, */*;q=0.5").send().await;
        sent.map_err(|error| explain(host, &error))
    }

    async fn page(&self, mut response: Response, url: &Url) -> Result<Value, ToolError> {
        let status = response.status().as_u16();
        let content_type = header(&response, &CONTENT_TYPE).unwrap_or_default();
        let encoding = header(&response, &CONTENT_ENCODING).filter(|encoding| encoding != "identity");
        if let Some(encoding) = encoding {
            return Err(ToolError(format!(
                "the page came compressed ({encoding}) though that was not asked for"
            )));
        }
        let mut bytes = Vec::new();
        let mut more = false;
        while let Some(chunk) = response.chunk().await.map_err(|error| explain(url.as_str(), &error))? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > self.settings.body_limit {
                bytes.truncate(self.settings.body_limit);
                more = true;
                break;
            }
        }
        if bytes.contains(&0) {
            let kind = if content_type.is_empty() { "of unknown type" } else { &content_type };
            return Err(ToolError(format!("status {status}, but the content is binary ({kind})")));
        }
        let whole = bytes.len();
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        let cut = arguments::cut(&mut text, self.settings.text_limit);
        let mut page =
            json!({ "status": status, "url": url.as_str(), "content_type": content_type, "text": text });
        if let Some(fields) = page.as_object_mut().filter(|_| cut || more) {
            let kept = text_len(fields);
            let size = if more { format!("more than {whole}") } else { whole.to_string() };
            fields.insert("note".into(), format!("cut: the first {kept} of {size} bytes").into());
        }
        Ok(page)
    }
}

impl Tool for FetchPage {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "fetch_page".into(),
            description:
                "Gets a web page (http or https, GET) and returns status, url after redirects, content_type \
                          and text. Long pages are cut."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "url": { "type": "string", "description": "The page, such as https://example.com/." },
                },
                "required": ["url"],
                "additionalProperties": false,
            }),
        }
    }

    fn call(&self, args: Map<String, Value>) -> BoxFuture<'_, Result<Value, ToolError>> {
        Box::pin(async move {
            let Arguments { url } = arguments::read(args)?;
            match tokio::time::timeout(self.settings.timeout, self.fetch(&url)).await {
                Ok(done) => done,
                Err(_) => Err(ToolError(format!(
                    "the page was not complete after {} s",
                    self.settings.timeout.as_secs_f32()
                ))),
            }
        })
    }
}

/// Where a redirect leads; none for a page.
fn target(response: &Response, from: &Url) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = header(response, &LOCATION) else { return Ok(None) };
    let next = from.join(&location).map_err(|error| {
        ToolError(format!("`{from}` redirects to `{location}`, which is no URL ({error})"))
    })?;
    Ok(Some(next))
}

fn header(response: &Response, name: &reqwest::header::HeaderName) -> Option<String> {
    response.headers().get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
}

fn text_len(page: &Map<String, Value>) -> usize {
    page.get("text").and_then(Value::as_str).map_or(0, str::len)
}

/// What went wrong, in words for the model: the innermost cause says most.
fn explain(host: &str, error: &reqwest::Error) -> ToolError {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    loop {
        if let Some(refused) = cause.downcast_ref::<Refused>() {
            return ToolError(refused.to_string());
        }
        match cause.source() {
            Some(deeper) => cause = deeper,
            None => break,
        }
    }
    let text = cause.to_string();
    let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
    ToolError(format!("`{host}` cannot be fetched: {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    /// A server on loopback; gives its base URL.
    async fn serve() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut socket, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut buffer = vec![0; 4096];
                    let n = socket.read(&mut buffer).await.unwrap_or(0);
                    let asked = String::from_utf8_lossy(&buffer[..n]).into_owned();
                    let path = asked.split(' ').nth(1).unwrap_or_default().to_owned();
                    let _ = socket.write_all(&answer(&path).await).await;
                });
            }
        });
        base
    }

    async fn answer(path: &str) -> Vec<u8> {
        let page = |kind: &str, body: &[u8]| {
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), body].concat()
        };
        let redirect = |to: &str| {
            format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
                .into_bytes()
        };
        match path {
            "/page" => page("text/html; charset=utf-8", "<p>hé</p>".as_bytes()),
            "/big" => page("text/plain", &vec![b'x'; 3000]),
            "/image" => page("image/png", b"\x89PNG\0"),
            "/hop" => redirect("/page"),
            "/loop" => redirect("/loop"),
            "/metadata" => redirect("http://169.254.169.254/latest/"),
            "/file" => redirect("file:///etc/passwd"),
            "/slow" => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                Vec::new()
            }
            "/cut" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_vec(),
            "/gzip" => b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 1\r\n\r\nx".to_vec(),
            _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 5\r\nconnection: close\r\n\r\nnone\n".to_vec(),
        }
    }

    fn settings() -> FetchPageSettings {
        FetchPageSettings {
            allow_private: true,
            timeout: Duration::from_secs(1),
            body_limit: 2000,
            text_limit: 1000,
            ..FetchPageSettings::default()
        }
    }

    async fn call(settings: FetchPageSettings, url: String) -> Result<Value, ToolError> {
        let Value::Object(args) = json!({ "url": url }) else { unreachable!() };
        FetchPage::new(settings).unwrap().call(args).await
    }

    async fn fails(settings: FetchPageSettings, url: String, expected: &str) {
        let error = call(settings, url).await.unwrap_err().0;
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
    }

    #[tokio::test]
    async fn pages_come_with_status_type_and_text() {
        let base = serve().await;
        let page = call(settings(), format!("{base}/hop")).await.unwrap();
        assert_eq!(
            page,
            json!({
                "status": 200, "url": format!("{base}/page"),
                "content_type": "text/html; charset=utf-8", "text": "<p>hé</p>",
            })
        );
        let missing = call(settings(), format!("{base}/none")).await.unwrap();
        assert_eq!((&missing["status"], &missing["text"]), (&json!(404), &json!("none\n")));
        let big = call(settings(), format!("{base}/big")).await.unwrap();
        assert_eq!(big["text"].as_str().unwrap().len(), 1000);
        assert_eq!(big["note"], "cut: the first 1000 of more than 2000 bytes");
    }

    #[tokio::test]
    async fn what_is_no_page_is_told() {
        let base = serve().await;
        fails(settings(), format!("{base}/image"), "binary (image/png)").await;
        fails(settings(), format!("{base}/loop"), "more than 5 redirects").await;
        fails(settings(), format!("{base}/file"), "only http: and https:").await;
        fails(settings(), format!("{base}/slow"), "not complete after 1 s").await;
        fails(settings(), format!("{base}/cut"), "cannot be fetched").await;
        fails(settings(), format!("{base}/gzip"), "came compressed (gzip)").await;
        fails(settings(), "example.com".into(), "is no URL").await;
        fails(settings(), "ftp://example.com/".into(), "only http: and https:").await;
        fails(settings(), "http://127.0.0.1:1/".into(), "refused").await;
    }

    #[tokio::test]
    async fn private_addresses_are_refused_at_each_hop() {
        let base = serve().await;
        let port = base.rsplit(':').next().unwrap().to_owned();
        let strict = FetchPageSettings { allow_private: false, ..settings() };
        fails(
            strict.clone(),
            format!("{base}/page"),
            "127.0.0.1 is a loopback address, which is not allowed",
        )
        .await;
        fails(strict.clone(), format!("http://2130706433:{port}/page"), "loopback").await;
        fails(strict.clone(), format!("http://[::ffff:127.0.0.1]:{port}/page"), "loopback").await;
        fails(strict, format!("http://localhost:{port}/page"), "`localhost` is at ").await;
        fails(settings(), format!("{base}/metadata"), "a cloud metadata service").await;
        call(settings(), format!("http://localhost:{port}/page")).await.unwrap();
    }
}
