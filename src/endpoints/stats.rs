//! `GET stats`.

use axum::http::HeaderMap;
use axum::response::Response;

use super::download::download;
use super::error::ApiError;
use super::openapi::{CommonFailures, ConditionParams, MakingParams, OutputFailures};
use super::query;
use crate::profiler::Profiler;
use crate::store::{OutputKey, OutputKind};

/// The statistics
///
/// As text: what `memray stats` prints, and below it what is still live and where it was allocated.
#[utoipa::path(
    get,
    path = "/api/v1/profiler/memray/stats",
    tag = "profiler",
    operation_id = "heapray_stats",
    params(MakingParams, ConditionParams),
    responses(
        (
            status = 200,
            description = "The text.",
            body = String,
            content_type = "text/plain; charset=utf-8",
            headers(
                ("Content-Length" = u64, description = "Bytes of the whole."),
                ("ETag" = String, description = "Strong: names exactly these bytes."),
                ("Last-Modified" = String, description = "The moment that it describes, in whole seconds."),
                ("Accept-Ranges" = String, description = "`bytes`."),
                ("Cache-Control" = String, description = "`private, no-cache` of a finished session, `no-store` of a snapshot."),
                ("X-Heapray-Snapshot" = String, description = "`true` while the session still records: a consistent view up to X-Heapray-Taken."),
                ("X-Heapray-Taken" = String, description = "The moment that it describes, RFC 3339."),
            )
        ),
        (
            status = 206,
            description = "The range that was asked for.",
            body = String,
            content_type = "text/plain; charset=utf-8",
            headers(("Content-Range" = String, description = "Which bytes of how many."))
        ),
        (status = 304, description = "The client's copy is still good."),
        OutputFailures,
        CommonFailures,
    )
)]
pub(crate) async fn stats(
    profiler: &Profiler,
    asked: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let key = query::read(OutputKey::new(OutputKind::Stats), asked)?;
    download(profiler, key, headers).await
}
