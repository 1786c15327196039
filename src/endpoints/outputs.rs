//! Reports, pages, texts and files, of the present session and of kept reports. One handler answers all of them. The
//! functions without a body below describe each path, and [`VIEWS`](super::described::VIEWS) describes the answers.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

use super::download::download;
use super::error::ApiError;
use super::negotiate;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, OutputFailures};
#[cfg(feature = "openapi")]
use super::openapi::params::ConditionParams;
use super::query;
#[cfg(feature = "openapi")]
use super::query::{
    ByQuery, FileQuery, MakingQuery, PprofQuery, ReportQuery, SessionQuery, StatsQuery,
    VersionQuery,
};
use crate::profiler::store::OutputKind;
use crate::profiler::{Of, Profiler};

/// Finds or makes an output, and answers with it.
pub(super) async fn output(
    profiler: &Profiler,
    of: Of,
    kind: OutputKind,
    asked: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let negotiated = matches!(kind, OutputKind::Report | OutputKind::Stats);
    let preferred = negotiate::preferred(kind, headers);
    let mut key = query::read(kind, preferred, asked)?;
    if matches!(of, Of::Kept(_)) {
        key = key.since(query::since(asked)?);
    }
    let core = profiler.core()?;
    let made = core.reports().output(of, key).await?;
    let mut response = download(core.reports(), made, headers)?;
    if negotiated {
        let accept = HeaderValue::from_static("Accept");
        response.headers_mut().insert(header::VARY, accept);
    }
    Ok(response)
}

/// Download the report
///
/// memray's own capture file, which `memray stats`, `tree`, `table`, `flamegraph` and the others open as it is. While a
/// session runs, the file is a consistent snapshot up to this moment, and the session goes on. `?format=`, or an `Accept`
/// header, gives a file for another tool instead; `measure`, `unit`, `inverted` and `lines` choose what such a file shows.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/report",
        tag = "profiler",
        operation_id = "heapray_report",
        params(
            SessionQuery,
            MakingQuery,
            ByQuery,
            VersionQuery,
            ReportQuery,
            FileQuery,
            PprofQuery,
            ConditionParams
        ),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)] // a description only
pub(super) fn report() {}

/// The flame graph
///
/// One self-contained page that needs no network. It shows the memory at the high-water mark and the memory still live, by
/// call stack.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/flamegraph",
        tag = "profiler",
        operation_id = "heapray_flamegraph",
        params(SessionQuery, MakingQuery, ByQuery, ConditionParams),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn flamegraph() {}

/// The statistics
///
/// As text: what `memray stats` prints, followed by the live memory and the call sites that allocated it. As JSON with
/// `?format=json`, or if an `Accept` header asks for JSON: what `memray stats --json` writes.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/stats",
        tag = "profiler",
        operation_id = "heapray_stats",
        params(SessionQuery, MakingQuery, ByQuery, StatsQuery, ConditionParams),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn stats() {}

/// The call sites
///
/// As text: what `memray table` shows, the largest call site first.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/table",
        tag = "profiler",
        operation_id = "heapray_table",
        params(SessionQuery, MakingQuery, ByQuery, FileQuery, ConditionParams),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn table() {}

/// The tree of calls
///
/// As text: what `memray tree` shows, down to the lines that allocated.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/tree",
        tag = "profiler",
        operation_id = "heapray_tree",
        params(SessionQuery, MakingQuery, ByQuery, FileQuery, ConditionParams),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn tree() {}

/// Sums by function
///
/// As text: what `memray summary` shows: for each function, what the function and its callees allocated.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/summary",
        tag = "profiler",
        operation_id = "heapray_summary",
        params(SessionQuery, MakingQuery, ByQuery, FileQuery, ConditionParams),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn summary() {}

/// A profile for pprof
///
/// Gzipped protobuf: `go tool pprof -http=: URL` opens it, and so do Pyroscope and Parca.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/pprof",
        tag = "profiler",
        operation_id = "heapray_pprof",
        params(
            SessionQuery,
            MakingQuery,
            ByQuery,
            FileQuery,
            PprofQuery,
            ConditionParams
        ),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn pprof() {}

/// The flame graph as a picture
///
/// An SVG of one measure of the heap.
#[cfg_attr(
    feature = "openapi",
    utoipa::path(
        get,
        path = "/api/v1/profiler/memray/flamegraph.svg",
        tag = "profiler",
        operation_id = "heapray_flamegraph_svg",
        params(SessionQuery, MakingQuery, ByQuery, FileQuery, ConditionParams),
        responses(OutputFailures, CommonFailures)
    )
)]
#[allow(dead_code)]
pub(super) fn picture() {}
