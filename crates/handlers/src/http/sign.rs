//! The signature of a request, by the Standard Webhooks scheme.
//!
//! | header | value |
//! |---|---|
//! | `webhook-id` | the event's id and the hook's, the same for a retry, so that a receiver can drop a double |
//! | `webhook-timestamp` | seconds since 1970, of this attempt |
//! | `webhook-signature` | `v1,` and base64 of HMAC-SHA256 over `ID.TIMESTAMP.BODY` |

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::{digest, hmac};
use std::fmt;
use std::fmt::Write;
use std::time::{Duration, SystemTime};

/// The key of one hook.
pub(super) struct Secret(hmac::Key);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

impl Secret {
    /// Reads a secret as the scheme writes it: base64, usually after `whsec_`.
    pub(super) fn parse(text: &str) -> Result<Secret, &'static str> {
        let text = text.trim();
        let encoded = text.strip_prefix("whsec_").unwrap_or(text);
        match STANDARD.decode(encoded) {
            Ok(key) if !key.is_empty() => Ok(Secret(hmac::Key::new(hmac::HMAC_SHA256, &key))),
            _ => Err("is no signing secret: expected `whsec_` and base64"),
        }
    }

    /// The value of `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: u64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

/// The value of `webhook-id`. What cannot stand in a header, or would be too long, is hashed.
pub(super) fn message_id(event: &str, hook: &str) -> String {
    if event.is_empty() {
        return format!("msg_{:032x}", fastrand::u128(..));
    }
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
    if plain(event) && plain(hook) && event.len().saturating_add(hook.len()) <= 200 {
        return format!("{event}:{hook}");
    }
    let mut context = digest::Context::new(&digest::SHA256);
    for part in [event, "\0", hook] {
        context.update(part.as_bytes());
    }
    let mut id = String::from("msg_");
    for byte in context.finish().as_ref().iter().take(16) {
        let _ = write!(id, "{byte:02x}");
    }
    id
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheme_s_own_example_comes_out() {
        let secret = Secret::parse("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signature = secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert!(Secret::parse("whsec_").is_err());
        assert!(Secret::parse("not base64!").is_err());
        assert_eq!(format!("{secret:?}"), "Secret(..)");
    }

    #[test]
    fn ids_are_stable_and_fit_into_a_header() {
        assert_eq!(message_id("e-1", "notify"), "e-1:notify");
        let odd = message_id("e\n1", "notify");
        assert_eq!(odd, message_id("e\n1", "notify"));
        assert!(odd.starts_with("msg_") && odd.len() == 36, "{odd}");
        assert_ne!(odd, message_id("e\n2", "notify"));
        assert_ne!(message_id("", "h"), message_id("", "h"));
    }
}
