//! HTTP client of a profiled service: requests to its endpoints, and their answers.
//!
//! Redirects are not followed, so that a token goes only to the given address.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use heapray_report::units::size;
use serde_json::Value;
use ureq::http::{Response, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body, RequestBuilder, Timeout};

use crate::failure::Failure;

/// Path of the endpoints below a service's address.
const ENDPOINTS: &str = "/api/v1/profiler/memray";

/// Longest time for a connection.
pub(crate) const CONNECT: Duration = Duration::from_secs(10);

/// Time limits of a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Until it answers, and between two parts of an answer.
    pub(crate) answer: Duration,
    /// For its report, from the first byte to the last.
    pub(crate) download: Duration,
}

/// Largest part of a refusal that is read.
const LONGEST_REASON: u64 = 64 << 10;

/// Additional headers of every request.
pub(crate) type Headers = Vec<(String, String)>;

/// Makes connections to any number of services.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    agent: Agent,
    download: Duration,
}

/// Which session's report is downloaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Session {
    /// That of the session that was started last.
    Last,
    /// That of the session that runs, also in the background.
    Running,
}

/// Profiler endpoints of a service.
#[derive(Debug)]
pub(crate) struct Remote {
    agent: Agent,
    download: Duration,
    base: String,
    headers: Headers,
}

impl Client {
    pub(crate) fn new(timeouts: Timeouts) -> Client {
        let agent = Agent::config_builder()
            .tls_config(tls())
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_send_request(Some(CONNECT))
            .timeout_recv_response(Some(timeouts.answer))
            .timeout_recv_body(Some(timeouts.answer))
            .timeout_per_read(Some(timeouts.answer))
            .user_agent(concat!("heapray/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        Client {
            agent,
            download: timeouts.download,
        }
    }

    /// Returns the service at `url`: its root, its path under a prefix, or any of the endpoints themselves.
    pub(crate) fn service(&self, url: &str, headers: Headers) -> Result<Remote, Failure> {
        Ok(Remote {
            agent: self.agent.clone(),
            download: self.download,
            base: base(url)?,
            headers,
        })
    }
}

/// Returns how servers are trusted: as the system does.
pub(crate) fn tls() -> TlsConfig {
    let crypto = Arc::new(rustls::crypto::ring::default_provider());
    TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(crypto)
        .build()
}

impl Remote {
    /// Returns the service's address, as in files and messages.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Ends the recording. The service answers when its report is on disk.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        let url = self.url("stop");
        let request = self.with_headers(self.agent.post(&url));
        check(&url, request.send_empty()).map(drop)
    }

    /// Downloads the report, `within` that time from the request to the last byte if it is given. Returns its length, if
    /// known, and its bytes.
    pub(crate) fn report(
        &self,
        session: Session,
        within: Option<Duration>,
    ) -> Result<(Option<u64>, impl Read + use<>), Failure> {
        let url = match session {
            Session::Last => self.url("report"),
            Session::Running => self.url("report?session=running"),
        };
        let request = self.with_headers(self.agent.get(&url)).config();
        let request = request.timeout_recv_body(Some(self.download));
        let request = request.timeout_global(within).build();
        let answer = check(&url, request.call())?;
        let body = answer.into_body();
        Ok((body.content_length(), body.into_reader()))
    }

    /// Opens the events of the live page, which go on for seconds. They end `within` that time from the request on.
    pub(crate) fn live(&self, within: Duration) -> Result<impl Read + use<>, Failure> {
        let url = self.url("live");
        let request = self.with_headers(self.agent.get(&url)).config();
        let request = request.timeout_global(Some(within)).build();
        Ok(check(&url, request.call())?.into_body().into_reader())
    }

    fn url(&self, endpoint: &str) -> String {
        format!("{}{ENDPOINTS}/{endpoint}", self.base)
    }

    fn with_headers<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        let add = |request: RequestBuilder<B>, (name, value): &(String, String)| {
            request.header(name, value)
        };
        self.headers.iter().fold(request, add)
    }
}

/// Returns a successful answer, or the reason of a failure.
fn check(
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
fn problem(error: ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(Timeout::Resolve | Timeout::Connect) => {
            "it cannot be reached in time".into()
        }
        ureq::Error::Timeout(_) => "it does not answer in time: allow more with --timeout".into(),
        ureq::Error::Io(error) => error.to_string(),
        error => error.to_string(),
    }
}

/// Returns an error of reading an answer as one that a user understands.
pub(crate) fn readable(error: io::Error) -> io::Error {
    match error.downcast::<ureq::Error>() {
        Ok(ureq::Error::Timeout(_)) => {
            io::Error::new(io::ErrorKind::TimedOut, "it does not arrive in time")
        }
        Ok(error) => error.into_io(),
        Err(error) => error,
    }
}

/// Returns the service's reason of a refusal, in heapray's form or in that of Racetrack's Python jobs.
fn reason(answer: Response<Body>) -> Option<String> {
    let mut text = String::new();
    let mut body = answer.into_body().into_reader().take(LONGEST_REASON);
    body.read_to_string(&mut text).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let said = value.get("error").or_else(|| value.get("detail"))?;
    Some(said.as_str()?.to_owned())
}

/// Copies at most `most` bytes. Fails if there are more.
pub(crate) fn copy(from: impl Read, to: &mut File, most: u64) -> io::Result<()> {
    let mut to = BufWriter::new(to);
    let copied = io::copy(&mut from.take(most.saturating_add(1)), &mut to)?;
    if copied > most {
        return Err(too_large(most));
    }
    to.flush()
}

pub(crate) fn too_large(most: u64) -> io::Error {
    let most = size(most);
    let text = format!("the report is larger than {most}: allow more with --max-size");
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

/// Returns a service's address without the endpoints after it.
pub(crate) fn base(url: &str) -> Result<String, Failure> {
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
    let path = uri.path();
    let prefix = path.find(ENDPOINTS).map_or(path, |at| &path[..at]);
    Ok(format!(
        "{scheme}://{authority}{}",
        prefix.trim_end_matches('/')
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_of_a_service_leads_to_its_endpoints() {
        for (url, expected) in [
            ("localhost:7000", "http://localhost:7000"),
            ("http://job/", "http://job"),
            ("https://h/pub/job/a/1/", "https://h/pub/job/a/1"),
            (
                "http://h/pub/job/a/1/api/v1/profiler/memray/report?x",
                "http://h/pub/job/a/1",
            ),
            ("http://h/api/v1/profiler/memray/", "http://h"),
        ] {
            assert_eq!(base(url).unwrap(), expected);
        }
        for url in [
            "ftp://h/",
            "http://",
            "http://user:secret@h/",
            "",
            "http://a b/",
        ] {
            assert!(matches!(base(url), Err(Failure::Usage(_))), "{url}");
        }
    }
}
