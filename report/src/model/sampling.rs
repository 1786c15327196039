//! How a capture that did not record every allocation chose, and how far its estimates may be off.

use super::Tally;

/// What a sampled capture is made of. Every size and count of its report, save those of `mmap`, is an estimate.
///
/// Each byte that was asked for was a sampling point with the chance `1 / mean_bytes`; an allocation that holds one was
/// recorded, and counts for `1 / (1 - e^(-size / mean_bytes))` blocks. Sums of that are right on average (Horvitz and
/// Thompson, 1952).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    /// Bytes between two sampling points on average, and since when; the first one is that of the start.
    pub rates: Vec<SamplingRate>,
    /// Allocations that were recorded.
    pub samples: u64,
    /// What was asked for while sampling, counted exactly: not an estimate.
    pub asked: Tally,
    /// How far the estimate of everything allocated may be off: see [`margin`].
    pub allocated: Tally,
    /// How far that of what was live at the end may be off.
    pub live: Tally,
    /// How far that of what was live at the high-water mark may be off. The mark itself is the highest of many estimates,
    /// so it lies rather too high than too low.
    pub high_water: Tally,
}

/// A rate of sampling, and when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SamplingRate {
    /// Milliseconds since the start of the capture.
    pub at_ms: u64,
    /// Bytes between two sampling points, on average.
    pub mean_bytes: u64,
}

/// The 97.5 % quantile of the normal distribution: 95 % lie between it and its negative.
const QUANTILE: f64 = 1.959_964;

/// So much on either side of `estimate` the true value lies in 95 of 100 captures, at least.
///
/// `variance` is that of the estimate, and `largest` the deviation that one more sample might have brought. It is the upper
/// limit of Fay and Feuer (1997) for sums of few and unequal weights, where the normal distribution promises too much; the
/// quantile of the chi-squared distribution that it takes is Wilson and Hilferty's (1931).
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
    /// The largest mean distance of sampling points there was: that of the widest errors.
    #[must_use]
    pub fn mean_bytes(&self) -> u64 {
        let means = self.rates.iter().map(|rate| rate.mean_bytes);
        means.max().unwrap_or(0)
    }

    /// The [`margin`] of any sum of `bytes` estimated bytes: a call site's, a thread's, a subtree's.
    ///
    /// The variance of such a sum is at most `mean_bytes` times the sum, whatever sizes it is made of.
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
