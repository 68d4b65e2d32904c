//! What a reply means, and whether asking again can help.

use crate::address::Refused;
use crate::said::{self, cut};
use hookgate_core::handler::{Answer, Why};
use hookgate_core::point::Stage;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use rustix::io::Errno;
use std::time::{Duration, SystemTime};

/// More is no verdict.
const LONGEST_BODY: usize = 64 * 1024;

/// A request that brought no answer.
#[derive(Debug)]
pub(super) struct Miss {
    /// Of which kind.
    pub(super) why: Why,
    /// What happened.
    pub(super) detail: String,
    /// Whether the same request may do better.
    pub(super) again: Again,
}

/// Whether the same request may do better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// It will not.
    Never,
    /// After the wait that the server asked for.
    After(Duration),
    /// Perhaps, if somebody has time.
    Perhaps,
}

impl Miss {
    pub(super) fn never(why: &'static str, detail: impl Into<String>) -> Miss {
        Miss { why: why.into(), detail: detail.into(), again: Again::Never }
    }

    /// A request that did not come through.
    pub(super) fn unsent(error: &reqwest::Error) -> Miss {
        let mut why = if error.is_connect() { NO_CONNECTION } else { NO_REPLY };
        let mut cause: &(dyn std::error::Error + 'static) = error;
        loop {
            if let Some(refused) = cause.downcast_ref::<Refused>() {
                return Miss::never("its address is not allowed", refused.to_string());
            }
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Miss::never(tls_words(tls), format!("TLS failed: {tls}"));
            }
            if let Some(io) = cause.downcast_ref::<std::io::Error>() {
                why = io_words(io).unwrap_or(why);
            }
            match inner(cause) {
                Some(deeper) => cause = deeper,
                None => break,
            }
        }
        let text = cause.to_string();
        let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
        Miss { why: why.into(), detail: text, again: Again::Perhaps }
    }
}

const NO_CONNECTION: &str = "no connection could be made";
const NO_REPLY: &str = "it gave no HTTP reply";

fn tls_words(error: &rustls::Error) -> &'static str {
    use rustls::CertificateError::{Expired, ExpiredContext};
    match error {
        rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. }) => "its certificate has expired",
        rustls::Error::InvalidCertificate(_) => "its certificate is not accepted",
        _ => "TLS failed",
    }
}

fn io_words(error: &std::io::Error) -> Option<&'static str> {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, UnexpectedEof,
    };
    match (error.kind(), Errno::from_io_error(error)) {
        (_, Some(Errno::MFILE | Errno::NFILE)) => Some("there are too many open files"),
        (ConnectionRefused, _) => Some("the connection was refused"),
        (ConnectionReset | ConnectionAborted | BrokenPipe | UnexpectedEof, _) => {
            Some("the connection broke off")
        }
        _ => None,
    }
}

/// The cause of an error. An IO error shows what it wraps only when asked for it.
fn inner<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a (dyn std::error::Error + 'static)> {
    if let Some(io) = error.downcast_ref::<std::io::Error>()
        && let Some(wrapped) = io.get_ref()
    {
        return Some(wrapped);
    }
    error.source()
}

/// Reads a reply.
pub(super) async fn read(response: Response, stage: Stage) -> Result<Answer, Miss> {
    let status = response.status();
    if status.is_redirection() {
        let detail = format!("it answered {status}; redirects are not followed");
        return Err(Miss::never("it answered with a redirect, and redirects are not followed", detail));
    }
    if !status.is_success() {
        let again = match (status.as_u16(), asked_wait(response.headers())) {
            (429 | 503, Some(wait)) => Again::After(wait),
            (408 | 429 | 500..=504, _) => Again::Perhaps,
            _ => Again::Never,
        };
        let why = Why::numbered("it answered with status", status.as_u16().into());
        return Err(Miss { why, detail: format!("it answered {status}"), again });
    }
    match text(response).await {
        // whoever is only told something need not answer
        Ok(text) if stage == Stage::Watch => Ok(said::whole(&text).unwrap_or_default()),
        Err(_) if stage == Stage::Watch => Ok(Answer::default()),
        Ok(text) if text.trim().is_empty() => match stage {
            Stage::Shape | Stage::Watch => Ok(Answer::default()),
            Stage::Gate => {
                let detail = format!("it answered {status} with nothing, and nothing is no verdict");
                Err(Miss::never("its reply is empty", detail))
            }
        },
        Ok(text) => said::whole(&text).map_err(|why| {
            let excerpt = cut(text.trim(), 120);
            Miss::never("its reply is no verdict", format!("its reply {why}: {excerpt:?}"))
        }),
        Err(miss) => Err(miss),
    }
}

/// The text of a reply.
async fn text(response: Response) -> Result<String, Miss> {
    let header =
        |name| response.headers().get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).to_lowercase());
    let kind = header(CONTENT_TYPE).unwrap_or_default();
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        let detail = format!("its reply is compressed ({encoding}), which was not asked for");
        return Err(Miss::never("its reply is compressed, which was not asked for", detail));
    }
    let text = body(response).await?;
    if kind.contains("html") {
        let detail = "it answered with a web page, which is no verdict";
        return Err(Miss::never(detail, detail));
    }
    Ok(text)
}

async fn body(mut response: Response) -> Result<String, Miss> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Err(error) => {
                let detail = format!("its reply broke off: {}", Miss::unsent(&error).detail);
                return Err(Miss::never("its reply broke off", detail));
            }
        }
        if bytes.len() > LONGEST_BODY {
            let detail = format!("its reply is longer than {} KiB", LONGEST_BODY / 1024);
            return Err(Miss::never("its reply is too long", detail));
        }
    }
}

/// The wait that the server asks for: seconds or a date.
fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(text).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}
