//! What can go wrong between a request and the end of its answer.
//!
//! Three questions matter to a caller: what happened (the variant), whose fault it is ([`Error::fault`]) and whether
//! asking again may help ([`Error::retry_may_help`]). No text here ever holds an API key.

use std::fmt;
use std::time::Duration;

use thiserror::Error as ThisError;

/// Why a request got no (whole) answer.
#[derive(Debug, ThisError)]
#[non_exhaustive]
pub enum Error {
    /// The client is set up in a way that cannot work.
    #[error("model client: {0}")]
    Setup(String),
    /// No connection to the provider.
    #[error("no connection to {host}")]
    Connect {
        /// The host (and port) that was tried.
        host: String,
        /// What the network said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A time limit passed.
    #[error("{limit} limit of {} passed without {}", Seconds(*.after), .limit.missed())]
    Timeout {
        /// Which limit.
        limit: Limit,
        /// How long it was.
        after: Duration,
    },
    /// The provider refused with an HTTP status.
    #[error("{0}")]
    Refused(Box<Refusal>),
    /// The provider reported an error after the answer had begun.
    #[error("the provider broke off: {message}{}", Kind(.kind))]
    Provider {
        /// Its message.
        message: String,
        /// Its word for the kind of error, such as `overloaded_error`.
        kind: Option<String>,
    },
    /// The answer stopped without saying why it ended; what came so far may be half of it.
    #[error("the answer was cut off before its end{}", Said(.said))]
    Cut {
        /// What else stood in the stream, if it was no event.
        said: Option<String>,
        /// What the network said, if it was the network.
        #[source]
        source: Option<Box<dyn std::error::Error + Send + Sync>>,
    },
    /// The answer is not what this provider's format looks like.
    #[error("the answer is not {expected}: `{excerpt}`")]
    Malformed {
        /// What it should have been.
        expected: &'static str,
        /// How it begins.
        excerpt: String,
    },
    /// One event, or a whole answer, is larger than the limit.
    #[error("the answer, or one event of it, is larger than {limit} bytes")]
    TooLarge {
        /// The limit in bytes.
        limit: usize,
    },
    /// A model that is no network client failed; scripted models and implementations by others use this.
    #[error("{message}")]
    Model {
        /// What happened.
        message: String,
        /// Whether asking again may help.
        retry: bool,
    },
}

/// The time limits of the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// From the start to an open connection.
    Connect,
    /// From the sent request to the first byte of the answer.
    FirstByte,
    /// From one byte of the answer to the next.
    Idle,
}

/// Where the fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The request or the set-up: asking again changes nothing.
    Caller,
    /// The provider, or whatever answers in its place.
    Provider,
    /// The way between.
    Network,
}

/// An answer with an HTTP status that is no success.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The provider's message, or how its answer begins if it has none.
    pub message: String,
    /// The provider's word for the kind of error, such as `rate_limit_error`.
    pub kind: Option<String>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
    /// How often it was asked in all.
    pub attempts: u32,
}

/// The statuses after which asking again may help.
const RETRY_STATUSES: [u16; 7] = [408, 429, 500, 502, 503, 504, 529];

impl Error {
    /// Whether the same request may succeed later.
    pub fn retry_may_help(&self) -> bool {
        match self {
            Error::Setup(_) | Error::TooLarge { .. } | Error::Malformed { .. } => false,
            Error::Connect { .. } | Error::Timeout { .. } | Error::Provider { .. } | Error::Cut { .. } => {
                true
            }
            Error::Refused(refusal) => refusal.retry_may_help(),
            Error::Model { retry, .. } => *retry,
        }
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        match self {
            Error::Setup(_) => Fault::Caller,
            Error::Connect { .. } | Error::Timeout { .. } => Fault::Network,
            Error::Cut { source, .. } => source.as_ref().map_or(Fault::Provider, |_| Fault::Network),
            Error::Provider { .. }
            | Error::Malformed { .. }
            | Error::TooLarge { .. }
            | Error::Model { .. } => Fault::Provider,
            Error::Refused(refusal) if refusal.retry_may_help() || refusal.status >= 500 => Fault::Provider,
            Error::Refused(_) => Fault::Caller,
        }
    }

