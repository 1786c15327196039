//! Errors of requests: status, headers and body in one place.

use std::io;
use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::reply;
use crate::profiler;
use heapray_report::error_chain;

/// Body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(example = json!({
    "error": "nothing was recorded yet: start the profiler first",
    "type": "ReportNotFound"
})))]
pub(crate) struct ErrorBody {
    /// The error and what to do about it, for users.
    pub(crate) error: String,
    /// The kind of the failure, for programs.
    #[serde(rename = "type")]
    pub(crate) kind: ErrorKind,
}

/// The kind of a failure, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[non_exhaustive]
pub(crate) enum ErrorKind {
    /// A parameter is missing, or has a value that is not allowed.
    BadRequest,
    /// The bearer token is missing or wrong.
    Unauthorized,
    /// The call came from a page of another site.
    CrossSiteRequest,
    /// The call used a host name that a stranger could own.
    HostNotAllowed,
    /// Nothing was recorded yet, or no report of that number is kept.
    ReportNotFound,
    /// The file of a kept report has changed since it was written.
    ReportDamaged,
    /// No memory log is being written.
    MemoryLogNotFound,
    /// The endpoint does not exist.
    NotFound,
    /// The endpoint does not take this method.
    MethodNotAllowed,
    /// The output ends before the requested range.
    RangeNotSatisfiable,
    /// This process was forked from the profiled one.
    ForkedProcess,
    /// No session is running.
    NotRecording,
    /// The session has the largest allowed number of marks.
    TooManyMarks,
    /// The largest allowed number of clients watch already.
    TooManyWatchers,
    /// Recording could not begin.
    NotStarted,
    /// The session failed.
    CaptureFailed,
    /// The profiler's directory cannot be written to.
    DirectoryNotWritable,
    /// The disk, or a limit on it, is full.
    StorageFull,
    /// An output could not be made.
    OutputFailed,
    /// Too many outputs are already waiting to be made.
    TooManyOutputs,
    /// Clients that are still reading hold all the disk space that outputs may take.
    OutputsHeld,
    /// The service is about to end.
    ServiceEnding,
    /// A fault in the profiler.
    InternalError,
}

