//! Bodies on their way through.

use super::joined::Joined;
use super::patient::Patient;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Body as AnyBody;
use std::time::Duration;

/// Any error of a body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body that goes somewhere.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A body of these bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// What comes in goes on as it comes. It breaks off where nothing comes for `idle`.
pub(super) fn passing(
    incoming: impl AnyBody<Data = Bytes, Error = hyper::Error> + Unpin + Send + 'static,
    idle: Duration,
) -> Body {
    let joined = Joined::new(incoming).map_err(|error| -> BoxError { Box::new(error) });
    Patient::new(joined, idle).boxed_unsync()
}

/// Why a body could not be read whole.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRead {
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body broke off: {0}")]
    Cut(String),
    #[error("the body stopped coming for {} s", .0.as_secs_f64())]
    Late(Duration),
}

/// Reads a body whole: at most so many bytes, with no pause longer than `idle`.
pub(super) async fn read(
    mut incoming: impl AnyBody<Data = Bytes, Error = hyper::Error> + Unpin,
    most: usize,
    idle: Duration,
) -> Result<Bytes, NotRead> {
    let announced = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
    if announced > most {
        return Err(NotRead::TooLarge(most));
    }
    let mut first = Bytes::new();
    let mut more = Vec::new();
    loop {
        let frame = tokio::time::timeout(idle, incoming.frame()).await.map_err(|_| NotRead::Late(idle))?;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|error| NotRead::Cut(error.to_string()))?.into_data() else { continue };
        if first.len().saturating_add(more.len()).saturating_add(data.len()) > most {
            return Err(NotRead::TooLarge(most));
        }
        if first.is_empty() && more.is_empty() {
            // most bodies come in one piece, which need not be copied
            first = data;
            continue;
        }
        if more.is_empty() {
            more.reserve(announced.min(1 << 20));
            more.extend_from_slice(&std::mem::take(&mut first));
        }
        more.extend_from_slice(&data);
    }
    Ok(if more.is_empty() { first } else { more.into() })
}
