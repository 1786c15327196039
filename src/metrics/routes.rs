//! Memory by route, as four families. Each route is a series of its own, so they are written only on request.

use super::family::{Bucket, Exemplar, Family, Histogram, Kind};
use crate::collector::routes::SumsByRoute;
use crate::collector::traces::TracedRun;
use crate::contexts::ROUTE;
use heapray_report::model::Spread;

/// Returns what each route holds and has allocated.
pub(crate) fn families(routes: &SumsByRoute) -> Vec<Family> {
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
    let mut each = Family::new(
        Kind::Histogram,
        "heapray_route_request_bytes",
        "Bytes that a request of a route allocated, from its beginning to the end of its response.",
    );
    for (route, sums) in routes {
        let labels = [(ROUTE, route.clone())];
        bytes.add(labels.clone(), sums.live.bytes);
        blocks.add(labels.clone(), sums.live.count);
        total.add(labels.clone(), sums.allocated.bytes);
        if sums.runs.count() > 0 {
            each.add(labels, histogram(&sums.runs.allocated_bytes, &sums.traced));
        }
    }
    vec![bytes, blocks, total, each]
}

/// The largest number of each bucket: steps of 4, from 256 bytes to a gigabyte.
const LARGEST: [u64; 12] = {
    let mut all = [256; 12];
    let mut at = 1;
    while at < all.len() {
        all[at] = 4 * all[at - 1];
        at += 1;
    }
    all
};

/// Returns a spread with fewer buckets. Each of them ends where one of the spread's does, so that none is split.
///
/// A bucket's exemplar is the last request with a trace, of those in it.
fn histogram(spread: &Spread, traced: &[TracedRun]) -> Histogram {
    let mut buckets = LARGEST.map(|largest| Bucket {
        largest,
        count: 0,
        exemplar: None,
    });
    for (largest, count) in spread.buckets() {
        let bucket = buckets.iter_mut().find(|bucket| largest <= bucket.largest);
        if let Some(bucket) = bucket {
            bucket.count += count;
        }
    }
    let mut larger = None;
    let mut traced: Vec<&TracedRun> = traced.iter().collect();
    traced.sort_by_key(|run| run.ended);
    for run in traced {
        let bucket = buckets
            .iter_mut()
            .find(|bucket| run.bytes <= bucket.largest);
        *bucket.map_or(&mut larger, |bucket| &mut bucket.exemplar) = Some(exemplar(run));
    }
    Histogram {
        buckets: buckets.to_vec(),
        larger,
        count: spread.count(),
        sum: spread.sum(),
    }
}

fn exemplar(run: &TracedRun) -> Exemplar {
    Exemplar {
        labels: [
            ("trace_id", run.trace.trace_id().to_string()),
            ("span_id", run.trace.span_id().to_string()),
        ],
        value: run.bytes,
        at: run.ended,
    }
}

#[cfg(test)]
mod tests {
    use heapray_report::model::Tally;

    use super::*;
    use crate::collector::routes::NO_ROUTE;
    use crate::collector::snapshot::ContextSums;
    use crate::metrics::{TextFormat, text};

    #[test]
    fn each_route_is_a_series() {
        let sums = |bytes| ContextSums {
            allocated: Tally {
                count: 2,
                bytes: 2 * bytes,
            },
            live: Tally { count: 1, bytes },
            ..ContextSums::default()
        };
        let routes = [(NO_ROUTE, sums(9)), ("GET /a", sums(6))];
        let routes = routes.map(|(route, sums)| (route.to_owned(), sums)).into();
        let text = text(&families(&routes), TextFormat::Plain);
        let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let expected = [
            "heapray_route_live_bytes{route=\"(no route)\"} 9",
            "heapray_route_live_bytes{route=\"GET /a\"} 6",
            "heapray_route_live_blocks{route=\"(no route)\"} 1",
            "heapray_route_live_blocks{route=\"GET /a\"} 1",
            "heapray_route_allocated_bytes_total{route=\"(no route)\"} 18",
            "heapray_route_allocated_bytes_total{route=\"GET /a\"} 12",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn requests_are_a_histogram_by_the_bytes_that_they_allocated() {
        let mut sums = ContextSums::default();
        for bytes in [0, 256, 257, 1 << 30, (1 << 30) + 1] {
            sums.runs.allocated_bytes.add(bytes);
        }
        let families = families(&SumsByRoute::from([("GET /a".to_owned(), sums)]));
        let text = text(&families, TextFormat::Plain);
        let of = |bound: &str| {
            let start =
                format!("heapray_route_request_bytes_bucket{{route=\"GET /a\",le=\"{bound}\"}} ");
            let line = text.lines().find_map(|line| line.strip_prefix(&*start));
            line.map(|count| count.parse::<u64>().unwrap())
        };
        let bounds = ["256.0", "1024.0", "1073741824.0", "+Inf"];
        assert_eq!(bounds.map(of), [2, 3, 4, 5].map(Some), "{text}");
    }
}
