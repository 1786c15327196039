//! Parameters that no struct reads: [`precondition`](crate::endpoints::precondition) reads the headers,
//! [`route`](crate::endpoints::route) the path.
#![allow(dead_code)] // descriptions only

use utoipa::IntoParams;

/// Headers of a request whose sender has a copy. `Accept-Ranges` describes `Range` and `If-Range` instead: no schema can say
/// that a range past the end is refused.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
pub(crate) struct ConditionParams {
    /// An `ETag`: the answer is 304 if the output has not changed.
    #[param(rename = "If-None-Match", required = false)]
    if_none_match: String,
    /// A date: the answer is 304 if the output has not changed.
    #[param(rename = "If-Modified-Since", required = false)]
    if_modified_since: String,
}

/// The kept report that a path names.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
pub(crate) struct ReportIdParam {
    /// The report's number, from the list.
    #[param(example = "1795252380250", pattern = "^(0|[1-9][0-9]{0,19})$")]
    id: String,
}
