//! `GET status`.

use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
use super::failures::CommonFailures;
use super::reply;
use crate::profiler::{Error, Profiler, State, Status};

/// The profiler's state
///
/// Whether it records, since when, what it has seen, and what that costs. Answers soon, whatever else is going on.
#[utoipa::path(
    get,
    path = "/api/v1/profiler/memray/status",
    tag = "profiler",
    operation_id = "heapray_status",
    responses(
        (status = 200, description = "The state now.", body = Status),
        CommonFailures,
    )
)]
pub(crate) async fn status(profiler: &Profiler) -> Result<Response, ApiError> {
    let status = match profiler.core() {
        Ok(core) => core.lifecycle().status().await?,
        Err(Error::Forked) => Status::bare(State::Forked),
        Err(error) => return Err(error.into()),
    };
    Ok(reply::json(StatusCode::OK, &status))
}
