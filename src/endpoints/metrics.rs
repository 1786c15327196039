//! `GET metrics`.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use serde::{Deserialize, Deserializer};
#[cfg(feature = "openapi")]
use utoipa::IntoParams;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::CommonFailures;
#[cfg(feature = "openapi")]
use super::openapi::schemas::Truth;
use super::{guard, negotiate, params};
use crate::metrics::{TextFormat, families, process_families, route_families, site_families, text};
use crate::profiler::{Error, MOST_LINES, Profiler};

/// Parameters that say which further metrics are wanted.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(crate) struct MetricsQuery {
    /// Also the live bytes and blocks of so many lines of the service, those that hold the most: at most 100. Their names
    /// are looked up, so this takes up to a second.
    #[cfg_attr(
        feature = "openapi",
        param(value_type = Option<u64>, minimum = 0, maximum = 100)
    )]
    #[serde(default, deserialize_with = "lines")]
    sites: usize,
    /// Also what requests of each route hold and have allocated, while a session runs: true, t, yes, y, on or 1. The service
    /// records this by `MEMRAY_PROFILER_BY_ROUTE` or `heapray::by_route()`.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    routes: Option<bool>,
    /// Also `process_cpu_seconds_total`, `process_resident_memory_bytes` and the other usual metrics of a process, for a
    /// service that does not export them itself: true, t, yes, y, on or 1.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    process: Option<bool>,
}

/// Reads a number of lines.
fn lines<'de, D: Deserializer<'de>>(value: D) -> Result<usize, D::Error> {
    let allowed = format_args!("a number from 0 to {MOST_LINES}");
    params::whole(value, MOST_LINES as u32, allowed).map(|lines| lines as usize)
}

/// Metrics for Prometheus
///
/// Live bytes, totals, resident memory by part, the profiler's own cost, and reports by cause, in Prometheus's text format
/// 0.0.4, or as OpenMetrics 1.0.0 where the client prefers that. Families of a session have values only while it runs.
/// Totals never fall within a process. Answers quickly, even during other work.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/metrics",
    tag = "profiler",
    operation_id = "heapray_metrics",
    params(MetricsQuery),
    responses(
        (status = 200, description = "The metrics.", content(
            (String = "text/plain; version=0.0.4; charset=utf-8"),
            (String = "application/openmetrics-text; version=1.0.0; charset=utf-8"),
        )),
        (status = 400, description = "A parameter has a value that is not allowed.", body = super::error::ErrorBody),
        CommonFailures,
    )
))]
pub(crate) async fn metrics(
    profiler: &Profiler,
    query: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let MetricsQuery {
        sites,
        routes,
        process,
    } = params::read(query)?;
    let routes = routes.unwrap_or_default();
    if sites > 0 || routes {
        // A GET that costs work: symbols are looked up, or all call sites are summed up.
        guard::same_origin_or_link(headers)?;
    }
    let top = match sites {
        0 => None,
        _ => Some(core.live().next(false).await.map_err(|_| SITES_FAILED)?),
    };
    let figures = core.figures().await?;
    let mut all = families(&figures);
    // Those of a session that has ended are not of now.
    let top = top.filter(|_| figures.sessions.running.is_some());
    if let Some(top) = top.as_ref().and_then(|state| state.top.as_ref()) {
        all.extend(site_families(top.lines.iter().take(sites)));
    }
    if routes && let Some(sums) = core.live().sums_by_route().await? {
        all.extend(route_families(&sums));
    }
    if process == Some(true) {
        all.extend(process_families(figures.memory.as_ref()));
    }
    let format = match negotiate::prefers_openmetrics(headers) {
        true => TextFormat::OpenMetrics,
        false => TextFormat::Plain,
    };
    let mut response = Response::new(Body::from(text(&all, format)));
    let content_type = HeaderValue::from_static(format.content_type());
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, content_type);
    headers.insert(header::VARY, HeaderValue::from_static("accept"));
    Ok(response)
}

const SITES_FAILED: Error = Error::Internal("the lines that hold the most could not be looked up");
