//! `POST stop`.

use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, WriteFailures};
use super::reply;
use crate::profiler::Profiler;

/// Stop recording
///
/// Ends the session and answers when its report is on disk. If no session is running, nothing changes. A request body is
/// ignored.
#[cfg_attr(feature = "openapi", utoipa::path(
    post,
    path = "/api/v1/profiler/memray/stop",
    tag = "profiler",
    operation_id = "heapray_stop",
    responses(
        (status = 200, description = "Recording has ended: this is the state, with the last session's sums.", body = crate::profiler::Status),
        CommonFailures,
        WriteFailures,
    )
))]
pub(crate) async fn stop(profiler: &Profiler) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let status = core.lifecycle().stop().await?;
    Ok(reply::json(StatusCode::OK, &status))
}
