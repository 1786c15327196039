//! `POST start`.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
use super::openapi::{CommonFailures, WriteFailures};
use super::reply;
use crate::profiler::{Profiler, Status};

/// Start recording
///
/// Begins a session: from now on every allocation is recorded. The former session's report is from now on one of the
/// kept ones. If a session is running already, it goes on and nothing changes. A request body is ignored.
#[utoipa::path(
    post,
    path = "/api/v1/profiler/memray/start",
    tag = "profiler",
    operation_id = "heapray_start",
    responses(
        (status = 200, description = "A session is running: this is its state.", body = Status),
        CommonFailures,
        WriteFailures,
    )
)]
pub(crate) async fn start(profiler: &Profiler) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let job = Arc::clone(core);
    let status = core.control.call(move || job.start()).await??;
    Ok(reply::json(StatusCode::OK, &status))
}
