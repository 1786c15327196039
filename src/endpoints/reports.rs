//! `GET reports`, `GET reports/{id}`, `DELETE reports/{id}`.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, KeptFailures, WriteFailures};
use super::reply;
use crate::profiler::Profiler;
use crate::profiler::store::ReportId;

/// The kept reports
///
/// The reports of the last few sessions, those that the flight recorder wrote by itself, and those that were recovered from
/// the event log of a killed process (`trigger` says why). The latest comes first. The list spans restarts of the service if
/// its directory outlives them. `MEMRAY_PROFILER_KEEP`, `MEMRAY_PROFILER_TRIGGER_KEEP` and `MEMRAY_PROFILER_KEEP_BYTES` say
/// how many are kept.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/reports",
    tag = "reports",
    operation_id = "heapray_reports",
    responses(
        (status = 200, description = "The kept reports.", body = Vec<crate::profiler::KeptReport>),
        CommonFailures,
    )
))]
pub(super) async fn list(profiler: &Profiler) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let kept = core.reports().list().await?;
    Ok(reply::json(StatusCode::OK, &kept))
}

/// One of the kept reports
///
/// The description of one report, as in the list.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/reports/{id}",
    tag = "reports",
    operation_id = "heapray_kept_report",
    params(super::openapi::params::ReportIdParam),
    responses(
        (status = 200, description = "The description of the report.", body = crate::profiler::KeptReport),
        KeptFailures,
        CommonFailures,
    )
))]
pub(super) async fn one(profiler: &Profiler, id: ReportId) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let kept = core.reports().find(id).await?;
    Ok(reply::json(StatusCode::OK, &kept))
}

/// Delete a kept report
///
/// The report's files are gone from the disk when this answers. If the report is the one of the session that ended last,
/// that session's other outputs are deleted too.
#[cfg_attr(feature = "openapi", utoipa::path(
    delete,
    path = "/api/v1/profiler/memray/reports/{id}",
    tag = "reports",
    operation_id = "heapray_delete_report",
    params(super::openapi::params::ReportIdParam),
    responses(
        (status = 204, description = "The report is deleted."),
        KeptFailures,
        CommonFailures,
        WriteFailures,
    )
))]
pub(super) async fn delete(profiler: &Profiler, id: ReportId) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    core.reports().delete(id).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
