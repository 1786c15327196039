//! Sends an output as a response. Headers, ranges and conditional requests are the same for all outputs.

use std::sync::Arc;
use std::time::SystemTime;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use heapray_report::formats::Format;

use super::error::ApiError;
use super::file_body::FileBody;
use super::precondition::Validators;
use super::range::{self, Wanted};
use crate::os::calendar;
use crate::profiler::Reports;
use crate::profiler::store::{Output, OutputKind};

/// Header of answers that are made while the session still records: consistent, but not the final state.
const SNAPSHOT: HeaderName = HeaderName::from_static("x-heapray-snapshot");
/// Header with the moment that an answer describes.
const TAKEN: HeaderName = HeaderName::from_static("x-heapray-taken");

/// Returns an output as the answer to a request with these headers.
pub(super) fn download(
    reports: &Arc<Reports>,
    output: Output,
    asked: &HeaderMap,
) -> Result<Response, ApiError> {
    let len = output.len();
    let etag = format!("\"{:016x}-{len:x}\"", output.checksum());
    let validators = Validators {
        etag: &etag,
        modified: output.taken(),
    };
    let mut response = Response::new(Body::empty());
    let wanted = match asked
        .get(header::RANGE)
        .and_then(|range| range.to_str().ok())
    {
        Some(range) if validators.range_counts(asked) => range::wanted(range, len),
        _ => Wanted::Whole,
    };
    // Whether the client's copy is up to date is decided before the range (section 13.2.2).
    let range = if validators.not_modified(asked) {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        None
    } else {
        match wanted {
            Wanted::Nothing => return Err(ApiError::Range(len)),
            Wanted::Whole => Some(0..len),
            Wanted::Part(part) => {
                *response.status_mut() = StatusCode::PARTIAL_CONTENT;
                let of = format!("bytes {}-{}/{len}", part.start, part.end - 1);
                response
                    .headers_mut()
                    .insert(header::CONTENT_RANGE, value(of));
                Some(part)
            }
        }
    };
    describe(&output, etag, response.headers_mut());
    if let Some(range) = range {
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_LENGTH, (range.end - range.start).into());
        *response.body_mut() = Body::new(FileBody::new(Arc::clone(reports), output, range));
    }
    Ok(response)
}

/// Sets the headers that say what an output of this kind is.
pub(super) fn describe_kind(kind: OutputKind, headers: &mut HeaderMap) {
    let content_type = kind.content_type();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    // Browsers show texts as they are. Racetrack sends its text without this header, too.
    if !kind.is_read() {
        let disposition = format!("inline; filename=\"{}\"", kind.file_name());
        headers.insert(header::CONTENT_DISPOSITION, value(disposition));
    }
    if matches!(kind, OutputKind::Flamegraph | OutputKind::File(Format::Svg)) {
        // The page and the picture contain everything that they need. Even a hostile function name can load and send
        // nothing.
        let policy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; \
                      img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; \
                      frame-ancestors 'self'";
        headers.insert(
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static(policy),
        );
    }
}

fn describe(output: &Output, etag: String, headers: &mut HeaderMap) {
    describe_kind(output.kind(), headers);
    let cache = if output.is_snapshot() {
        headers.insert(SNAPSHOT, HeaderValue::from_static("true"));
        "no-store"
    } else {
        "private, no-cache"
    };
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(cache));
    headers.insert(TAKEN, value(calendar::rfc3339(output.taken())));
    headers.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    headers.insert(header::ETAG, value(etag));
    // `httpdate` panics on a time before 1970.
    let modified = httpdate::fmt_http_date(output.taken().max(SystemTime::UNIX_EPOCH));
    headers.insert(header::LAST_MODIFIED, value(modified));
}

fn value(text: String) -> HeaderValue {
    HeaderValue::try_from(text).expect("digits, names and dates are header values")
}
