//! What the OpenAPI document says of failures: which status each call can meet, and why. [`ApiError`](super::error::ApiError)
//! makes the answers.
#![allow(dead_code)] // descriptions only

use utoipa::IntoResponses;

use super::error::ErrorBody;

/// What any call can meet.
#[derive(IntoResponses)]
pub(crate) enum CommonFailures {
    /// The bearer token is missing or wrong.
    #[response(status = 401, content_type = "application/json", headers(("WWW-Authenticate" = String, description = "`Bearer`.")))]
    Unauthorized(ErrorBody),
    /// The call came from a page of another site, or under a host name that may be a stranger's.
    #[response(status = 403, content_type = "application/json")]
    Forbidden(ErrorBody),
    /// This process was forked from the profiled one.
    #[response(status = 409, content_type = "application/json")]
    Forked(ErrorBody),
    /// A fault in the profiler; the service runs on.
    #[response(status = 500, content_type = "application/json")]
    Internal(ErrorBody),
}

/// What a call that changes something can meet besides.
#[derive(IntoResponses)]
pub(crate) enum WriteFailures {
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json", example = json!({
        "error": "the output could not be written to /var/profiles: No space left on device (os error 28)",
        "type": "StorageFull"
    }))]
    Full(ErrorBody),
}

/// What asking for an output can meet besides.
#[derive(IntoResponses)]
pub(crate) enum OutputFailures {
    /// A parameter has a value that is not allowed.
    #[response(status = 400, content_type = "application/json")]
    BadRequest(ErrorBody),
    /// The call came from a page of another site, and not by a link that somebody followed.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// Nothing was recorded yet.
    #[response(status = 404, content_type = "application/json")]
    NoReport(ErrorBody),
    /// Too many outputs wait to be made already; or clients that still read hold all the disk that outputs may take; or the
    /// service is about to end.
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
    /// None of the bytes that were asked for is there.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "How many there are.")))]
    Range(ErrorBody),
    /// The disk, or a limit on it, is full.
    #[response(status = 507, content_type = "application/json", example = json!({
        "error": "the output could not be written to /var/profiles: No space left on device (os error 28)",
        "type": "StorageFull"
    }))]
    Full(ErrorBody),
}

/// What asking for a kept report by its number can meet besides.
#[derive(IntoResponses)]
pub(crate) enum KeptFailures {
    /// No report of that number is kept.
    #[response(status = 404, content_type = "application/json", example = json!({
        "error": "there is no kept report 1795252380250",
        "type": "ReportNotFound"
    }))]
    NotKept(ErrorBody),
}

/// What setting a mark can meet besides.
#[derive(IntoResponses)]
pub(crate) enum MarkFailures {
    /// The name is missing, too long, or has control characters in it.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "a mark's name must have 1 to 200 characters, none of them a control character",
        "type": "BadRequest"
    }))]
    Name(ErrorBody),
}

/// What watching can meet besides.
#[derive(IntoResponses)]
pub(crate) enum WatchFailures {
    /// 32 watch already.
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

/// What asking for a ticket can meet besides.
#[derive(IntoResponses)]
pub(crate) enum TicketFailures {
    /// It is for nothing that can be read.
    #[response(status = 400, content_type = "application/json", example = json!({
        "error": "for is \"start\", but must be the path of an output below the profiler's",
        "type": "BadRequest"
    }))]
    For(ErrorBody),
}

/// What asking for the memory log can meet besides.
#[derive(IntoResponses)]
pub(crate) enum TimelineFailures {
    /// The format is none of the two.
    #[response(status = 400, content_type = "application/json")]
    Format(ErrorBody),
    /// No memory log is written, and why.
    #[response(status = 404, content_type = "application/json", example = json!({
        "error": "no memory log is being written: set MEMRAY_PROFILER_MEMORY_LOG=true",
        "type": "MemoryLogNotFound"
    }))]
    NoLog(ErrorBody),
    /// The call came from a page of another site, and not by a link that somebody followed.
    #[response(status = 403, content_type = "application/json")]
    CrossSite(ErrorBody),
    /// None of the bytes that were asked for is there.
    #[response(status = 416, content_type = "application/json", headers(("Content-Range" = String, description = "How many there are.")))]
    Range(ErrorBody),
}
