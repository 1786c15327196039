//! `POST start`.

use axum::http::StatusCode;
use axum::response::Response;

use serde::Deserialize;
#[cfg(feature = "openapi")]
use utoipa::IntoParams;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, WriteFailures};
use super::{params, reply};
use crate::config::size;
use crate::profiler::Profiler;

/// Parameter that says how a session records.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(crate) struct StartQuery {
    /// Record samples, one per so many bytes on average (`512KiB`; `1MB`; a number alone means bytes), or every allocation
    /// with `0`. The default is the value of `MEMRAY_PROFILER_SAMPLE`.
    // No example: Swagger UI would fill it in, and a plain start would sample.
    #[cfg_attr(
        feature = "openapi",
        param(
            pattern = r"^ *0*([0-9]{1,19} *[bB]?|[0-9]{1,16}(\.[0-9]{1,9})? *[kK]([iI]?[bB]|[iI])?|[0-9]{1,13}(\.[0-9]{1,9})? *[mM]([iI]?[bB]|[iI])?|[0-9]{1,10}(\.[0-9]{1,9})? *[gG]([iI]?[bB]|[iI])?|[0-9]{1,7}(\.[0-9]{1,9})? *[tT]([iI]?[bB]|[iI])?) *$"
        )
    )]
    sample: Option<String>,
}

/// Start recording
///
/// Begins a session: from now on every allocation is recorded, or, with `sample`, samples of them. The report of the former
/// session becomes one of the kept reports. If a session is running already, it goes on and nothing changes. With `sample`,
/// a session that samples already goes on at the new rate. If the request wants samples and the session records every
/// allocation, or the other way round, the session ends first, as by `stop`: exact and estimated figures cannot be in one
/// report. A request body is ignored.
#[cfg_attr(feature = "openapi", utoipa::path(
    post,
    path = "/api/v1/profiler/memray/start",
    tag = "profiler",
    operation_id = "heapray_start",
    params(StartQuery),
    responses(
        (status = 200, description = "A session is running: this is its state.", body = crate::profiler::Status),
        (status = 400, description = "`sample` is not a number of bytes.", body = super::error::ErrorBody),
        (status = 503, description = "The service is about to end.", body = super::error::ErrorBody),
        CommonFailures,
        WriteFailures,
    )
))]
pub(crate) async fn start(profiler: &Profiler, query: Option<&str>) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let sample = sample(query)?;
    let status = core.lifecycle().start(sample).await?;
    Ok(reply::json(StatusCode::OK, &status))
}

/// Reads the sampling rate, if the request has one.
fn sample(query: Option<&str>) -> Result<Option<u64>, ApiError> {
    let refused = || ApiError::BadRequest(format!("sample must be {}", size::ALLOWED));
    let StartQuery { sample } = params::read(query)?;
    sample
        .map(|text| size::parse(&text).ok_or_else(refused))
        .transpose()
}
