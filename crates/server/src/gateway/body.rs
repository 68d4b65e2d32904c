//! Bodies on their way through.

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;

/// Any error of a body.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;
/// A body that goes somewhere.
pub(crate) type Body = UnsyncBoxBody<Bytes, BoxError>;

/// A body of these bytes.
pub(crate) fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// What comes in goes on as it comes.
pub(super) fn passing(incoming: Incoming) -> Body {
    incoming.map_err(|error| -> BoxError { Box::new(error) }).boxed_unsync()
}

/// Why a body could not be read whole.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotRead {
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the body broke off: {0}")]
    Cut(String),
}

/// Reads a body whole.
pub(super) async fn read(incoming: Incoming, most: usize) -> Result<Bytes, NotRead> {
    match Limited::new(incoming, most).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(NotRead::TooLarge(most)),
        Err(error) => Err(NotRead::Cut(error.to_string())),
    }
}
