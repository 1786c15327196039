//! `GET status`.

use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::CommonFailures;
use super::reply;
use crate::profiler::{Error, Profiler, State, Status};

/// The profiler's state
///
/// Says whether the profiler records, since when, how much it has recorded, and what that costs. Answers quickly, even
/// during other work.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/status",
    tag = "profiler",
    operation_id = "heapray_status",
    responses(
        (status = 200, description = "The state now.", body = Status),
        CommonFailures,
    )
))]
pub(crate) async fn status(profiler: &Profiler) -> Result<Response, ApiError> {
    let status = match profiler.core() {
        Ok(core) => core.lifecycle().status().await?,
        Err(Error::Forked) => Status::bare(State::Forked),
        Err(error) => return Err(error.into()),
    };
    Ok(reply::json(StatusCode::OK, &status))
}
