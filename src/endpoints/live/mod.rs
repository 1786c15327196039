//! The live page and its data, `GET live`.

mod page;
mod stream;

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::Response;
use serde::Deserialize;
#[cfg(feature = "openapi")]
use utoipa::IntoParams;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, WatchFailures};
#[cfg(feature = "openapi")]
use super::openapi::schemas::{LiveEvent, Truth};
use super::params;
use crate::profiler::Profiler;

pub(super) use page::page;
pub(super) use stream::LiveSlots;

/// Parameter that chooses what the lines are made of.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct LiveQuery {
    /// Send the call sites that lines and leaks are made of, instead of them: true, t, yes, y, on or 1.
    #[cfg_attr(feature = "openapi", param(inline, value_type = Option<Truth>))]
    sites: Option<bool>,
}

/// Watch it live
///
/// Server-sent events, once a second: `status` (the state), `curve` (memory over time so far: each row has milliseconds,
/// resident bytes, heap bytes and heapray's own bytes; and the marks), `now` (the curve's latest row), `top` (the service's
/// lines with the most live bytes), `leaks` (the lines that probably leak, the likeliest first, looked for every few seconds)
/// and `reports` (the kept reports). After a session has ended, all are of its end. An event that has not changed is not sent
/// again. The schema describes one event.
///
/// With `?sites=true`, `top-sites` and `leak-sites` are in the place of `top` and `leaks`: the call sites that those are made of,
/// as a report in hexadecimal digits, for a tool that looks up names elsewhere (`heapray serve`).
///
/// An answer ends after ten seconds, so that it never delays the shutdown of a service. Ask again at once.
#[cfg_attr(feature = "openapi", utoipa::path(
    get,
    path = "/api/v1/profiler/memray/live",
    tag = "live page",
    operation_id = "heapray_live",
    params(LiveQuery),
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
pub(super) async fn live(
    profiler: &Profiler,
    query: Option<&str>,
    slots: &LiveSlots,
) -> Result<Response, ApiError> {
    let LiveQuery { sites } = params::read(query)?;
    let core = profiler.core()?;
    let slot = slots.take().ok_or(ApiError::TooManyWatchers)?;
    let mut response = Response::new(Body::new(stream::LiveBody::new(
        Arc::clone(core.live()),
        sites.unwrap_or_default(),
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
