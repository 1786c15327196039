//! HTTP client of a profiled service: requests to its endpoints, and their answers.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::time::Duration;

use heapray_report::units::size;
use ureq::http::{HeaderMap, Method, Request, Response};
use ureq::{Agent, Body};

use crate::failure::Failure;
use crate::http::{Headers, address, check, trusted_agent, with_headers};

/// Path of the endpoints below a service's address.
pub(crate) const ENDPOINTS: &str = "/api/v1/profiler/memray";

/// Time limits of a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timeouts {
    /// Until it answers, and between two parts of an answer.
    pub(crate) answer: Duration,
    /// For its report, from the first byte to the last.
    pub(crate) download: Duration,
}

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
        let agent = trusted_agent(timeouts.answer).build().new_agent();
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

impl Remote {
    /// Returns the service's address, as in files and messages.
    pub(crate) fn base(&self) -> &str {
        &self.base
    }

    /// Ends the recording. The service answers when its report is on disk.
    pub(crate) fn stop(&self) -> Result<(), Failure> {
        let url = self.url("stop");
        let request = with_headers(self.agent.post(&url), &self.headers);
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
        let request = with_headers(self.agent.get(&url), &self.headers).config();
        let request = request.timeout_recv_body(Some(self.download));
        let request = request.timeout_global(within).build();
        let answer = check(&url, request.call())?;
        let body = answer.into_body();
        Ok((body.content_length(), body.into_reader()))
    }

    /// Opens the events of the live page, which go on for seconds. They end `within` that time from the request on.
    pub(crate) fn live(&self, within: Duration) -> Result<impl Read + use<>, Failure> {
        let url = self.url("live");
        let request = with_headers(self.agent.get(&url), &self.headers).config();
        let request = request.timeout_global(Some(within)).build();
        Ok(check(&url, request.call())?.into_body().into_reader())
    }

    /// Passes a request on. `path`: with its query, from the service's prefix on.
    pub(crate) fn pass_on(
        &self,
        method: Method,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Response<Body>, ureq::Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = self.agent.configure_request(request.body(())?);
        let request = request.timeout_recv_body(Some(self.download)).build();
        self.agent.run(request)
    }

    fn url(&self, endpoint: &str) -> String {
        format!("{}{ENDPOINTS}/{endpoint}", self.base)
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
    let address = address(url)?;
    let prefix = address
        .find(ENDPOINTS)
        .map_or(&*address, |at| &address[..at]);
    Ok(prefix.trim_end_matches('/').to_owned())
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
