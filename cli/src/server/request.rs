//! Reads the head of a request, and refuses what is none of this server's business.

use std::io::{self, Read};

/// Longest head that is read: browsers send one or two kilobytes.
const LONGEST_HEAD: usize = 16 << 10;

/// A request that is answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Request {
    /// Without the query.
    pub(super) path: String,
    pub(super) head_only: bool,
}

/// Why a request is not answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    NotHttp,
    TooLong,
    Method,
    Host,
    NotFound,
}

impl Refusal {
    pub(super) fn status(&self) -> &'static str {
        match self {
            Refusal::NotHttp => "400 Bad Request",
            Refusal::TooLong => "431 Request Header Fields Too Large",
            Refusal::Method => "405 Method Not Allowed",
            Refusal::Host => "421 Misdirected Request",
            Refusal::NotFound => "404 Not Found",
        }
    }

    pub(super) fn reason(&self) -> &'static str {
        match self {
            Refusal::NotHttp => "this is not an HTTP/1.1 request",
            Refusal::TooLong => "the request is too long",
            Refusal::Method => "only GET and HEAD are answered",
            Refusal::Host => "only requests to 127.0.0.1 or localhost are answered",
            Refusal::NotFound => "there is no such page here",
        }
    }
}

impl Request {
    /// Reads a request's head from `input`. Whatever follows it is not looked at.
    pub(super) fn read(input: &mut impl Read) -> io::Result<Result<Request, Refusal>> {
        let mut head = Vec::new();
        let mut chunk = [0; 1024];
        loop {
            let n = input.read(&mut chunk)?;
            if n == 0 {
                return Ok(Err(Refusal::NotHttp));
            }
            head.extend_from_slice(&chunk[..n]);
            if let Some(request) = parse(&head) {
                return Ok(request);
            }
            if head.len() > LONGEST_HEAD {
                return Ok(Err(Refusal::TooLong));
            }
        }
    }
}

/// The request that `head` is; `None` if there is more to come.
fn parse(head: &[u8]) -> Option<Result<Request, Refusal>> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut request = httparse::Request::new(&mut headers);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(httparse::Error::TooManyHeaders) => return Some(Err(Refusal::TooLong)),
        Err(_) => return Some(Err(Refusal::NotHttp)),
    }
    let mut hosts = request
        .headers
        .iter()
        .filter(|header| header.name.eq_ignore_ascii_case("host"))
        .map(|header| header.value);
    // One, and no other behind it that somebody else might believe.
    let local = hosts.next().is_some_and(is_loopback) && hosts.next().is_none();
    let head_only = match request.method {
        _ if !local => return Some(Err(Refusal::Host)),
        Some("GET") => false,
        Some("HEAD") => true,
        _ => return Some(Err(Refusal::Method)),
    };
    let target = request.path.unwrap_or_default();
    let path = target.split(['?', '#']).next().unwrap_or_default().into();
    Some(Ok(Request { path, head_only }))
}

/// Whether a `Host` header names loopback, on any port: a forwarded one may have another number.
fn is_loopback(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else {
        return false;
    };
    let host = host.trim();
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port),
        _ => (host, ""),
    };
    let local = ["127.0.0.1", "localhost", "[::1]"];
    local.iter().any(|known| name.eq_ignore_ascii_case(known))
        && port.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_loopback_are_local() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:9000",
            "LOCALHOST",
            "[::1]:1",
            "[::1]",
        ] {
            assert!(is_loopback(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:80",
            "127.0.0.1.evil.example",
            "localhost.evil.example:1",
            "localhost:80@evil.example",
            "127.0.0.1:evil",
            "0.0.0.0",
            "::1",
            "localhost:8:0",
        ] {
            assert!(!is_loopback(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_request_is_read_in_any_pieces_and_refused_for_what_is_wrong_with_it() {
        let whole = b"GET /stats?x=1 HTTP/1.1\r\nHost: localhost:1\r\n\r\n";
        for end in 0..whole.len() {
            assert_eq!(parse(&whole[..end]), None);
        }
        let expected = Request {
            path: "/stats".into(),
            head_only: false,
        };
        assert_eq!(parse(whole), Some(Ok(expected)));
        for (head, refusal) in [
            (
                "POST / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                Refusal::Method,
            ),
            ("GET / HTTP/1.1\r\n\r\n", Refusal::Host),
            (
                "GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
                Refusal::Host,
            ),
            (
                "GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
                Refusal::Host,
            ),
            ("\x16\x03\x01", Refusal::NotHttp),
        ] {
            assert_eq!(parse(head.as_bytes()), Some(Err(refusal)), "{head:?}");
        }
        let mut endless = io::repeat(b'a');
        assert_eq!(Request::read(&mut endless).unwrap(), Err(Refusal::TooLong));
    }
}