    /// A [`Error::Cut`] without a cause.
    pub(crate) fn cut() -> Self {
        Error::Cut { said: None, source: None }
    }

    /// This error with every text that a server wrote passed through `edit`.
    pub(crate) fn edit_texts(mut self, edit: impl Fn(&mut String)) -> Self {
        match &mut self {
            Error::Refused(refusal) => edit(&mut refusal.message),
            Error::Provider { message, .. } => edit(message),
            Error::Malformed { excerpt, .. } => edit(excerpt),
            Error::Cut { said, .. } => said.iter_mut().for_each(edit),
            Error::Setup(_)
            | Error::Connect { .. }
            | Error::Timeout { .. }
            | Error::TooLarge { .. }
            | Error::Model { .. } => {}
        }
        self
    }

    /// A [`Error::Malformed`] that quotes the beginning of `text`.
    pub(crate) fn malformed(expected: &'static str, text: &str) -> Self {
        Error::Malformed { expected, excerpt: excerpt(text) }
    }
}

impl Refusal {
    /// Whether the same request may succeed later.
    pub fn retry_may_help(&self) -> bool {
        RETRY_STATUSES.contains(&self.status)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the provider answered {}: {}{}", self.status, self.message, Kind(&self.kind))?;
        if let Some(id) = &self.request_id {
            write!(f, ", request {id}")?;
        }
        if self.attempts > 1 {
            write!(f, ", asked {} times", self.attempts)?;
        }
        match self.retry_after {
            Some(wait) => write!(f, "; asking again may help after {}", Seconds(wait)),
            None if self.retry_may_help() => f.write_str("; asking again later may help"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Limit::Connect => "connect",
            Limit::FirstByte => "first-byte",
            Limit::Idle => "idle",
        })
    }
}

impl Limit {
    fn missed(self) -> &'static str {
        match self {
            Limit::Connect => "a connection",
            Limit::FirstByte => "an answer",
            Limit::Idle => "a further byte",
        }
    }
}

/// How `text` begins, on one line and short enough for a message.
pub(crate) fn excerpt(text: &str) -> String {
    const LONGEST: usize = 160;
    let (mut short, mut length, mut gap) = (String::new(), 0, false);
    for c in text.chars() {
        if c.is_whitespace() {
            gap = length > 0;
            continue;
        }
        if length >= LONGEST {
            short.push('…');
            break;
        }
        if std::mem::take(&mut gap) {
            short.push(' ');
            length += 1;
        }
        short.push(c);
        length += 1;
    }
    short
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_millis() as f64 / 1000.0)
    }
}

struct Kind<'a>(&'a Option<String>);

impl fmt::Display for Kind<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |kind| write!(f, " ({kind})"))
    }
}

struct Said<'a>(&'a Option<String>);

impl fmt::Display for Said<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |said| write!(f, "; it also said `{said}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_which_limit_and_whether_to_retry() {
        let late = Error::Timeout { limit: Limit::FirstByte, after: Duration::from_millis(1500) };
        assert_eq!(late.to_string(), "first-byte limit of 1.5 s passed without an answer");
        let refusal = Refusal {
            status: 429,
            message: "slow down".into(),
            kind: Some("rate_limit_error".into()),
            request_id: Some("req_1".into()),
            retry_after: Some(Duration::from_secs(2)),
            attempts: 3,
        };
        let text = "the provider answered 429: slow down (rate_limit_error), request req_1, asked 3 times; \
                    asking again may help after 2 s";
        assert_eq!(Error::Refused(Box::new(refusal)).to_string(), text);
    }

    #[test]
    fn excerpts_are_short_and_on_one_line() {
        assert_eq!(excerpt("  <html>\n  <b>no</b> "), "<html> <b>no</b>");
        assert_eq!(excerpt(&"é".repeat(500)).chars().count(), 161);
        assert_eq!(excerpt("a\n ".repeat(9).trim()), "a a a a a a a a a");
        assert!(excerpt(&"ab ".repeat(500)).chars().count() <= 162);
        assert!(std::mem::size_of::<Error>() <= 80);
    }
}
