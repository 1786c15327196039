//! Parts of the endpoints for a tool that stands before a service and looks its names up elsewhere (`heapray serve`): what a
//! request asks for, whether it may, and how an output is made of a report that the tool has named.
//!
//! Not part of the public interface: it may change at any time.

use std::io::{self, Write};
use std::net::TcpListener;
use std::time::SystemTime;

use axum::Router;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use axum::response::{IntoResponse, Response};
use heapray_report::Report;
use heapray_report::model::Event;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::api::{BASE, below_base};
use super::error::ApiError;
use super::query::{self, MakingQuery};
use super::route::Endpoint;
use super::{download, guard, negotiate, params, serve};
use crate::config::Config;
use crate::hex;
use crate::profiler;
use crate::profiler::store::{OutputKey, OutputKind};

/// What a request asks for.
#[derive(Debug)]
pub enum Asked {
    /// The events of the live page.
    Live,
    /// The description of kept reports, or of one.
    Kept,
    /// An output.
    Output(AskedOutput),
    /// What has no names: the service's own answer will do.
    Other,
    /// Something that is not allowed, or that makes no sense. This is the answer.
    Refused(Box<Response>),
}

/// An output that is made of a report with names.
#[derive(Debug)]
pub struct AskedOutput {
    key: OutputKey,
    report: String,
}

/// Parameters that the service has to know, because the report differs by them.
#[derive(Deserialize)]
struct ReportParams {
    session: Option<String>,
    since: Option<String>,
}

/// Returns what a request asks for, as the service itself would read it.
#[must_use]
pub fn asked(request: &Parts) -> Asked {
    read(request).unwrap_or_else(|error| Asked::Refused(Box::new(error.into_response())))
}

fn read(request: &Parts) -> Result<Asked, ApiError> {
    guard::check_host(&Config::default(), true, request)?;
    guard::check_origin(&request.method, &request.headers)?;
    let path = request.uri.path();
    let is_read = matches!(request.method, Method::GET | Method::HEAD);
    let Some(tail) = below_base(path) else {
        return match is_docs(path) && is_read {
            true => Ok(Asked::Other),
            false => Err(ApiError::NotFound(None)),
        };
    };
    let name = tail.strip_prefix('/').unwrap_or_default();
    let endpoint = Endpoint::at(name).ok_or_else(|| ApiError::NotFound(Endpoint::nearest(name)))?;
    if !endpoint.takes(&request.method) {
        return Err(ApiError::MethodNotAllowed(endpoint.allow()));
    }
    if endpoint.is_costly() {
        guard::same_origin_or_link(&request.headers)?;
    }
    Ok(match endpoint {
        _ if !is_read => Asked::Other,
        Endpoint::Live => {
            guard::same_origin(&request.headers)?;
            Asked::Live
        }
        Endpoint::Reports | Endpoint::Report(_) => Asked::Kept,
        Endpoint::Output(kind) => output(kind, "report".to_owned(), request)?,
        Endpoint::ReportOutput(id, kind) => output(kind, format!("reports/{id}/report"), request)?,
        _ => Asked::Other,
    })
}

/// Returns whether the service has the OpenAPI document or Swagger UI at `path`.
fn is_docs(path: &str) -> bool {
    let is_plain = !path.contains("..") && !path.contains('%');
    matches!(path, "/openapi.json" | "/docs") || path.starts_with("/docs/") && is_plain
}

fn output(kind: OutputKind, report: String, request: &Parts) -> Result<Asked, ApiError> {
    let asked = request.uri.query();
    let key = query::read(kind, negotiate::preferred(kind, &request.headers), asked)?;
    if !key.has_names() {
        return Ok(Asked::Other);
    }
    // Checked here, so that only what is known is passed on.
    query::session(asked)?;
    query::since(asked)?;
    let ReportParams { session, since } = params::read(asked)?;
    let MakingQuery { full, threads, .. } = params::read(asked)?;
    let pairs = [
        ("session", session.as_deref()),
        ("since", since.as_deref()),
        ("full", full.filter(|full| *full).map(|_| "true")),
        ("threads", threads.map(query::Threads::name)),
    ];
    let pairs = pairs
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)));
    let query: Vec<String> = pairs.collect();
    Ok(Asked::Output(AskedOutput {
        key,
        report: format!("{BASE}/{report}?{}", query.join("&")),
    }))
}

impl AskedOutput {
    /// Returns the path and the query at which the service has the report.
    #[must_use]
    pub fn report(&self) -> &str {
        &self.report
    }

    /// Returns whether it is made of every event, where the report has them.
    #[must_use]
    pub fn has_events(&self) -> bool {
        let kind = self.key.kind();
        self.key.is_whole() && matches!(kind, OutputKind::Report | OutputKind::Flamegraph)
    }

    /// Returns the headers that say what it is.
    #[must_use]
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        download::describe_kind(self.key.kind(), &mut headers);
        headers
    }

    /// Writes it. `events`: those of the report, where it has them. `built`: when the program was built, so that newer sources
    /// are not shown.
    ///
    /// # Errors
    ///
    /// Those of `out` and of `events`.
    pub fn write(
        &self,
        report: &Report,
        events: Option<impl Iterator<Item = io::Result<Event>>>,
        built: Option<SystemTime>,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let events = events.filter(|_| self.has_events());
        profiler::render(self.key, report, events, built, out)
    }
}

/// Returns the report in the data of an event of call sites; `None` if there is none.
#[must_use]
pub fn sites(data: &str) -> Option<Vec<u8>> {
    let digits: Option<String> = serde_json::from_str(data).ok()?;
    hex::bytes(&digits?)
}

/// Returns the data of the event `top` for the call sites of `report`.
#[must_use]
pub fn top(report: &Report) -> Value {
    json!(profiler::top_elsewhere(report))
}

/// Returns the data of the event `leaks` for the call sites of `report`.
#[must_use]
pub fn leaks(report: &Report) -> Value {
    json!(profiler::leaking_elsewhere(report))
}

/// Returns the lines that the description of a kept report names: `largest` and `leak`.
#[must_use]
pub fn lines(report: &Report) -> [Value; 2] {
    let (largest, leak) = profiler::lines(report);
    [json!(largest), json!(leak)]
}

/// Serves `app` until `closed` is sent or dropped, with the limits of the profiler's own listener.
///
/// # Errors
///
/// The listener is of no use.
pub async fn run(
    listener: TcpListener,
    app: Router,
    closed: oneshot::Receiver<()>,
) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    serve::run(listener, app, closed, serve::LIMITS).await
}
