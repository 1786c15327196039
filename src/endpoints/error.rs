//! What goes wrong, as status, headers and body at once.

use std::io;
use std::sync::Arc;

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use super::reply;
use crate::profiler;
use heapray_report::error_chain;

/// The body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[schema(example = json!({
    "error": "nothing was recorded yet: start the profiler first",
    "type": "ReportNotFound"
}))]
pub(crate) struct ErrorBody {
    /// What happened and what to do about it, for people.
    pub(crate) error: String,
    /// What kind of failure it is, for programs: `BadRequest`, `Unauthorized`, `CrossSiteRequest`, `HostNotAllowed`, `ReportNotFound`,
    /// `ReportDamaged`, `MemoryLogNotFound`, `NotFound`, `MethodNotAllowed`, `RangeNotSatisfiable`, `ForkedProcess`, `NotRecording`,
    /// `TooManyMarks`, `TooManyWatchers`, `NotStarted`, `CaptureFailed`, `DirectoryNotWritable`, `StorageFull`,
    /// `OutputFailed`, `TooManyOutputs`, `OutputsHeld`, `ServiceEnding`, `InternalError`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

/// A request that did not succeed.
#[derive(Debug, Clone)]
pub(crate) enum ApiError {
    /// A parameter has a value that is not allowed.
    BadRequest(String),
    Unauthorized,
    CrossSite,
    /// Asked for under a name that may be a stranger's.
    Host(String),
    NotFound,
    MethodNotAllowed(&'static str),
    /// Every seat of those who watch is taken.
    TooManyWatchers,
    /// No memory log is written; the reason, where there should be one.
    NoMemoryLog(Option<Arc<str>>),
    /// No byte of the wanted range is there; the output's length.
    Range(u64),
    Profiler(profiler::Error),
}

impl From<profiler::Error> for ApiError {
    fn from(error: profiler::Error) -> ApiError {
        ApiError::Profiler(error)
    }
}

impl ApiError {
    fn status_and_kind(&self) -> (StatusCode, &'static str) {
        use profiler::Error;
        const BROKEN: StatusCode = StatusCode::INTERNAL_SERVER_ERROR;
        const LATER: StatusCode = StatusCode::SERVICE_UNAVAILABLE;
        match self {
            ApiError::BadRequest(_) => (StatusCode::BAD_REQUEST, "BadRequest"),
            ApiError::Unauthorized => (StatusCode::UNAUTHORIZED, "Unauthorized"),
            ApiError::CrossSite => (StatusCode::FORBIDDEN, "CrossSiteRequest"),
            ApiError::Host(_) => (StatusCode::FORBIDDEN, "HostNotAllowed"),
            ApiError::NotFound => (StatusCode::NOT_FOUND, "NotFound"),
            ApiError::MethodNotAllowed(_) => (StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
            ApiError::TooManyWatchers => (StatusCode::SERVICE_UNAVAILABLE, "TooManyWatchers"),
            ApiError::NoMemoryLog(_) => (StatusCode::NOT_FOUND, "MemoryLogNotFound"),
            ApiError::Range(_) => (StatusCode::RANGE_NOT_SATISFIABLE, "RangeNotSatisfiable"),
            ApiError::Profiler(error) => match error {
                Error::Disabled => (StatusCode::NOT_FOUND, "NotFound"),
                Error::NoReport | Error::NotKept(_) => (StatusCode::NOT_FOUND, "ReportNotFound"),
                Error::UnsupportedForKept | Error::InvalidMarkName => {
                    (StatusCode::BAD_REQUEST, "BadRequest")
                }
                Error::Damaged(_) => (BROKEN, "ReportDamaged"),
                Error::NotRecording => (StatusCode::CONFLICT, "NotRecording"),
                Error::TooManyMarks => (StatusCode::CONFLICT, "TooManyMarks"),
                Error::Forked => (StatusCode::CONFLICT, "ForkedProcess"),
                Error::Start(_) => (BROKEN, "NotStarted"),
                Error::Session(_) => (BROKEN, "CaptureFailed"),
                Error::Directory { source, .. } | Error::Output { source, .. }
                    if is_full(source) =>
                {
                    (StatusCode::INSUFFICIENT_STORAGE, "StorageFull")
                }
                Error::Directory { .. } => (BROKEN, "DirectoryNotWritable"),
                Error::Output { .. } => (BROKEN, "OutputFailed"),
                Error::TooManyOutputs => (LATER, "TooManyOutputs"),
                Error::OutputsHeld => (LATER, "OutputsHeld"),
                Error::Ending => (LATER, "ServiceEnding"),
                Error::ShutdownTooLong { .. } => (BROKEN, "OutputFailed"),
                Error::Internal(_) => (BROKEN, "InternalError"),
            },
        }
    }

    fn text(&self) -> String {
        match self {
            ApiError::BadRequest(text) => text.clone(),
            ApiError::Unauthorized => {
                "the profiler wants an Authorization header with the right bearer token".into()
            }
            ApiError::CrossSite => {
                "a page of another site may not change, watch or load anything here".into()
            }
            ApiError::Host(host) => format!(
                "the profiler does not answer under the host name {host:?}: if it is this service's, list it in MEMRAY_PROFILER_HOSTS, \
                 or set MEMRAY_PROFILER_TOKEN"
            ),
            ApiError::NotFound => "the profiler has no such endpoint".into(),
            ApiError::MethodNotAllowed(allow) => format!("this endpoint takes {allow} only"),
            ApiError::TooManyWatchers => "32 clients watch already".into(),
            ApiError::NoMemoryLog(Some(reason)) => reason.to_string(),
            ApiError::NoMemoryLog(None) => {
                "no memory log is being written: set MEMRAY_PROFILER_MEMORY_LOG=true".into()
            }
            ApiError::Range(len) => format!("there are {len} bytes, none of them in that range"),
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

/// Seconds: how long most outputs take, and a watcher's answer at most.
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
            kind: kind.into(),
        };
        let mut response = reply::json(status, &body);
        response.headers_mut().extend(self.header());
        response
    }
}
