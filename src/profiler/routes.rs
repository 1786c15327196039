//! What each route holds: contexts of one route as one.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::Blocks;
use crate::collector::snapshot::ContextSums;
use crate::contexts::{self, ROUTE};

/// The name for what no route has allocated.
const NONE: &str = "(no route)";
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

/// Returns the sums of each route, by its name.
///
/// `labels`: those of each context, by its number.
pub(crate) fn by_route<'l>(
    contexts: &BTreeMap<u32, ContextSums>,
    labels: &'l [Vec<(String, String)>],
) -> BTreeMap<&'l str, ContextSums> {
    let mut routes: BTreeMap<&str, ContextSums> = BTreeMap::new();
    for (&context, sums) in contexts {
        let route = labels.get(context as usize);
        let route = route.and_then(|labels| labels.iter().find(|(key, _)| key == ROUTE));
        let of_route = routes
            .entry(route.map_or(NONE, |(_, value)| value))
            .or_default();
        of_route.live += sums.live;
        of_route.allocated += sums.allocated;
        of_route.runs += &sums.runs;
        of_route.traced.extend(&sums.traced);
    }
    routes
}

/// Returns the routes that hold the most, that one first. Empty if there are no routes.
pub(super) fn holding_most(contexts: &BTreeMap<u32, ContextSums>) -> Vec<RouteHolds> {
    let labels = contexts::labels();
    let mut routes: Vec<(&str, ContextSums)> = by_route(contexts, &labels).into_iter().collect();
    if routes.iter().all(|(route, _)| *route == NONE) {
        return Vec::new();
    }
    routes.sort_by_key(|(_, sums)| Reverse(sums.live.bytes));
    routes.truncate(MOST);
    let holds = |(route, sums): (&str, ContextSums)| RouteHolds {
        route: route.to_owned(),
        live: Blocks::of(sums.live),
        requests: sums.runs.count(),
        left: sums.live.bytes.checked_div(sums.runs.count()),
    };
    routes.into_iter().map(holds).collect()
}
