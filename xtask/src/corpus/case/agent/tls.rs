//! The certificates of test servers that speak TLS.
//!
//! | `tls` | certificate |
//! |---|---|
//! | `true`, or a word with `valid` | fine, for `localhost` and 127.0.0.1 |
//! | a word with `expired` | it was |
//! | a word with `self`, `unknown` or `untrusted` | fine, but signed by nobody |
//! | a word with `host` or `name` | for another host |

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::Value;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

const KEY: &[u8] = include_bytes!("../../../../data/tls/server.key");
const VALID: &str = include_str!("../../../../data/tls/valid.pem");
const EXPIRED: &str = include_str!("../../../../data/tls/expired.pem");
const OTHER_HOST: &str = include_str!("../../../../data/tls/other-host.pem");
const SELF_SIGNED: &str = include_str!("../../../../data/tls/self-signed.pem");

/// What the client of a case trusts.
pub(super) fn trusted() -> String {
    [VALID, EXPIRED, OTHER_HOST].concat()
}

/// The server side of what a case says under `tls`.
pub(super) fn acceptor(written: &Value) -> Result<TlsAcceptor, String> {
    let words = written.to_string().to_lowercase();
    let says = |all: &[&str]| all.iter().any(|word| words.contains(word));
    let certificate = if says(&["expired"]) {
        EXPIRED
    } else if says(&["self", "unknown", "untrusted"]) {
        SELF_SIGNED
    } else if says(&["host", "name"]) {
        OTHER_HOST
    } else if says(&["valid", "true"]) {
        VALID
    } else {
        return Err(format!("a test server with `tls` {words} is not built yet"));
    };
    let fail = |error: rustls::Error| error.to_string();
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).map_err(|e| e.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(KEY).map_err(|error| error.to_string())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(fail)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(fail)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}
