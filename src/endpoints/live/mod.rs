//! The live page and its data, `GET live`.

mod page;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, WatchFailures};
#[cfg(feature = "openapi")]
use super::openapi::schemas::LiveEvent;
use crate::profiler::Profiler;

pub(super) use page::page;
pub(super) use stream::LiveSlots;

/// Watch it live
///
/// Server-sent events, once a second: `status` (the state), `curve` (memory over time so far: each row has milliseconds,
/// resident bytes, heap bytes and heapray's own bytes; and the marks), `now` (the curve's latest row), `top` (the service's
/// lines with the most live bytes), `leaks` (the lines that probably leak, the likeliest first, looked for every few seconds)
/// and `reports` (the kept reports). After a session has ended, all are of its end. An event that has not changed is not sent
/// again. The schema describes one event.
///
/// An answer ends after ten seconds, so that it never delays the shutdown of a service. Ask again at once.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/live",
    tag = "live page",
    operation_id = "heapray_live",
    responses(
        (
            status = 200,
            description = "The events.",
            body = LiveEvent,
            content_type = "text/event-stream",
            example = json!({ "event": "now", "data": "[1250,48230400,24310168,4194304]" })
        ),
        WatchFailures,
        CommonFailures,
    )
))]
pub(super) async fn live(profiler: &Profiler, slots: &LiveSlots) -> Result<Response, ApiError> {
    let core = profiler.core()?;
    let slot = slots.take().ok_or(ApiError::TooManyWatchers)?;
    let mut response = Response::new(Body::new(stream::LiveBody::new(
        Arc::clone(core.live()),
        slot,
    )));
    let headers = response.headers_mut();
    let events = HeaderValue::from_static("text/event-stream");
    headers.insert(header::CONTENT_TYPE, events);
    // nginx would otherwise collect a few kilobytes before it sends them.
    let unbuffered = HeaderName::from_static("x-accel-buffering");
    headers.insert(unbuffered, HeaderValue::from_static("no"));
    Ok(response)
}
