//! Error objects, which all wires and the servers in between write alike, more or less.

use serde_json::Value;

use super::json::{is_something, text};
use crate::Error;
use crate::error::excerpt;

/// What an error object says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The message.
    pub message: String,
    /// The provider's word for the kind of error.
    pub kind: Option<String>,
    /// The provider's id of the request, where it stands in the body.
    pub request_id: Option<String>,
}

impl Failure {
    /// The error in an answer that should have been something else: its `error` field, unless that is null or empty.
    pub fn find(value: &Value) -> Option<Failure> {
        let error = value.get("error").filter(|error| is_something(error))?;
        Some(Failure { request_id: text(value, "request_id").map(Into::into), ..Self::from_object(error) })
    }

    /// Reads the body of an answer that is known to be an error; any text will do.
    pub fn from_body(body: &[u8]) -> Failure {
        let body = String::from_utf8_lossy(body);
        match super::json::parse(&body) {
            Some(value) => Self::find(&value).unwrap_or_else(|| Self::from_object(&value)),
            None => Self::from_text(&body),
        }
    }

    /// A message without more.
    pub(crate) fn from_text(message: &str) -> Failure {
        Failure { message: excerpt(message), kind: None, request_id: None }
    }

    fn from_object(error: &Value) -> Failure {
        let message = text(error, "message")
            .or_else(|| text(error, "detail"))
            .or_else(|| text(error, "error"))
            .or_else(|| error.as_str())
            .map_or_else(|| excerpt(&error.to_string()), Into::into);
        let kind = text(error, "type").or_else(|| text(error, "code")).or_else(|| text(error, "status"));
        Failure { message, kind: kind.map(Into::into), request_id: None }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Error::Provider { message: failure.message, kind: failure.kind }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(body: &str, message: &str, kind: Option<&str>) {
        let failure = Failure::from_body(body.as_bytes());
        assert_eq!((failure.message.as_str(), failure.kind.as_deref()), (message, kind), "{body}");
    }

    #[test]
    fn errors_are_read_in_every_shape() {
        check(r#"{"error":{"message":"no","type":"t","code":"c"}}"#, "no", Some("t"));
        check(r#"{"error":{"code":400,"message":"long","type":"x"}}"#, "long", Some("x"));
        check(r#"{"error":"plain"}"#, "plain", None);
        check(r#"{"object":"error","message":"no","type":"BadRequest"}"#, "no", Some("BadRequest"));
        check(r#"{"detail":"Not Found"}"#, "Not Found", None);
        check(r#"{"detail":[{"loc":["body"]}]}"#, r#"{"detail":[{"loc":["body"]}]}"#, None);
        check("<html> <b>Bad Gateway</b>", "<html> <b>Bad Gateway</b>", None);
        check("", "", None);
    }
}
