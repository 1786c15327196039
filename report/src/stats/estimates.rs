//! Texts for a sampled session, which say that its numbers are estimates, and how good they are.

use serde::Serialize;

use crate::model::{Report, Sampling, Tally};
use crate::units::size;

/// Returns the lines that the reader of a sampled report must know, or none if every allocation was recorded.
///
/// ```text
/// estimates: 4,711 of 1,204,331 allocations were recorded, one sample each 512.000KiB on average
/// live: 1.204GB ± 31.004MB (95 % confidence) …
/// ```
#[must_use]
pub fn estimates(report: &Report) -> Vec<String> {
    let Some(sampling) = &report.conditions.sampling else {
        return Vec::new();
    };
    let totals = &report.totals;
    let mut lines = vec![format!(
        "sizes and counts are estimates: {} of {} allocations were recorded, {}",
        sampling.samples,
        sampling.asked.count,
        rates(sampling)
    )];
    lines.push(format!(
        "counted exactly: {} asked for in {} allocations",
        size(sampling.asked.bytes),
        sampling.asked.count
    ));
    for (what, estimate, margin) in [
        ("still live", totals.live, sampling.live),
        (
            "at the high-water mark",
            totals.high_water,
            sampling.high_water,
        ),
        ("allocated", totals.allocated, sampling.allocated),
    ] {
        lines.push(format!("{what}: {}", interval(estimate, margin)));
    }
    lines
}

/// Returns `one sample each 512.000KiB on average`.
fn rates(sampling: &Sampling) -> String {
    let mut means: Vec<u64> = sampling.rates.iter().map(|rate| rate.mean_bytes).collect();
    means.dedup();
    let means: Vec<String> = means.into_iter().map(size).collect();
    format!("one sample each {} on average", means.join(", then "))
}

fn interval(estimate: Tally, margin: Tally) -> String {
    format!(
        "{} ± {} in {} ± {} allocations (95 % confidence)",
        size(estimate.bytes),
        size(margin.bytes),
        estimate.count,
        margin.count
    )
}

/// [`Sampling`] in the page and the JSON files.
#[derive(Debug, Serialize)]
pub(crate) struct Estimates {
    /// Average bytes between two samples; if that was changed, the largest in the session.
    mean_bytes: u64,
    /// The same since the last change.
    current_mean_bytes: u64,
    /// Allocations that were recorded.
    samples: u64,
    /// Requested memory, counted exactly.
    asked: Amount,
    /// Margin on either side, with 95 % confidence.
    live_margin: Amount,
    high_water_margin: Amount,
    allocated_margin: Amount,
}

#[derive(Debug, Serialize)]
struct Amount {
    count: u64,
    bytes: u64,
}

impl From<Tally> for Amount {
    fn from(tally: Tally) -> Amount {
        Amount {
            count: tally.count,
            bytes: tally.bytes,
        }
    }
}

impl Estimates {
    pub(crate) fn of(sampling: &Sampling) -> Estimates {
        Estimates {
            mean_bytes: sampling.mean_bytes(),
            current_mean_bytes: sampling.current_mean_bytes(),
            samples: sampling.samples,
            asked: sampling.asked.into(),
            live_margin: sampling.live.into(),
            high_water_margin: sampling.high_water.into(),
            allocated_margin: sampling.allocated.into(),
        }
    }
}
