//! The HTTP client: TLS with the machine's own certificates, a limit for each part of a request, and no redirects.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::tls::{RootCerts, TlsConfig};

/// Longest time for a connection with its TLS. A name is looked up by the system, with the system's own limit: a thread for it
/// would be the service's.
const CONNECT: Duration = Duration::from_secs(5);

/// Longest times for the parts of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Longest {
    /// For sending its head, and again for its body.
    pub(crate) send: Duration,
    /// Until the head of the answer is there.
    pub(crate) answer: Duration,
    /// For the body of the answer.
    pub(crate) body: Duration,
}

/// Returns a client that connects to nothing yet.
pub(crate) fn agent(longest: Longest) -> Agent {
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(crypto)
        .build();
    Agent::config_builder()
        .tls_config(tls)
        .http_status_as_error(false)
        // A redirect could take the credentials elsewhere.
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_connect(Some(CONNECT))
        .timeout_send_request(Some(longest.send))
        .timeout_send_body(Some(longest.send))
        .timeout_recv_response(Some(longest.answer))
        .timeout_recv_body(Some(longest.body))
        .user_agent(concat!("heapray/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}