/// Failure of a request.
#[derive(Debug, Clone)]
pub(crate) enum ApiError {
    /// A parameter has a value that is not allowed.
    BadRequest(String),
    Unauthorized,
    CrossSite,
    /// The request used this host name, which a stranger could own.
    Host(String),
    NotFound(Option<&'static str>),
    MethodNotAllowed(&'static str),
    /// No session is running, and a scraper takes only what is of now.
    NothingToScrape,
    /// All live slots are taken.
    TooManyWatchers,
    /// No memory log is being written, for this reason if it should be.
    NoMemoryLog(Option<Arc<str>>),
    /// The output, which has this many bytes, ends before the requested range.
    Range(u64),
    Profiler(profiler::Error),
}

impl From<profiler::Error> for ApiError {
    fn from(error: profiler::Error) -> ApiError {
        ApiError::Profiler(error)
    }
}

/// Where all endpoints are listed.
const LISTED: &str = if cfg!(feature = "swagger-ui") {
    " /docs lists all"
} else if cfg!(feature = "openapi") {
    " /openapi.json lists all"
} else {
    " https://docs.rs/heapray lists all"
};

impl ApiError {
    fn status_and_kind(&self) -> (StatusCode, ErrorKind) {
        use profiler::Error;
        const BROKEN: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
        const LATER: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        match self {
            ApiError::BadRequest(_) => (StatusCode::BAD_REQUEST, ErrorKind::BadRequest),
            ApiError::Unauthorized => (StatusCode::UNAUTHORIZED, ErrorKind::Unauthorized),
            ApiError::CrossSite => (StatusCode::FORBIDDEN, ErrorKind::CrossSiteRequest),
            ApiError::Host(_) => (StatusCode::FORBIDDEN, ErrorKind::HostNotAllowed),
            ApiError::NotFound(_) => (StatusCode::NOT_FOUND, ErrorKind::NotFound),
            ApiError::MethodNotAllowed(_) => {
                (StatusCode::METHOD_NOT_ALLOWED, ErrorKind::MethodNotAllowed)
            }
            ApiError::NothingToScrape => (LATER, ErrorKind::NotRecording),
            ApiError::TooManyWatchers => (LATER, ErrorKind::TooManyWatchers),
            ApiError::NoMemoryLog(_) => (StatusCode::NOT_FOUND, ErrorKind::MemoryLogNotFound),
            ApiError::Range(_) => (
                StatusCode::RANGE_NOT_SATISFIABLE,
                ErrorKind::RangeNotSatisfiable,
            ),
            ApiError::Profiler(error) => match error {
                Error::Disabled => (StatusCode::NOT_FOUND, ErrorKind::NotFound),
                Error::NoReport | Error::NotKept(_) => {
                    (StatusCode::NOT_FOUND, ErrorKind::ReportNotFound)
                }
                Error::UnsupportedForKept | Error::InvalidMarkName => {
                    (StatusCode::BAD_REQUEST, ErrorKind::BadRequest)
                }
                Error::Damaged(_) => (BROKEN, ErrorKind::ReportDamaged),
                Error::NotRecording => (StatusCode::CONFLICT, ErrorKind::NotRecording),
                Error::TooManyMarks => (StatusCode::CONFLICT, ErrorKind::TooManyMarks),
                Error::Forked => (StatusCode::CONFLICT, ErrorKind::ForkedProcess),
                Error::Start(_) => (BROKEN, ErrorKind::NotStarted),
                Error::Session(_) => (BROKEN, ErrorKind::CaptureFailed),
                Error::Directory { source, .. } | Error::Output { source, .. }
                    if is_full(source) =>
                {
                    (StatusCode::INSUFFICIENT_STORAGE, ErrorKind::StorageFull)
                }
                Error::Directory { .. } => (BROKEN, ErrorKind::DirectoryNotWritable),
                Error::Output { .. } => (BROKEN, ErrorKind::OutputFailed),
                Error::TooManyOutputs => (LATER, ErrorKind::TooManyOutputs),
                Error::OutputsHeld => (LATER, ErrorKind::OutputsHeld),
                Error::Ending => (LATER, ErrorKind::ServiceEnding),
                Error::ShutdownTooLong { .. } => (BROKEN, ErrorKind::OutputFailed),
                Error::Internal(_) => (BROKEN, ErrorKind::InternalError),
            },
        }
    }

    fn text(&self) -> String {
        match self {
            ApiError::BadRequest(text) => text.clone(),
            ApiError::Unauthorized => {
                "the bearer token is missing or wrong: send the profiler's token in an Authorization header".into()
            }
            ApiError::CrossSite => {
                "cross-site request refused: only this service's own pages may change, watch or load anything here".into()
            }
            ApiError::Host(host) => format!(
                "the profiler does not answer under the host name {host:?}: if the name belongs to this service, list it \
                 in MEMRAY_PROFILER_HOSTS, or set MEMRAY_PROFILER_TOKEN"
            ),
            ApiError::NotFound(Some(meant)) => format!(
                "the profiler has no endpoint at this path: did you mean {meant}?{LISTED}"
            ),
            ApiError::NotFound(None) => {
                format!("the profiler has no endpoint at this path.{LISTED}")
            }
            ApiError::MethodNotAllowed(allow) => format!("this endpoint takes {allow} only"),
            ApiError::NothingToScrape => error_chain(&profiler::Error::NotRecording).to_string(),
            ApiError::TooManyWatchers => "32 clients watch already".into(),
            ApiError::NoMemoryLog(Some(reason)) => reason.to_string(),
            ApiError::NoMemoryLog(None) => {
                "no memory log is being written: set MEMRAY_PROFILER_MEMORY_LOG=true".into()
            }
            ApiError::Range(len) => format!("range not satisfiable: the output has {len} bytes"),
            ApiError::Profiler(error) => error_chain(error).to_string(),
        }
    }

    fn header(&self) -> Option<(HeaderName, HeaderValue)> {
        match self {
            ApiError::Unauthorized => Some((
                header::WWW_AUTHENTICATE,
                HeaderValue::from_static("Bearer realm=\"heapray\""),
            )),
            ApiError::MethodNotAllowed(allow) => {
                Some((header::ALLOW, HeaderValue::from_static(allow)))
            }
            ApiError::Range(len) => {
                let value = format!("bytes */{len}");
                let value = HeaderValue::try_from(value).expect("digits are a header value");
                Some((header::CONTENT_RANGE, value))
            }
            _ if self.status_and_kind().0 == StatusCode::SERVICE_UNAVAILABLE => {
                Some((header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER)))
            }
            _ => None,
        }
    }
}

/// Seconds: most outputs take at most this long, and so does an answer to a watching client.
const RETRY_AFTER: &str = "5";

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), FileTooLarge | QuotaExceeded | StorageFull)
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let (status, kind) = self.status_and_kind();
        let body = ErrorBody {
            error: self.text(),
            kind,
        };
        let mut response = reply::json(status, &body);
        response.headers_mut().extend(self.header());
        response
    }
}

#[cfg(test)]
mod tests {
    use super::ApiError;
    use crate::profiler::Error;
    use std::io;
    use std::sync::Arc;

    #[test]
    fn the_answer_says_what_happened_and_why() {
        let error = ApiError::Profiler(Error::Output {
            path: "/var/profiles".into(),
            source: Arc::new(io::Error::from_raw_os_error(28)),
        });
        let text = "the output could not be written to /var/profiles: No space left on device (os error 28)";
        assert_eq!(error.text(), text);
    }
}
