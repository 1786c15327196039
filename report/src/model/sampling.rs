//! Sampling of a session, and the margins of its estimates.

use super::Tally;

/// Sampling of a session. Every size and count of its report, except those of `mmap`, is an estimate.
///
/// Each requested byte was a sampling point with the chance `1 / mean_bytes`. An allocation that contains one was recorded,
/// and counts for `1 / (1 - e^(-size / mean_bytes))` blocks. Sums of these are right on average (Horvitz and Thompson,
/// 1952).
#[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Sampling {
    /// Average bytes between two sampling points, and the start of each rate. The first one is that of the start.
    pub rates: Vec<SamplingRate>,
    /// Number of allocations that were recorded.
    pub samples: u64,
    /// Requested memory while sampling, counted exactly: not an estimate.
    pub asked: Tally,
    /// Margin of everything allocated: see [`margin`].
    pub allocated: Tally,
    /// Margin of the live memory at the end.
    pub live: Tally,
    /// Margin of the live memory at the high-water mark. The mark itself is the highest of many estimates, so it is more
    /// often too high than too low.
    pub high_water: Tally,
}

/// Rate of sampling, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct SamplingRate {
    /// Milliseconds since the start of the capture.
    pub at_ms: u64,
    /// Average bytes between two sampling points.
    pub mean_bytes: u64,
}

/// 97.5 % quantile of the normal distribution: 95 % lie between it and its negative.
const QUANTILE: f64 = 1.959_964;

/// Returns the margin of `estimate`: in at least 95 of 100 sessions the true value is within it on either side.
///
/// `variance` is that of the estimate, and `largest` the deviation that one more sample might have added. The margin is the
/// upper limit of Fay and Feuer (1997) for sums of few and unequal weights, where the normal distribution is too optimistic;
/// it uses the quantile of the chi-squared distribution of Wilson and Hilferty (1931).
#[must_use]
pub fn margin(estimate: f64, variance: f64, largest: f64) -> u64 {
    let (sum, variance) = (estimate + largest, variance.max(0.0) + largest * largest);
    if variance == 0.0 {
        return 0;
    }
    // 2 / 9 of the degrees of freedom's inverse.
    let ninth = variance / (9.0 * sum * sum);
    let upper = sum * (1.0 - ninth + QUANTILE * ninth.sqrt()).powi(3);
    (upper - estimate).max(0.0).round() as u64
}

impl Sampling {
    /// Returns the largest mean distance of sampling points, which has the widest margins.
    #[must_use]
    pub fn mean_bytes(&self) -> u64 {
        let means = self.rates.iter().map(|rate| rate.mean_bytes);
        means.max().unwrap_or(0)
    }

    /// Returns the mean distance of sampling points at the end of the session, or now if it goes on.
    #[must_use]
    pub fn current_mean_bytes(&self) -> u64 {
        self.rates.last().map_or(0, |rate| rate.mean_bytes)
    }

    /// Returns the [`margin`] of any sum of `bytes` estimated bytes: of a call site, a thread, a subtree.
    ///
    /// The variance of such a sum is at most `mean_bytes` times the sum, for any sizes.
    #[must_use]
    pub fn margin(&self, bytes: u64) -> u64 {
        let (mean, bytes) = (self.mean_bytes() as f64, bytes as f64);
        margin(bytes, mean * bytes, mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_is_that_of_the_coarsest_rate() {
        let rate = |mean_bytes| SamplingRate {
            at_ms: 0,
            mean_bytes,
        };
        let sampling = Sampling {
            rates: vec![rate(1 << 10), rate(1 << 20), rate(1 << 12)],
            ..Sampling::default()
        };
        // The limits of a Poisson distribution of which n were seen: 3.69 for none, 18.39 for 10, 121.6 for 100.
        for (samples, limit) in [(0, 3.69), (10, 18.39), (100, 121.63)] {
            let margin = sampling.margin(samples << 20) as f64 / f64::from(1 << 20);
            assert!(
                (margin + samples as f64 - limit).abs() < 0.03,
                "{samples}: {margin}"
            );
        }
    }

    #[test]
    fn what_is_certain_has_no_margin() {
        assert_eq!(margin(1000.0, 0.0, 0.0), 0);
        assert_eq!(margin(0.0, 0.0, 0.0), 0);
        assert_eq!(Sampling::default().margin(1 << 30), 0);
    }
}
