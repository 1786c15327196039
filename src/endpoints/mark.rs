//! `POST mark`.

use axum::http::StatusCode;
use axum::response::Response;
use serde::Deserialize;
#[cfg(feature = "openapi")]
use utoipa::IntoParams;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, MarkFailures};
use super::{params, reply};
use crate::profiler::Profiler;

/// A mark.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct MarkQuery {
    /// 1 to 200 characters, none of them a control character.
    #[cfg_attr(
        feature = "openapi",
        param(
            example = "before the load test",
            min_length = 1,
            max_length = 200,
            pattern = r"^[^\x00-\x1f\x7f-\x9f]*$"
        )
    )]
    name: String,
}

/// Set a mark
///
/// Names the present moment of the running session. The report then separates blocks from before and after it. Set one mark
/// before a load test and one after the test to see what the test left behind.
#[cfg_attr(feature = "openapi", utoipa::path(
    post,
    path = "/api/v1/profiler/memray/mark",
    tag = "profiler",
    operation_id = "heapray_mark",
    params(MarkQuery),
    responses(
        (status = 200, description = "The mark, and the live memory at that moment.", body = crate::profiler::Mark),
        MarkFailures,
        CommonFailures,
    )
))]
pub(super) async fn mark(profiler: &Profiler, query: Option<&str>) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let MarkQuery { name } = params::read(query)?;
    let mark = core.lifecycle().mark(name).await?;
    Ok(reply::json(StatusCode::OK, &mark))
}
