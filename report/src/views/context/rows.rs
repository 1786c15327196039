//! The sums of each value of a label.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::Report;
use crate::model::{Runs, Tally};

/// Sums of all call sites whose context has one value of a key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContextRow {
    /// The value. `None` for call sites whose context does not have the key.
    pub value: Option<String>,
    /// Everything that was ever allocated.
    pub allocated: Tally,
    /// Live at the high-water mark.
    pub high_water: Tally,
    /// Live at the end.
    pub live: Tally,
    /// Time at which the oldest live block was allocated, in milliseconds since the start, if known.
    pub oldest_live_ms: Option<u64>,
    /// Its requests or futures that have ended. A filter by thread, allocator or call stack leaves them as they are.
    pub runs: Runs,
}

impl ContextRow {
    /// Returns the live bytes that each of its requests or futures has left behind, on average. What they held when they ended
    /// says less: a server frees a part of it right after the response. `None` if none has ended.
    #[must_use]
    pub fn left_behind(&self) -> Option<u64> {
        self.live.bytes.checked_div(self.runs.count())
    }
}

/// Returns the keys of the labels of call sites, by name.
#[must_use]
pub fn context_keys(report: &Report) -> Vec<&str> {
    let used: BTreeSet<u32> = report.sites.iter().map(|site| site.context.0).collect();
    let contexts = used
        .iter()
        .filter_map(|&at| report.contexts.get(at as usize));
    let labels = contexts.flat_map(|context| &context.labels);
    let keys: BTreeSet<&str> = labels.map(|(key, _)| &**key).collect();
    keys.into_iter().collect()
}

/// Returns the sums of each value of `key`, the one with the most live bytes first.
#[must_use]
pub fn context_rows(report: &Report, key: &str) -> Vec<ContextRow> {
    let mut rows: BTreeMap<Option<&str>, ContextRow> = BTreeMap::new();
    let mut known: HashMap<u32, Option<&str>> = HashMap::new();
    for site in &report.sites {
        let value = *known.entry(site.context.0).or_insert_with(|| {
            let context = report.contexts.get(site.context.0 as usize);
            context.and_then(|context| context.value(key))
        });
        let row = rows.entry(value).or_default();
        row.allocated += site.allocated;
        row.high_water += site.high_water;
        row.live += site.live;
        let oldest = [row.oldest_live_ms, site.oldest_live_ms];
        row.oldest_live_ms = oldest.into_iter().flatten().min();
    }
    for context in &report.contexts {
        if let Some(row) = rows.get_mut(&context.value(key)) {
            row.runs += &context.runs;
        }
    }
    let mut rows: Vec<ContextRow> = rows
        .into_iter()
        .map(|(value, row)| ContextRow {
            value: value.map(str::to_owned),
            ..row
        })
        .collect();
    // A stable sort: rows with equal sums stay in the order of their values.
    rows.sort_by_key(|row| std::cmp::Reverse((row.live.bytes, row.allocated.bytes)));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::testing::report;
    use super::*;

    #[test]
    fn each_value_has_its_sums_and_so_has_what_has_none() {
        let report = report();
        assert_eq!(context_keys(&report), ["route", "tenant"]);
        let rows = |key| {
            let rows = context_rows(&report, key).into_iter();
            rows.map(|row| {
                (
                    row.value,
                    row.live.bytes,
                    row.allocated.bytes,
                    row.oldest_live_ms,
                )
            })
            .collect::<Vec<_>>()
        };
        let some = |value: &str| Some(value.to_owned());
        let by_route = [
            (some("GET /b"), 40, 80, Some(40)),
            (some("GET /a"), 20, 40, Some(20)),
            (None, 10, 20, Some(10)),
        ];
        assert_eq!(rows("route"), by_route);
        assert_eq!(
            rows("tenant"),
            [(some("acme"), 40, 80, Some(40)), (None, 30, 60, Some(10))]
        );
    }
}
