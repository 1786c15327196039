//! The HTTP client as `object_store` calls it. It blocks: its runtime runs on a thread that does nothing else meanwhile.

use std::io::{self, Read};
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use ureq::Agent;
use ureq::http::{Request, Response};

use crate::client::{Longest, agent};

/// A part of a report is sent within this time at 140 kB/s.
const LONGEST: Longest = Longest {
    send: Duration::from_secs(60),
    answer: Duration::from_secs(30),
    body: Duration::from_secs(10),
};
/// Bytes of an answer that are read. No report is fetched, so answers are short.
const LONGEST_ANSWER: u64 = 1 << 20;

/// Makes the client for a storage, and for what gives keys to machines in its cloud.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        Ok(HttpClient::new(Blocking(agent(LONGEST))))
    }
}

#[derive(Debug)]
struct Blocking(Agent);

#[async_trait]
impl HttpService for Blocking {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let answer = if body.is_empty() {
            self.0.run(Request::from_parts(head, ()))
        } else {
            self.0.run(Request::from_parts(head, &body[..]))
        };
        let (head, body) = answer.map_err(failed)?.into_parts();
        let mut content = Vec::new();
        let read = body
            .into_reader()
            .take(LONGEST_ANSWER)
            .read_to_end(&mut content);
        read.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
        Ok(Response::from_parts(head, content.into()))
    }
}

fn failed(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => HttpErrorKind::Connect,
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            HttpErrorKind::Connect
        }
        ureq::Error::Io(_) => HttpErrorKind::Interrupted,
        _ => HttpErrorKind::Unknown,
    };
    HttpError::new(kind, error)
}
