//! HTTP as all commands speak it: how servers are trusted, time limits, headers, and what a failure is called.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::config::ConfigBuilder;
use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::typestate::AgentScope;
use ureq::{Agent, Body, RequestBuilder, Timeout};

use crate::failure::Failure;

/// Longest time for a connection.
const CONNECT: Duration = Duration::from_secs(10);
/// Largest part of a refusal that is read.
const LONGEST_REASON: u64 = 64 << 10;

/// Additional headers of every request.
pub(crate) type Headers = Vec<(String, String)>;

/// Returns the settings of every connection: servers are trusted as the system does, and `answer` is how long they may take to
/// answer, and between two parts of an answer.
pub(crate) fn agent(answer: Duration) -> ConfigBuilder<AgentScope> {
    Agent::config_builder()
        .tls_config(tls())
        .http_status_as_error(false)
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_send_request(Some(CONNECT))
        .timeout_recv_response(Some(answer))
        .timeout_per_read(Some(answer))
        .user_agent(concat!("heapray/", env!("CARGO_PKG_VERSION")))
}

/// Returns the settings of connections that carry secrets: redirects are not followed, so that a token goes only to the given
/// address.
pub(crate) fn trusted_agent(answer: Duration) -> ConfigBuilder<AgentScope> {
    let agent = agent(answer).timeout_recv_body(Some(answer));
    agent.max_redirects(0).max_redirects_will_error(false)
}

/// Returns how servers are trusted: as the system does.
fn tls() -> TlsConfig {
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(crypto)
        .build()
}

/// Adds `headers` to a request.
pub(crate) fn with_headers<B>(request: RequestBuilder<B>, headers: &Headers) -> RequestBuilder<B> {
    let add =
        |request: RequestBuilder<B>, (name, value): &(String, String)| request.header(name, value);
    headers.iter().fold(request, add)
}

/// Returns a successful answer, or the reason of a failure.
pub(crate) fn check(
    url: &str,
    answer: Result<Response<Body>, ureq::Error>,
) -> Result<Response<Body>, Failure> {
    let answer = answer.map_err(|error| Failure::Other(format!("{url}: {}", problem(error))))?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    if status.is_redirection() {
        let header = answer.headers().get("location");
        let to = header
            .and_then(|to| to.to_str().ok())
            .unwrap_or("elsewhere");
        let text =
            format!("{url}: answers {status} to {to}: use that address if it is the service's");
        return Err(Failure::Other(text));
    }
    let reason = reason(answer).map_or(String::new(), |reason| format!(": {reason}"));
    Err(Failure::Other(format!("{url}: answers {status}{reason}")))
}

/// Returns why there is no answer.
pub(crate) fn problem(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
            "it cannot be reached in time".into()
        }
        ureq::Error::Timeout(_) => "it does not answer in time: allow more with --timeout".into(),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Returns the reason of a refusal, in the form of heapray, of Racetrack's Python jobs, or of Pyroscope.
fn reason(answer: Response<Body>) -> Option<String> {
    let mut text = String::new();
    let mut body = answer.into_body().into_reader().take(LONGEST_REASON);
    body.read_to_string(&mut text).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let said = ["error", "detail", "message"].map(|name| value.get(name)?.as_str());
    said.into_iter().flatten().next().map(str::to_owned)
}

/// Returns a server's address without a `/` at its end. `http://` may be left out.
///
/// # Errors
/// It is not an address, or has a name and a password, which are not sent.
pub(crate) fn address(url: &str) -> Result<String, Failure> {
    let wrong = |what: &str| Failure::Usage(format!("{url}: {what}"));
    let whole = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    let uri: Uri = whole.parse().map_err(|_| wrong("that is not an address"))?;
    let scheme = uri.scheme_str().unwrap_or_default();
    if !matches!(scheme, "http" | "https") {
        return Err(wrong("only http and https are supported"));
    }
    let authority = uri
        .authority()
        .ok_or_else(|| wrong("that is not an address"))?;
    if authority.as_str().contains('@') {
        return Err(wrong(
            "a name and password in an address are not sent: use --token or --header",
        ));
    }
    let path = uri.path().trim_end_matches('/');
    Ok(format!("{scheme}://{authority}{path}"))
}
