//! `/debug/pprof/…`: where services in Go have their profiles, so that a scraper or `go tool pprof` needs no path of ours.
//!
//! An app's own route at such a path comes first. `MEMRAY_PROFILER_DEBUG_PPROF=false` leaves all of them to the app.

use std::time::Duration;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, header};
use axum::response::{IntoResponse, Response};
use heapray_report::formats::Format;
use serde::Deserialize;

use super::error::ApiError;
use super::route::is_allowed;
use super::{negotiate, outputs, params, query};
use crate::os::command_line;
use crate::profiler::store::OutputKind;
use crate::profiler::{Error, Of, Profiler, profile_of};

/// What is at such a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GoPath {
    /// The live memory first.
    Heap,
    /// All that was allocated first.
    Allocs,
    /// What is allocated within some seconds.
    DeltaHeap,
    /// The program and its arguments.
    Cmdline,
    /// Names of addresses, which no profile of ours needs.
    Symbol,
}

const PATHS: [(&str, GoPath); 5] = [
    ("/debug/pprof/heap", GoPath::Heap),
    ("/debug/pprof/allocs", GoPath::Allocs),
    ("/debug/pprof/delta_heap", GoPath::DeltaHeap),
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
            GoPath::Heap => profile(profiler, request.uri.query(), request).await,
            GoPath::Allocs => {
                let query = of_allocations(request.uri.query());
                profile(profiler, Some(&query), request).await
            }
            GoPath::DeltaHeap => {
                let GoQuery { seconds, .. } = params::read(request.uri.query())?;
                if seconds_of(seconds)?.is_none() {
                    return Err(ApiError::BadRequest(format!(
                        "say for how long: {HOW_LONG}"
                    )));
                }
                profile(profiler, request.uri.query(), request).await
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

/// Most seconds: each such request has a thread of its own.
const MOST_SECONDS: u64 = 300;
const HOW_LONG: &str = "seconds=15, a whole number from 1 to 300";

/// Returns the time of the parameter `seconds`; `None` if it is not given, or 0.
fn seconds_of(seconds: Option<String>) -> Result<Option<Duration>, ApiError> {
    match seconds.as_deref().unwrap_or_default() {
        "" | "0" => Ok(None),
        given => {
            let number = given
                .parse()
                .ok()
                .filter(|number| (1..=MOST_SECONDS).contains(number));
            let bad = || {
                ApiError::BadRequest(format!("{given:?} is not a number of seconds: {HOW_LONG}"))
            };
            number.map(Duration::from_secs).ok_or_else(bad).map(Some)
        }
    }
}

/// Answers with the running session as a profile.
async fn profile(
    profiler: &Profiler,
    query: Option<&str>,
    request: &Parts,
) -> Result<Response, ApiError> {
    let GoQuery { seconds, debug } = params::read(query)?;
    let seconds = seconds_of(seconds)?;
    if debug.is_some_and(|debug| !matches!(&*debug, "" | "0")) {
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
    let headers = &request.headers;
    // Nobody who asks for the headers alone waits for what they are of.
    let Some(time) = seconds.filter(|_| request.method != Method::HEAD) else {
        let made = outputs::output(profiler, Of::Process, kind, query, headers).await;
        return made.map_err(nothing_to_scrape);
    };
    let key = query::read(kind, negotiate::preferred(kind, headers), query)?;
    let core = profiler.core()?;
    let made = profile_of(core.lifecycle(), core.reports(), time, key).await;
    match made {
        Ok(profile) => {
            let binary = HeaderValue::from_static(kind.content_type());
            Ok(([(header::CONTENT_TYPE, binary)], Body::from(profile)).into_response())
        }
        Err(error) => Err(nothing_to_scrape(error.into())),
    }
}

/// Returns the error that scrapers know if the session has ended meanwhile.
fn nothing_to_scrape(error: ApiError) -> ApiError {
    match error {
        ApiError::Profiler(Error::NotRecording) => ApiError::NothingToScrape,
        error => error,
    }
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
