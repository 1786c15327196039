//! `GET reports`, `GET reports/{id}`, `DELETE reports/{id}`.

use axum::body::Body;
use axum::http::StatusCode;
use axum::response::Response;

use utoipa::IntoParams;

use super::error::ApiError;
use super::failures::{CommonFailures, KeptFailures, WriteFailures};
use super::reply;
use crate::profiler::store::ReportId;
use crate::profiler::{KeptReport, Profiler};

/// Which kept report.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[allow(dead_code)] // a description only: `route` reads it
pub(super) struct ReportIdParam {
    /// Its number, from the list.
    #[param(example = "1795252380250", pattern = "^(0|[1-9][0-9]{0,19})$")]
    id: String,
}

/// The kept reports
///
/// Those of the last few sessions, those that the flight recorder wrote by itself, and those that were recovered from what a killed process had recorded
/// (`trigger` says why), the latest first,
/// over restarts of the service too where its directory outlives them. `MEMRAY_PROFILER_KEEP`,
/// `MEMRAY_PROFILER_TRIGGER_KEEP` and `MEMRAY_PROFILER_KEEP_BYTES` say how many.
#[utoipa::path(
    get,
    path = "/api/v1/profiler/memray/reports",
    tag = "reports",
    operation_id = "heapray_reports",
    responses(
        (status = 200, description = "What is known of each.", body = Vec<KeptReport>),
        CommonFailures,
    )
)]
pub(super) async fn list(profiler: &Profiler) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let kept = core.reports().list().await?;
    Ok(reply::json(StatusCode::OK, &kept))
}

/// One of the kept reports
///
/// What is known of it, as in the list.
#[utoipa::path(
    get,
    path = "/api/v1/profiler/memray/reports/{id}",
    tag = "reports",
    operation_id = "heapray_kept_report",
    params(ReportIdParam),
    responses(
        (status = 200, description = "What is known of it.", body = KeptReport),
        KeptFailures,
        CommonFailures,
    )
)]
pub(super) async fn one(profiler: &Profiler, id: ReportId) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let kept = core.reports().find(id).await?;
    Ok(reply::json(StatusCode::OK, &kept))
}

/// Delete a kept report
///
/// It is gone from the disk when this answers. If it is the one of the session that ended last, then that session's
/// other outputs go with it.
#[utoipa::path(
    delete,
    path = "/api/v1/profiler/memray/reports/{id}",
    tag = "reports",
    operation_id = "heapray_delete_report",
    params(ReportIdParam),
    responses(
        (status = 204, description = "It is deleted."),
        KeptFailures,
        CommonFailures,
        WriteFailures,
    )
)]
pub(super) async fn delete(profiler: &Profiler, id: ReportId) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    core.reports().delete(id).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}
