//! `/debug/pprof/…`: where services in Go have their profiles, so that a scraper or `go tool pprof` needs no path of ours.
//!
//! An app's own route at such a path comes first. `MEMRAY_PROFILER_DEBUG_PPROF=false` leaves all of them to the app.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use heapray_report::formats::Format;
use serde::Deserialize;

use super::error::ApiError;
use super::route::is_allowed;
use super::{outputs, params};
use crate::os::command_line;
use crate::profiler::Profiler;
use crate::profiler::store::OutputKind;

/// What is at such a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoPath {
    /// The live memory first.
    Heap,
    /// All that was allocated first.
    Allocs,
    /// The program and its arguments.
    Cmdline,
    /// Names of addresses, which no profile of ours needs.
    Symbol,
}

const PATHS: [(&str, GoPath); 4] = [
    ("/debug/pprof/heap", GoPath::Heap),
    ("/debug/pprof/allocs", GoPath::Allocs),
    ("/debug/pprof/cmdline", GoPath::Cmdline),
    ("/debug/pprof/symbol", GoPath::Symbol),
];

/// Returns all paths, for the app's routes to be asked about.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    PATHS.iter().map(|(path, _)| *path)
}

impl GoPath {
    /// Returns what is at `path`.
    pub(super) fn at(path: &str) -> Option<GoPath> {
        let found = PATHS.iter().find(|(known, _)| *known == path);
        found.map(|(_, at)| *at)
    }

    /// Returns the methods, written as an `Allow` header. pprof posts the addresses that it asks about.
    pub(super) const fn allow(self) -> &'static str {
        match self {
            GoPath::Symbol => "GET, HEAD, POST",
            _ => "GET, HEAD",
        }
    }

    /// Returns whether `method` is taken.
    pub(super) fn takes(self, method: &Method) -> bool {
        is_allowed(self.allow(), method)
    }

    /// Answers the request, which was allowed to ask.
    pub(super) async fn answer(
        self,
        profiler: &Profiler,
        request: &Parts,
    ) -> Result<Response, ApiError> {
        match self {
            GoPath::Heap => profile(profiler, request.uri.query(), &request.headers).await,
            GoPath::Allocs => {
                let query = of_allocations(request.uri.query());
                profile(profiler, Some(&query), &request.headers).await
            }
            GoPath::Cmdline => Ok(text(command_line::read())),
            // Each function has its name in the profile. pprof asks here first whether there are names to ask for.
            GoPath::Symbol => Ok(text("num_symbols: 0\n".to_owned())),
        }
    }
}

/// Parameters that scrapers of Go send.
#[derive(Deserialize)]
struct GoQuery {
    seconds: Option<String>,
    debug: Option<String>,
}

/// Answers with the running session as a profile.
async fn profile(
    profiler: &Profiler,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let GoQuery { seconds, debug } = params::read(query)?;
    let is_set = |value: Option<String>| value.is_some_and(|value| !matches!(&*value, "" | "0"));
    if is_set(seconds) {
        return Err(ApiError::BadRequest(
            "the profiler makes no profile of a number of seconds: take two profiles, and compare them with \
             `go tool pprof -diff_base`; a scraper subtracts them itself"
                .to_owned(),
        ));
    }
    if is_set(debug) {
        return Err(ApiError::BadRequest(
            "the profiler has no such text: …/memray/stats is one, and debug=0 is a profile"
                .to_owned(),
        ));
    }
    // The report of a session that has ended would be stored again and again, as if it were of now.
    let figures = profiler.core()?.figures().await?;
    if figures.sessions.running.is_none() {
        return Err(ApiError::NothingToScrape);
    }
    let kind = OutputKind::File(Format::Pprof);
    outputs::output(profiler, None, kind, query, headers).await
}

/// Returns `query` with the allocations first, unless it asks for another measure.
fn of_allocations(query: Option<&str>) -> String {
    let query = query.unwrap_or_default();
    let asks = query.split('&').any(|pair| pair.starts_with("measure="));
    match (asks, query.is_empty()) {
        (true, _) => query.to_owned(),
        (false, true) => "measure=allocated".to_owned(),
        (false, false) => format!("{query}&measure=allocated"),
    }
}

fn text(text: String) -> Response {
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    ([(header::CONTENT_TYPE, plain)], Body::from(text)).into_response()
}

#[cfg(test)]
mod tests {
    use super::{GoPath, Method, of_allocations, paths};

    #[test]
    fn only_the_paths_of_memory_are_ours() {
        for path in paths() {
            assert!(GoPath::at(path).is_some(), "{path}");
        }
        for path in [
            "/debug/pprof",
            "/debug/pprof/",
            "/debug/pprof/profile",
            "/debug/pprof/heap/",
            "/debug/pprof//heap",
            "/x/debug/pprof/heap",
        ] {
            assert_eq!(GoPath::at(path), None, "{path}");
        }
    }

    #[test]
    fn only_names_are_asked_for_by_post() {
        assert!(GoPath::Symbol.takes(&Method::POST));
        assert!(!GoPath::Heap.takes(&Method::POST) && GoPath::Heap.takes(&Method::HEAD));
    }

    #[test]
    fn allocations_come_first_unless_another_measure_is_asked_for() {
        assert_eq!(of_allocations(None), "measure=allocated");
        assert_eq!(of_allocations(Some("gc=1")), "gc=1&measure=allocated");
        assert_eq!(of_allocations(Some("measure=live")), "measure=live");
    }
}
