//! Events of the live page. Those that name lines are made of the call sites that the service sends instead of them.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use heapray::elsewhere;
use heapray::symbolize::NamedLater;
use heapray_report::memray::{self, SameNames};
use serde_json::Value;

use super::body::{Pieces, made_by};
use super::relay::successful;
use super::{Front, kept};
use crate::failure::Failure;
use crate::http::{check, problem};
use crate::remote::{ENDPOINTS, readable};

/// Longest line of an answer, in bytes.
const LONGEST_LINE: u64 = 64 << 20;

/// Answers with the service's events, with names. Blocks until the first one.
pub(super) fn answer(front: &Arc<Front>, request: &Parts) -> Response {
    let answer = match successful(front, &Method::GET, &path(), &request.headers) {
        Ok(answer) => answer,
        Err(refused) => return *refused,
    };
    let (parts, body) = answer.into_parts();
    let front = Arc::clone(front);
    let body = made_by(move |pieces| {
        let mut events = Events(BufReader::new(body.into_reader()));
        let mut reports = None;
        loop {
            match events.next() {
                Ok(Some(event)) => {
                    if !pass_on(&front, event, &mut reports, pieces) {
                        return;
                    }
                }
                Ok(None) => return,
                Err(error) => return pieces.fail(error),
            }
        }
    });
    Response::from_parts(parts, body)
}

fn path() -> String {
    format!("{ENDPOINTS}/live?sites=true")
}

/// Returns the names of the call sites that hold the most now, as the service's live page would show them; `None` if it has none.
pub(crate) fn first(front: &Front) -> Result<Option<NamedLater>, Failure> {
    let url = format!("{}{}", front.remote.base(), path());
    let answer = front
        .remote
        .pass_on(Method::GET, &path(), &Default::default());
    let answer = answer.map_err(|error| Failure::Other(format!("{url}: {}", problem(error))));
    let answer = answer?;
    if answer.status() == StatusCode::NOT_FOUND {
        return Err(is_not_heapray(&url));
    }
    let answer = check(&url, Ok(answer))?;
    let mut events = Events(BufReader::new(answer.into_body().into_reader()));
    let failed = |error| Failure::io(format!("cannot read {url}"), readable(error));
    while let Some(event) = events.next().map_err(failed)? {
        match &*event.name {
            "top-sites" => return Ok(named(front, &event.data)),
            "top" => {
                front.context.note(
                    "the service's heapray is older than this one: its live page stays without names, and reports have them",
                );
                return Ok(None);
            }
            _ => {}
        }
    }
    Err(is_not_heapray(&url))
}

fn is_not_heapray(url: &str) -> Failure {
    Failure::Other(format!(
        "{url}: what answers there is not heapray: is the address right, and MEMRAY_PROFILER=true set?"
    ))
}

/// An event, and the text that it came as.
#[derive(Debug, Default)]
struct Event {
    name: String,
    data: String,
    text: String,
}

/// The events of an answer.
struct Events<R>(BufReader<R>);

impl<R: Read> Events<R> {
    /// Returns the next event; `None` at the end. One that was not ended is not one.
    fn next(&mut self) -> io::Result<Option<Event>> {
        let mut event = Event::default();
        loop {
            let mut line = Vec::new();
            let mut part = self.0.by_ref().take(LONGEST_LINE);
            part.read_until(b'\n', &mut line)?;
            if !line.ends_with(b"\n") {
                return Ok(None);
            }
            let line = String::from_utf8_lossy(&line);
            event.text.push_str(&line);
            let line = line.trim_end_matches(['\r', '\n']);
            if line.is_empty() {
                return Ok(Some(event));
            } else if let Some(name) = line.strip_prefix("event: ") {
                name.clone_into(&mut event.name);
            } else if let Some(data) = line.strip_prefix("data: ") {
                data.clone_into(&mut event.data);
            }
        }
    }
}

/// Sends an event. `reports`: the list of kept reports that was sent last. Returns false if the client is gone.
fn pass_on(front: &Arc<Front>, event: Event, reports: &mut Option<Value>, pieces: &Pieces) -> bool {
    match &*event.name {
        "top-sites" => {
            let top = named(front, &event.data).map(|named| elsewhere::top(&named.report));
            send(pieces, "top", &top.unwrap_or_default())
        }
        "leak-sites" => {
            let leaks = named(front, &event.data).map(|named| elsewhere::leaks(&named.report));
            send(
                pieces,
                "leaks",
                &leaks.unwrap_or_else(|| Value::Array(Vec::new())),
            )
        }
        "reports" => {
            let Ok(list) = serde_json::from_str(&event.data) else {
                return pieces.send(event.text);
            };
            let list = reports.insert(list);
            kept::complete(front, list);
            send(pieces, "reports", list)
        }
        // One report at a time, after what is of now.
        "now" => {
            if !pieces.send(event.text) {
                return false;
            }
            let Some(list) = reports else {
                return true;
            };
            let Some(id) = kept::next(front, list) else {
                return true;
            };
            kept::look_at(front, &id);
            kept::complete(front, list);
            send(pieces, "reports", list)
        }
        _ => pieces.send(event.text),
    }
}

fn send(pieces: &Pieces, event: &str, data: &Value) -> bool {
    pieces.send(format!("event: {event}\ndata: {data}\n\n"))
}

/// Returns the report in an event's data, with names; `None` if there is none.
fn named(front: &Front, data: &str) -> Option<NamedLater> {
    let capture = elsewhere::sites(data)?;
    let limit = front.context.memory_limit();
    let capture = memray::read_file_as(Cursor::new(capture), limit, SameNames::Apart).ok()?;
    Some(front.name(&capture.report))
}
