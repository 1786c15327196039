//! The routes that hold the most, as the live page shows them.

use std::cmp::Reverse;

use super::Blocks;
use crate::collector::routes::{NO_ROUTE, SumsByRoute};
use crate::collector::snapshot::ContextSums;

/// Routes that the live page shows.
const MOST: usize = 10;

/// What one route holds, as the live page shows it.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub(crate) struct RouteHolds {
    route: String,
    live: Blocks,
    /// Requests that have ended.
    requests: u64,
    /// Live bytes that each of them has left behind on average. `None` without requests.
    left: Option<u64>,
}

/// Returns the routes that hold the most, that one first. Empty if there are no routes.
pub(super) fn holding_most(routes: SumsByRoute) -> Vec<RouteHolds> {
    let mut routes: Vec<(String, ContextSums)> = routes.into_iter().collect();
    if routes.iter().all(|(route, _)| route == NO_ROUTE) {
        return Vec::new();
    }
    routes.sort_by_key(|(_, sums)| Reverse(sums.live.bytes));
    routes.truncate(MOST);
    let holds = |(route, sums): (String, ContextSums)| RouteHolds {
        route,
        live: Blocks::of(sums.live),
        requests: sums.runs.count(),
        left: sums.live.bytes.checked_div(sums.runs.count()),
    };
    routes.into_iter().map(holds).collect()
}
