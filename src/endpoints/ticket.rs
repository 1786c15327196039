//! Tickets, with which a link of the live page opens a path that needs a token.
//!
//! A browser cannot send a header with a link. So the page requests a ticket, with its token, and puts the ticket into the
//! link: the ticket allows reading that one path, for a minute, from this process. The token itself never stands in an
//! address, where histories and logs would keep it.
//!
//! ```text
//! 6920b2f4-d1c0…16 hex digits…-9f3b…16 hex digits…
//! expiry in seconds    SipHash of (path, end, 0 and 1) under random keys of this process
//! ```

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::http::StatusCode;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;
#[cfg(feature = "openapi")]
use utoipa::IntoParams;

use super::error::ApiError;
#[cfg(feature = "openapi")]
use super::openapi::failures::{CommonFailures, TicketFailures};
use super::route::Endpoint;
use super::{params, reply};

/// Time for which a ticket is valid.
const GOOD_FOR: Duration = Duration::from_secs(60);

/// Permission to read one path for a minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub(crate) struct Ticket {
    /// The value to put into the query as `ticket`.
    pub(crate) ticket: String,
    /// Seconds for which the ticket is valid.
    pub(crate) seconds: u64,
}

/// The path that a ticket is for.
#[derive(Deserialize)]
#[cfg_attr(feature = "openapi", derive(IntoParams), into_params(parameter_in = Query))]
pub(super) struct TicketQuery {
    /// The path below `…/memray/`.
    #[cfg_attr(
        feature = "openapi",
        param(
            example = "reports/1795252380250/flamegraph",
            pattern = r"^((reports/(0|[1-9][0-9]{0,18})/)?(report|flamegraph(\.svg)?|stats|table|tree|summary|pprof)|timeline)/?$"
        )
    )]
    #[serde(rename = "for")]
    path: String,
}

/// Query parameter of a link, besides the view's own. The document leaves it out, because only the live page writes such
/// links.
#[derive(Deserialize)]
struct LinkQuery {
    ticket: Option<String>,
}

/// Returns the ticket in a query, if there is one.
pub(super) fn in_query(query: Option<&str>) -> Option<String> {
    let LinkQuery { ticket } = params::read(query).ok()?;
    ticket
}

/// Issues tickets and checks them.
#[derive(Debug, Default)]
pub(super) struct Tickets {
    keys: RandomState,
}

impl Tickets {
    /// Issues a ticket for `tail`, the path below the profiler's base.
    pub(super) fn issue(&self, tail: &str, now: SystemTime) -> Ticket {
        let end = second(now).saturating_add(GOOD_FOR.as_secs());
        Ticket {
            ticket: self.text(tail, end),
            seconds: GOOD_FOR.as_secs(),
        }
    }

    /// Returns whether `ticket` is a valid one for `tail`.
    pub(super) fn admits(&self, tail: &str, ticket: &str, now: SystemTime) -> bool {
        let end = ticket.split('-').next();
        let Some(end) = end.and_then(|end| u64::from_str_radix(end, 16).ok()) else {
            return false;
        };
        let right: bool = self
            .text(tail, end)
            .as_bytes()
            .ct_eq(ticket.as_bytes())
            .into();
        right && second(now) < end
    }

    fn text(&self, tail: &str, end: u64) -> String {
        let tail = tail.strip_suffix('/').unwrap_or(tail);
        let [one, two] = [0_u8, 1].map(|part| self.keys.hash_one((tail, end, part)));
        format!("{end:x}-{one:016x}-{two:016x}")
    }
}

fn second(at: SystemTime) -> u64 {
    at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Get a ticket for a link
///
/// A browser sends no header with a link that it follows. With the ticket in its query as `ticket`, the address of an output
/// can be read for a minute without the token.
#[cfg_attr(feature = "openapi", utoipa::path(
    post,
    path = "/api/v1/profiler/memray/ticket",
    tag = "live page",
    operation_id = "heapray_ticket",
    params(TicketQuery),
    responses(
        (status = 200, description = "The ticket.", body = Ticket),
        TicketFailures,
        CommonFailures,
    )
))]
pub(super) fn ticket(tickets: &Tickets, query: Option<&str>) -> Result<Response, ApiError> {
    let TicketQuery { path: tail } = params::read(query)?;
    match Endpoint::at(&tail) {
        Some(endpoint) if endpoint.is_costly() => {
            let ticket = tickets.issue(&tail, SystemTime::now());
            Ok(reply::json(StatusCode::OK, &ticket))
        }
        _ => Err(ApiError::BadRequest(format!(
            "for is {tail:?}, but must be the path of an output below the profiler's"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_for_its_path_its_minute_and_its_process() {
        let tickets = Tickets::default();
        let now = UNIX_EPOCH + Duration::from_secs(1_795_252_380);
        let ticket = tickets.issue("reports/1/flamegraph", now).ticket;
        let admits = |tail: &str, ticket: &str, later: u64| {
            tickets.admits(tail, ticket, now + Duration::from_secs(later))
        };
        assert!(admits("reports/1/flamegraph", &ticket, 0));
        assert!(admits("reports/1/flamegraph/", &ticket, 59));
        assert!(!admits("reports/1/flamegraph", &ticket, 60));
        assert!(!admits("reports/2/flamegraph", &ticket, 0));
        assert!(!Tickets::default().admits("reports/1/flamegraph", &ticket, now));
        let (end, hash) = ticket.split_once('-').unwrap();
        let longer = u64::from_str_radix(end, 16).unwrap() + 3600;
        for forged in [
            format!("{longer:x}-{hash}"),
            format!("{end}-{}", hash.replace(|c: char| c.is_ascii_digit(), "0")),
            end.to_owned(),
            "-".into(),
            String::new(),
            "ffffffffffffffffff-1-1".into(),
            format!("+{ticket}"),
        ] {
            assert!(!admits("reports/1/flamegraph", &forged, 0), "{forged}");
        }
    }
}
