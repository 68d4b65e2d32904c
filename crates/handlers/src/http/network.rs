//! How requests of hooks leave this machine: checked addresses only, no proxy, no redirect, TLS on ring.

use crate::address::{self, CheckedResolver, Lookup, SystemLookup};
use reqwest::{Client, Url, redirect};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use std::sync::Arc;
use std::time::Duration;

/// Idle connections kept to one host.
const KEPT_CONNECTIONS: usize = 8;

/// The way to the network that all http hooks of a door share, with its open connections.
#[derive(Debug, Clone)]
pub struct Network {
    public: Client,
    private: Client,
    tls_fault: Option<String>,
}

impl Network {
    /// The system's resolver and the certificates that it trusts.
    ///
    /// # Errors
    /// No client can be made.
    pub fn new() -> Result<Network, String> {
        Network::with_lookup(Arc::new(SystemLookup))
    }

    /// The same with another way to look names up.
    ///
    /// # Errors
    /// No client can be made.
    pub fn with_lookup(lookup: Arc<dyn Lookup>) -> Result<Network, String> {
        match platform_tls() {
            Ok(tls) => Network::build(lookup, tls, None),
            // a machine without certificates can still speak plain HTTP to its neighbours
            Err(why) => Network::build(lookup, tls_with(RootCertStore::empty())?, Some(why)),
        }
    }

    /// The same, and these certificates (PEM) are trusted instead of the system's.
    ///
    /// # Errors
    /// One of them cannot be read, or no client can be made.
    pub fn trusting(lookup: Arc<dyn Lookup>, pem: &str) -> Result<Network, String> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let certificate =
                certificate.map_err(|error| format!("a certificate cannot be read: {error}"))?;
            roots.add(certificate).map_err(|error| format!("a certificate cannot be trusted: {error}"))?;
        }
        Network::build(lookup, tls_with(roots)?, None)
    }

    fn build(
        lookup: Arc<dyn Lookup>,
        tls: ClientConfig,
        tls_fault: Option<String>,
    ) -> Result<Network, String> {
        let client = |allow_private| {
            Client::builder()
                .tls_backend_preconfigured(tls.clone())
                .dns_resolver(Arc::new(CheckedResolver { allow_private, lookup: lookup.clone() }))
                .redirect(redirect::Policy::none())
                .no_proxy()
                .pool_max_idle_per_host(KEPT_CONNECTIONS)
                .pool_idle_timeout(Duration::from_secs(60))
                .user_agent(concat!("hookgate/", env!("CARGO_PKG_VERSION")))
                .build()
                .map_err(|error| error.to_string())
        };
        Ok(Network { public: client(false)?, private: client(true)?, tls_fault })
    }

    /// The client for hooks that may, or may not, reach private addresses.
    pub(super) fn client(&self, allow_private: bool) -> &Client {
        if allow_private { &self.private } else { &self.public }
    }

    /// Why no https URL can be used here, if none can.
    pub(super) fn tls_fault(&self) -> Option<&str> {
        self.tls_fault.as_deref()
    }
}

/// Reads a hook's URL and checks what can be checked without asking anybody: the scheme, that it holds no password,
/// and its host where that is a written address, however it is spelt.
pub(super) fn read_url(text: &str, allow_private: bool) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| format!("is no URL ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("`{}:` cannot be used; only http: and https:", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("a name or password in the URL would stand in logs; use `headers`".into());
    }
    let host = url.host_str().unwrap_or_default();
    address::check_host(host, allow_private).map_err(|refused| refused.to_string())?;
    Ok(url)
}

/// Whether a URL may be a hook's target. Its name is looked up too, as it will be before each connection.
///
/// # Errors
/// Why it may not be. A name that nobody knows now is no error: it may be known later.
pub async fn check_url(url: &str, allow_private: bool, lookup: &dyn Lookup) -> Result<(), String> {
    let url = read_url(url, allow_private)?;
    let Some(name) = url.domain() else { return Ok(()) };
    let Ok(found) = lookup.lookup(name).await else { return Ok(()) };
    address::keep_allowed(name, found, allow_private).map_err(|refused| refused.to_string())?;
    Ok(())
}

fn platform_tls() -> Result<ClientConfig, String> {
    let fail = |error: rustls::Error| error.to_string();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(fail)?;
    Ok(builder.with_platform_verifier().map_err(fail)?.with_no_client_auth())
}

/// TLS that trusts these certificates and no others.
fn tls_with(roots: RootCertStore) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
