//! Failures in the OpenAPI document: the statuses that each call can answer, and why. [`ApiError`](crate::endpoints::error::ApiError)
//! makes the answers.
#![allow(dead_code)] // descriptions only

use utoipa::IntoResponses;

use crate::endpoints::error::ErrorBody;

/// Failures of any call.
#[derive(IntoResponses)]
pub(crate) enum CommonFailures {
    /// The bearer token is missing or wrong.
    #[response(status = 401, content_type = "application/json", headers(("WWW-Authenticate" = String, description = "`Bearer`.")))]
    Unauthorized(ErrorBody),
    /// A page of another site made the call, or the call used a host name that a stranger could own.
    #[response(status = 403, content_type = "application/json")]
    Forbidden(ErrorBody),
    /// This process was forked from the profiled one.
    #[response(status = 409, content_type = "application/json")]
    Forked(ErrorBody),
    /// A fault in the profiler. The service goes on.
    #[response(status = 500, content_type = "application/json")]
    Internal(ErrorBody),
}

/// Further failures of a call that changes something.
#[derive(IntoResponses)]
pub(crate) enum WriteFailures {
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json", example = json!({
        "error": "the output could not be written to /var/profiles: No space left on device (os error 28)",
        "type": "StorageFull"
    }))]
    Full(ErrorBody),
}

/// Further failures of a request for an output.
#[derive(IntoResponses)]
pub(crate) enum OutputFailures {
    /// A parameter has a value that is not allowed.
    #[response(status = 400, content_type = "application/json")]
    BadRequest(ErrorBody),
    /// A page of another site made the call, and not through a link that a visitor followed.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// Nothing was recorded yet.
    #[response(status = 404, content_type = "application/json")]
    NoReport(ErrorBody),
    /// Too many outputs are already waiting to be made, or clients that are still reading hold all the disk space that
    /// outputs may take, or the service is about to end.
    #[response(
        status = 503,
        content_type = "application/json",
        headers(("Retry-After" = String, description = "Seconds to wait before asking again.")),
        example = json!({
            "error": "too many outputs are waiting to be made: ask again in a few seconds",
            "type": "TooManyOutputs"
        })
    )]
    Later(ErrorBody),
    /// The output ends before the requested range.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "The length of the output.")))]
    Range(ErrorBody),
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json", example = json!({
        "error": "the output could not be written to /var/profiles: No space left on device (os error 28)",
        "type": "StorageFull"
    }))]
    Full(ErrorBody),
}

/// Further failures of a request for a kept report by its number.
#[derive(IntoResponses)]
pub(crate) enum KeptFailures {
    /// No report with this number is kept.
    #[response(status = 404, content_type = "application/json", example = json!({
        "error": "there is no kept report 1795252380250",
        "type": "ReportNotFound"
    }))]
    NotKept(ErrorBody),
}

/// Further failures of setting a mark.
#[derive(IntoResponses)]
pub(crate) enum MarkFailures {
    /// The name is missing, too long, or has control characters in it.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "a mark's name must have 1 to 200 characters, none of them a control character",
        "type": "BadRequest"
    }))]
    Name(ErrorBody),
}

/// Further failures of watching.
#[derive(IntoResponses)]
pub(crate) enum WatchFailures {
    /// A parameter has a value that is not allowed.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "sites is \"maybe\", but must be true, t, yes, y, on or 1, or false, f, no, n, off, 0 or empty",
        "type": "BadRequest"
    }))]
    Sites(ErrorBody),
    /// 32 clients watch already.
    #[response(
        status = 503,
        content_type = "application/json",
        headers(("Retry-After" = String, description = "Seconds to wait before asking again.")),
        example = json!({
            "error": "32 clients watch already",
            "type": "TooManyWatchers"
        })
    )]
    Full(ErrorBody),
}

/// Further failures of a request for a ticket.
#[derive(IntoResponses)]
pub(crate) enum TicketFailures {
    /// The path in `for` cannot be read with a ticket.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "for is \"start\", but must be the path of an output below the profiler's",
        "type": "BadRequest"
    }))]
    For(ErrorBody),
}

/// Further failures of a request for the memory log.
#[derive(IntoResponses)]
pub(crate) enum TimelineFailures {
    /// The format is neither `json` nor `mprof`.
    #[response(status = 400, content_type = "application/json")]
    Format(ErrorBody),
    /// No memory log is being written; the error says why.
    #[response(status = 404, content_type = "application/json", example = json!({
        "error": "no memory log is being written: set MEMRAY_PROFILER_MEMORY_LOG=true",
        "type": "MemoryLogNotFound"
    }))]
    NoLog(ErrorBody),
    /// A page of another site made the call, and not through a link that a visitor followed.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// The output ends before the requested range.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "The length of the output.")))]
    Range(ErrorBody),
}
