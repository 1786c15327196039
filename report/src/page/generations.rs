//! The work that a session did while each generation of survivors was allocated. Generations differ in length, and a pause has
//! none of the work, so a sum of survivors means nothing without it.

use crate::Report;
use crate::views::allocated_by_time;

/// Returns the bytes that the session allocated in each generation. Between two moments of the history they are taken to be
/// even. Empty if the report has no history.
pub(super) fn allocated(report: &Report) -> Vec<u64> {
    if report.history.moments.is_empty() {
        return Vec::new();
    }
    let known = allocated_by_time(report);
    let starts = &report.survivors.starts_ms;
    let ends = starts.iter().skip(1).copied().chain([u64::MAX]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| until(&known, end).saturating_sub(until(&known, start)))
        .collect()
}

/// Returns the bytes allocated until `at_ms`; `known` has a first entry at 0, and rises.
fn until(known: &[(u64, u64)], at_ms: u64) -> u64 {
    let after = known.partition_point(|&(ms, _)| ms < at_ms);
    let (Some(&(to_ms, to)), Some(&(from_ms, from))) =
        (known.get(after), known.get(after.wrapping_sub(1)))
    else {
        return if after == 0 {
            0
        } else {
            known[known.len() - 1].1
        };
    };
    let step = u128::from(to.saturating_sub(from)) * u128::from(at_ms - from_ms);
    from + (step / u128::from(to_ms - from_ms).max(1)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HistoryMoment, Tally};

    #[test]
    fn a_pause_has_no_work_and_a_mark_shares_that_around_it() {
        let mut report = Report::default();
        assert!(allocated(&report).is_empty());
        report.about.end_ms = 300;
        let tally = |bytes| Tally { count: 1, bytes };
        report.totals.allocated = tally(1_000);
        for (at_ms, bytes) in [(100, 400), (200, 1_000)] {
            report.history.moments.push(HistoryMoment {
                at_ms,
                allocated: tally(bytes),
            });
        }
        report.survivors.starts_ms = vec![0, 100, 150, 200, 250];
        assert_eq!(allocated(&report), [400, 300, 300, 0, 0]);
        report.survivors.starts_ms = vec![0, 400];
        assert_eq!(allocated(&report), [1_000, 0]);
    }
}
