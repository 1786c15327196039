//! `POST mark`.

use std::sync::Arc;

use axum::http::StatusCode;
use axum::response::Response;

use super::error::ApiError;
use super::openapi::{CommonFailures, MarkFailures, MarkParams};
use super::{params, reply};
use crate::profiler::{Error, Mark, Profiler};

/// Set a mark
///
/// Names the present moment of the running session. The report tells blocks from before and after it apart: set one
/// before a load test and one after, and see what the test left behind.
#[utoipa::path(
    post,
    path = "/api/v1/profiler/memray/mark",
    tag = "profiler",
    operation_id = "heapray_mark",
    params(MarkParams),
    responses(
        (status = 200, description = "The mark, and what was live at it.", body = Mark),
        MarkFailures,
        CommonFailures,
    )
)]
pub(super) async fn mark(profiler: &Profiler, query: Option<&str>) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let name = params::value(query, "name").map_err(|_| Error::InvalidMarkName)?;
    let name = name.ok_or(Error::InvalidMarkName)?;
    let job = Arc::clone(core);
    // Not here: the collector first takes in what came before.
    let mark = core.control.call(move || job.machine.mark(&name)).await??;
    Ok(reply::json(StatusCode::OK, &mark))
}
