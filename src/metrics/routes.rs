//! Memory by route, as three families. Each route is a series of its own, so they are written only on request.

use std::collections::BTreeMap;

use super::family::{Family, Kind};
use crate::collector::snapshot::ContextSums;
use crate::contexts::ROUTE;

/// The value for what no route has allocated.
const NONE: &str = "(no route)";

/// Returns what each route holds and has allocated. Contexts of one route are summed up.
///
/// `labels`: those of each context, by its number.
pub(crate) fn families(
    contexts: &BTreeMap<u32, ContextSums>,
    labels: &[Vec<(String, String)>],
) -> Vec<Family> {
    let mut routes: BTreeMap<&str, ContextSums> = BTreeMap::new();
    for (&context, sums) in contexts {
        let route = labels.get(context as usize);
        let route = route.and_then(|labels| labels.iter().find(|(key, _)| key == ROUTE));
        let of_route = routes
            .entry(route.map_or(NONE, |(_, value)| value))
            .or_default();
        of_route.live += sums.live;
        of_route.allocated += sums.allocated;
    }
    let mut bytes = Family::new(
        Kind::Gauge,
        "heapray_route_live_bytes",
        "Live bytes that were allocated for requests of a route in the running session.",
    );
    let mut blocks = Family::new(
        Kind::Gauge,
        "heapray_route_live_blocks",
        "Live blocks that were allocated for requests of a route in the running session.",
    );
    let mut total = Family::new(
        Kind::Counter,
        "heapray_route_allocated_bytes",
        "Bytes that were allocated for requests of a route while the profiler recorded.",
    );
    for (route, sums) in routes {
        let labels = [(ROUTE, route.to_owned())];
        bytes.add(labels.clone(), sums.live.bytes);
        blocks.add(labels.clone(), sums.live.count);
        total.add(labels, sums.allocated.bytes);
    }
    vec![bytes, blocks, total]
}

#[cfg(test)]
mod tests {
    use heapray_report::model::Tally;

    use super::*;
    use crate::metrics::{TextFormat, text};

    #[test]
    fn contexts_of_one_route_are_one_series() {
        let owned = |labels: &[(&str, &str)]| -> Vec<(String, String)> {
            let labels = labels.iter();
            labels
                .map(|&(key, value)| (key.to_owned(), value.to_owned()))
                .collect()
        };
        let labels = [
            owned(&[]),
            owned(&[("route", "GET /a")]),
            owned(&[("route", "GET /a"), ("tenant", "x")]),
            owned(&[("tenant", "x")]),
        ];
        let sums = |bytes| ContextSums {
            allocated: Tally {
                count: 2,
                bytes: 2 * bytes,
            },
            live: Tally { count: 1, bytes },
        };
        let contexts = BTreeMap::from([(0, sums(1)), (1, sums(2)), (2, sums(4)), (3, sums(8))]);
        let text = text(&families(&contexts, &labels), TextFormat::Plain);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "heapray_route_live_bytes{route=\"(no route)\"} 9",
            "heapray_route_live_bytes{route=\"GET /a\"} 6",
            "heapray_route_live_blocks{route=\"(no route)\"} 2",
            "heapray_route_live_blocks{route=\"GET /a\"} 2",
            "heapray_route_allocated_bytes_total{route=\"(no route)\"} 18",
            "heapray_route_allocated_bytes_total{route=\"GET /a\"} 12",
        ];
        assert_eq!(lines, expected);
    }
}
