//! TLS on ring, with the certificates that the system trusts.

use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;

use crate::Error;

/// The TLS set-up. A client that `needed` none still gets one, with no certificates in it: small machines that speak
/// only plain HTTP to a model beside them often have none.
pub(super) fn config(needed: bool) -> Result<ClientConfig, Error> {
    let fail = |error: rustls::Error| Error::Setup(format!("TLS cannot be set up: {error}"));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(fail)?;
    if !needed {
        return Ok(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth());
    }
    Ok(builder.with_platform_verifier().map_err(fail)?.with_no_client_auth())
}
