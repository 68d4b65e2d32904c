//! Error bodies that several wires share.

use serde_json::{Value, json};

use super::ErrorKind;

/// An error as OpenAI's wires write it.
pub(super) fn openai_error(kind: ErrorKind, message: &str) -> Value {
    let (word, code) = match kind {
        ErrorKind::Refused => ("invalid_request_error", Some("content_filter")),
        ErrorKind::BadRequest => ("invalid_request_error", None),
        ErrorKind::Unauthorized => ("authentication_error", Some("invalid_api_key")),
        ErrorKind::Forbidden => ("permission_error", None),
        ErrorKind::NotFound => ("invalid_request_error", Some("not_found")),
        ErrorKind::TooLarge => ("invalid_request_error", Some("request_too_large")),
        ErrorKind::Busy => ("rate_limit_error", Some("rate_limit_exceeded")),
        ErrorKind::Internal => ("server_error", None),
        ErrorKind::Upstream => ("server_error", Some("bad_gateway")),
        ErrorKind::Unavailable => ("server_error", Some("unavailable")),
        ErrorKind::Late => ("server_error", Some("timeout")),
    };
    json!({ "error": { "message": message, "type": word, "param": null, "code": code } })
}
