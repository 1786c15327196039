//! One request at a time, each part of it with a time limit.

use std::io::Read;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ureq::Agent;
use ureq::http::{Response, StatusCode, header};

use crate::client::{Longest, agent};
use crate::config::push::Destination;

const LONGEST: Longest = Longest {
    send: Duration::from_secs(15),
    answer: Duration::from_secs(10),
    body: Duration::from_secs(5),
};
/// Bytes of an answer that are read, and characters of a reason that is shown.
const LONGEST_ANSWER: u64 = 64 << 10;
const LONGEST_REASON: usize = 300;

/// What is sent to a server.
#[derive(Debug)]
pub(super) struct Request {
    /// Below the server's address.
    pub(super) path: &'static str,
    pub(super) content_type: &'static str,
    /// Whether the body is gzipped as a whole.
    pub(super) gzipped: bool,
    pub(super) body: Vec<u8>,
}

/// What became of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The server has it. Its answer's body.
    Taken(Vec<u8>),
    /// The server will never take what is in it.
    Refused(String),
    /// Something failed that may be better later; the server may say when.
    Later(String, Option<Duration>),
}

/// A client of one server.
#[derive(Debug)]
pub(super) struct Client {
    agent: Agent,
    address: String,
    headers: Vec<(String, String)>,
}

impl Client {
    /// Returns a client of the server at `destination`, with a bearer token if there is one. Connects to nothing.
    pub(super) fn new(destination: &Destination, token: Option<&str>) -> Client {
        let credentials = &destination.credentials;
        let mut headers = credentials.headers.clone();
        if let Some((user, password)) = &credentials.basic {
            let encoded = STANDARD.encode(format!("{user}:{password}"));
            headers.push(("authorization".to_owned(), format!("Basic {encoded}")));
        }
        if let Some(token) = token {
            headers.retain(|(name, _)| !name.eq_ignore_ascii_case("authorization"));
            headers.push(("authorization".to_owned(), format!("Bearer {token}")));
        }
        Client {
            agent: agent(LONGEST),
            address: destination.address.clone(),
            headers,
        }
    }

    /// Sends `request` and waits for the answer: at most some forty seconds.
    pub(super) fn send(&self, request: &Request) -> Answer {
        let url = format!("{}{}", self.address, request.path);
        let mut builder = self.agent.post(&url).content_type(request.content_type);
        if request.gzipped {
            builder = builder.header(header::CONTENT_ENCODING, "gzip");
        }
        for (name, value) in &self.headers {
            builder = builder.header(name, value);
        }
        match builder.send(&request.body[..]) {
            Ok(response) => judge(response),
            // A header of the settings' that HTTP does not allow must not be shown: it may be a secret.
            Err(ureq::Error::Http(_)) => Answer::Later(
                format!("{url}: one of the configured headers is not allowed in HTTP"),
                None,
            ),
            Err(error) => Answer::Later(format!("{url}: {error}"), None),
        }
    }
}

fn judge(response: Response<ureq::Body>) -> Answer {
    let (head, body) = response.into_parts();
    let mut answer = Vec::new();
    // What cannot be read does not change what the status says.
    let _ = body
        .into_reader()
        .take(LONGEST_ANSWER)
        .read_to_end(&mut answer);
    let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
    let is_page = header(header::CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/html"));
    let status = head.status;
    let said = format!("the server answers {status}{}", reason(&answer));
    match status {
        _ if status.is_success() && is_page => Answer::Later(
            "a web page answers instead of a profile store".to_owned(),
            None,
        ),
        _ if status.is_success() => Answer::Taken(answer),
        _ if is_refusal(status) => Answer::Refused(said),
        _ => {
            let after = header(header::RETRY_AFTER).and_then(|value| value.trim().parse().ok());
            Answer::Later(said, after.map(Duration::from_secs))
        }
    }
}

/// Returns whether a status is about what is in the profile. All others may change: an operator corrects a password, or a
/// server comes back.
fn is_refusal(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_REQUEST
            | StatusCode::PAYLOAD_TOO_LARGE
            | StatusCode::UNSUPPORTED_MEDIA_TYPE
            | StatusCode::UNPROCESSABLE_ENTITY
    )
}

/// Returns the beginning of what an answer says, as one line; empty if it says nothing that can be shown.
fn reason(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    let is_shown = !line.is_empty() && !line.chars().any(|c| c.is_control() || c == '\u{fffd}');
    if !is_shown {
        return String::new();
    }
    let shown: String = line.chars().take(LONGEST_REASON).collect();
    format!(": {shown}")
}
