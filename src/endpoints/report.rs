//! `GET report`.

use axum::http::HeaderMap;
use axum::response::Response;

use super::download::download;
use super::error::ApiError;
use super::openapi::{CaptureFile, CommonFailures, ConditionParams, OutputFailures, ReportParams};
use super::query;
use crate::profiler::Profiler;
use crate::store::{OutputKey, OutputKind};

/// Download the report
///
/// memray's own capture file, which `memray stats`, `tree`, `table`, `flamegraph` and the others open as it is. While a
/// session runs it is a consistent snapshot up to this moment; the session goes on.
#[utoipa::path(
    get,
    path = "/api/v1/profiler/memray/report",
    tag = "profiler",
    operation_id = "heapray_report",
    params(ReportParams, ConditionParams),
    responses(
        (
            status = 200,
            description = "The capture file.",
            body = inline(CaptureFile),
            content_type = "application/octet-stream",
            headers(
                ("Content-Length" = u64, description = "Bytes of the whole."),
                ("Content-Disposition" = String, description = "`inline; filename=\"memray-report.bin\"`."),
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
            body = inline(CaptureFile),
            content_type = "application/octet-stream",
            headers(("Content-Range" = String, description = "Which bytes of how many."))
        ),
        (status = 304, description = "The client's copy is still good."),
        OutputFailures,
        CommonFailures,
    )
)]
pub(crate) async fn report(
    profiler: &Profiler,
    asked: Option<&str>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let key = query::read(OutputKey::new(OutputKind::Report), asked)?;
    download(profiler, key, headers).await
}
