//! What a reply means, and whether asking again can help.

use crate::address::Refused;
use crate::said::{self, cut};
use hookgate_core::handler::Answer;
use hookgate_core::point::Stage;
use reqwest::Response;
use reqwest::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use std::time::{Duration, SystemTime};

/// More is no verdict.
const LONGEST_BODY: usize = 64 * 1024;

/// A request that brought no answer.
#[derive(Debug)]
pub(super) struct Miss {
    /// Why.
    pub(super) why: String,
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
    pub(super) fn never(why: impl Into<String>) -> Miss {
        Miss { why: why.into(), again: Again::Never }
    }

    /// A request that did not come through.
    pub(super) fn unsent(error: &reqwest::Error) -> Miss {
        let mut cause: &(dyn std::error::Error + 'static) = error;
        loop {
            if let Some(refused) = cause.downcast_ref::<Refused>() {
                return Miss::never(refused.to_string());
            }
            if let Some(tls) = cause.downcast_ref::<rustls::Error>() {
                return Miss::never(format!("TLS failed: {tls}"));
            }
            match inner(cause) {
                Some(deeper) => cause = deeper,
                None => break,
            }
        }
        let text = cause.to_string();
        let text = text.split(" (os error").next().unwrap_or_default().to_lowercase();
        Miss { why: text, again: Again::Perhaps }
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
        return Err(Miss::never(format!("it answered {status}; redirects are not followed")));
    }
    if !status.is_success() {
        let again = match (status.as_u16(), asked_wait(response.headers())) {
            (429 | 503, Some(wait)) => Again::After(wait),
            (408 | 429 | 500..=504, _) => Again::Perhaps,
            _ => Again::Never,
        };
        return Err(Miss { why: format!("it answered {status}"), again });
    }
    let header =
        |name| response.headers().get(name).map(|v| String::from_utf8_lossy(v.as_bytes()).to_lowercase());
    let kind = header(CONTENT_TYPE).unwrap_or_default();
    if let Some(encoding) = header(CONTENT_ENCODING).filter(|encoding| encoding != "identity") {
        return watched(stage, format!("its reply is compressed ({encoding}), which was not asked for"));
    }
    let text = match body(response).await {
        Ok(text) => text,
        Err(why) => return watched(stage, why),
    };
    if kind.contains("html") {
        return watched(stage, "it answered with a web page, which is no verdict".into());
    }
    match stage {
        // whoever is only told something need not answer
        Stage::Watch => Ok(said::whole(&text).unwrap_or_default()),
        Stage::Shape if text.trim().is_empty() => Ok(Answer::default()),
        Stage::Gate if text.trim().is_empty() => {
            Err(Miss::never(format!("it answered {status} with nothing, and nothing is no verdict")))
        }
        Stage::Gate | Stage::Shape => {
            let excerpt = cut(text.trim(), 120);
            said::whole(&text).map_err(|why| Miss::never(format!("its reply {why}: {excerpt:?}")))
        }
    }
}

/// At a watched event a success is a success, whatever its body.
fn watched(stage: Stage, why: String) -> Result<Answer, Miss> {
    if stage == Stage::Watch { Ok(Answer::default()) } else { Err(Miss::never(why)) }
}

async fn body(mut response: Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    loop {
        match response.chunk().await {
            Ok(None) => return Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Err(error) => return Err(format!("its reply broke off: {}", Miss::unsent(&error).why)),
        }
        if bytes.len() > LONGEST_BODY {
            return Err(format!("its reply is longer than {} KiB", LONGEST_BODY / 1024));
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
