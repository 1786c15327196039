//! The sums of contexts by route: those that say the same route are one.

use std::collections::BTreeMap;

use super::snapshot::ContextSums;
use crate::contexts::{self, ROUTE};

/// The name for what no route has allocated.
pub(crate) const NO_ROUTE: &str = "(no route)";

/// Sums by the name of a route.
pub(crate) type SumsByRoute = BTreeMap<String, ContextSums>;

/// Returns the sums by route of `contexts`, by number.
pub(crate) fn by_route(contexts: BTreeMap<u32, ContextSums>) -> SumsByRoute {
    let mut routes = SumsByRoute::new();
    for (number, sums) in contexts {
        let labels = contexts::labels_of(number);
        *routes.entry(route_in(&labels).to_owned()).or_default() += &sums;
    }
    routes
}

/// Returns the route that `labels` name.
pub(super) fn route_in(labels: &[(String, String)]) -> &str {
    let mut labels = labels.iter();
    let route = labels.find(|(key, _)| key == ROUTE);
    route.map_or(NO_ROUTE, |(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contexts::context;
    use heapray_report::model::Tally;

    #[test]
    fn contexts_of_one_route_are_one() {
        let route = context([(ROUTE, "GET /one route")]);
        let tenant = route.run(|| context([("tenant", "of one route")]));
        let other = context([("tenant", "of no route")]);
        let sums = |bytes| ContextSums {
            live: Tally { count: 1, bytes },
            ..ContextSums::default()
        };
        let contexts = BTreeMap::from([
            (0, sums(1)),
            (route.number(), sums(2)),
            (tenant.number(), sums(4)),
            (other.number(), sums(8)),
        ]);
        let routes = by_route(contexts);
        let live: Vec<(&str, u64)> = routes
            .iter()
            .map(|(route, sums)| (&**route, sums.live.bytes))
            .collect();
        assert_eq!(live, [(NO_ROUTE, 9), ("GET /one route", 6)]);
    }
}
