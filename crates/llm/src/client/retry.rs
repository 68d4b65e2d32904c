//! Whether and when to ask again.

use std::time::{Duration, SystemTime};

use reqwest::header::{HeaderMap, HeaderName, RETRY_AFTER};

use crate::{Error, Limit};

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");

#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    pub(super) max_retries: u32,
    pub(super) first_wait: Duration,
    pub(super) max_wait: Duration,
}

impl Default for Policy {
    fn default() -> Self {
        Policy { max_retries: 2, first_wait: Duration::from_millis(500), max_wait: Duration::from_secs(30) }
    }
}

impl Policy {
    /// How long to wait before asking again after `attempts` that ended in `error`; `None` to give up.
    pub(super) fn wait(&self, error: &Error, attempts: u32) -> Option<Duration> {
        let asked = match error {
            Error::Refused(refusal) if refusal.retry_may_help() => refusal.retry_after,
            Error::Connect { .. } | Error::Timeout { limit: Limit::Connect, .. } => None,
            // The connection broke before the first byte: pools keep connections that the server has closed.
            Error::Cut { source: Some(_), .. } => None,
            _ => return None,
        };
        if attempts > self.max_retries || asked.is_some_and(|wait| wait > self.max_wait) {
            return None;
        }
        asked.or_else(|| {
            let doubled = self.first_wait.saturating_mul(1 << (attempts - 1).min(16));
            Some(doubled.min(self.max_wait).mul_f64(0.5 + 0.5 * fastrand::f64()))
        })
    }
}

/// The wait that the server asks for: milliseconds, seconds or an HTTP date.
pub(super) fn asked_wait(headers: &HeaderMap) -> Option<Duration> {
    let number = |name: &HeaderName| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    if let Some(wait) = number(&RETRY_AFTER_MS).and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok()) {
        return Some(wait);
    }
    if let Some(seconds) = number(&RETRY_AFTER) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(headers.get(RETRY_AFTER)?.to_str().ok()?.trim()).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Refusal;

    fn refusal(status: u16, retry_after: Option<Duration>) -> Error {
        let (message, kind, request_id) = (String::new(), None, None);
        Error::Refused(Box::new(Refusal { status, message, kind, request_id, retry_after, attempts: 1 }))
    }

    #[test]
    fn waits_double_and_have_a_cap() {
        let policy = Policy { max_retries: 9, ..Policy::default() };
        for (attempts, most) in [(1, 0.5), (2, 1.0), (3, 2.0), (9, 30.0)] {
            let wait = policy.wait(&refusal(529, None), attempts).unwrap().as_secs_f64();
            assert!((most / 2.0..=most).contains(&wait), "{attempts}: {wait}");
        }
    }

    #[test]
    fn only_what_may_help_is_repeated() {
        let policy = Policy::default();
        let second = Duration::from_secs(1);
        assert_eq!(policy.wait(&refusal(429, Some(second)), 2), Some(second));
        assert_eq!(policy.wait(&refusal(429, Some(second)), 3), None);
        assert_eq!(policy.wait(&refusal(429, Some(second * 3600)), 1), None);
        assert_eq!(policy.wait(&refusal(400, None), 1), None);
        assert_eq!(policy.wait(&Error::cut(), 1), None);
        let late = Error::Timeout { limit: Limit::FirstByte, after: second };
        assert_eq!(policy.wait(&late, 1), None);
    }

    #[test]
    fn the_wait_is_read_in_every_form() {
        let read = |name: &'static str, value: &str| {
            asked_wait(&HeaderMap::from_iter([(HeaderName::from_static(name), value.parse().unwrap())]))
        };
        assert_eq!(read("retry-after", "2"), Some(Duration::from_secs(2)));
        assert_eq!(read("retry-after", "0.5"), Some(Duration::from_millis(500)));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        assert_eq!(read("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT"), Some(Duration::ZERO));
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(100));
        assert!((98..=100).contains(&read("retry-after", &soon).unwrap().as_secs()));
        assert_eq!(read("retry-after", "soon"), None);
        assert_eq!(read("retry-after", "-1"), None);
        assert_eq!(read("retry-after", "inf"), None);
    }
}
