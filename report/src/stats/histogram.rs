//! memray's histogram of sizes: ten bins, logarithmic between the smallest size that is not 0 and the largest.

use crate::model::SizeCount;
use crate::units::size;

const BINS: usize = 10;
/// Length of the longest bar.
const BAR: f64 = 25.0;
/// `###.###XB`
const SIZE_WIDTH: usize = 9;

/// Returns the histogram's lines, joined as in memray. `sizes` are ascending.
pub(super) fn histogram(sizes: &[SizeCount]) -> String {
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else {
        return "<no data for histogram>".into();
    };
    let Some(smallest) = sizes.iter().find(|s| s.size > 0) else {
        // memray itself fails here.
        return "all allocations are of size 0".into();
    };
    let (bounds, counts) = bins(sizes, smallest.size, last.size);
    let most = counts.iter().copied().max().unwrap_or(1).max(1);
    let count_width = most.to_string().len();
    let width = 2 + SIZE_WIDTH + 2 + count_width + 1 + BAR as usize;
    let rule = "-".repeat(width);
    let mut text = format!("min: {}\n\t{rule}\n\t", size(first.size));
    for (bin, (bound, count)) in bounds.into_iter().zip(counts).enumerate() {
        let relation = if bin == BINS - 1 { "<=" } else { "< " };
        let bar = "▇".repeat((count as f64 / most as f64 * BAR).ceil() as usize);
        text += &format!(
            "{relation}{:<SIZE_WIDTH$}: {count:>count_width$} {bar}\n\t",
            size(bound)
        );
    }
    text += &format!("{rule}\n\tmax: {}", size(last.size));
    text
}

/// Returns the bins as in `memray stats --json`: smallest and largest size, both inclusive, and count.
pub(super) fn databins(sizes: &[SizeCount]) -> Vec<(u64, u64, u64)> {
    let smallest = sizes.iter().find(|s| s.size > 0);
    let (Some(smallest), Some(last)) = (smallest, sizes.last()) else {
        return Vec::new();
    };
    let (bounds, counts) = bins(sizes, smallest.size, last.size);
    let mut start = 0;
    (1..)
        .zip(bounds.into_iter().zip(counts))
        .map(|(bin, (bound, count))| {
            let end = bound.saturating_sub(u64::from(bin < BINS));
            (std::mem::replace(&mut start, bound), end, count)
        })
        .collect()
}

/// Returns upper bounds and counts. The arithmetic is memray's, step by step, since otherwise roundings would differ.
fn bins(sizes: &[SizeCount], smallest: u64, largest: u64) -> ([u64; BINS], [u64; BINS]) {
    let mut low = (smallest as f64).ln();
    let high = (largest as f64).ln();
    if low == high {
        low /= 2.0;
    }
    let step = (high - low) / BINS as f64;
    let bounds = std::array::from_fn(|bin| (low + step * (bin + 1) as f64).exp() as u64);
    let mut counts = [0u64; BINS];
    for entry in sizes {
        let bin = if entry.size == 0 {
            0
        } else if step == 0.0 {
            BINS - 1 // every block has one byte, where memray divides by 0
        } else {
            let bin = floor_divide((entry.size as f64).ln() - low, step);
            (bin as usize).min(BINS - 1)
        };
        counts[bin] = counts[bin].saturating_add(entry.count);
    }
    (bounds, counts)
}

/// Returns Python's `a // b` for floats, which have the same sign here. It is not the floor of the rounded quotient.
fn floor_divide(a: f64, b: f64) -> f64 {
    let quotient = (a - a % b) / b;
    let floor = quotient.floor();
    if quotient - floor > 0.5 {
        floor + 1.0
    } else {
        floor
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(list: &[(u64, u64)]) -> Vec<SizeCount> {
        list.iter()
            .map(|&(size, count)| SizeCount { size, count })
            .collect()
    }

    /// Printed by memray 1.20.0's `draw_histogram({24: 100, 48: 100, 1000: 3}, 10)`.
    #[test]
    fn the_histogram_is_memrays() {
        let expected = "\
min: 24.000B
\t------------------------------------------
\t< 34.000B  : 100 ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
\t< 50.000B  : 100 ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇
\t< 73.000B  :   0 
\t< 106.000B :   0 
\t< 154.000B :   0 
\t< 224.000B :   0 
\t< 326.000B :   0 
\t< 474.000B :   0 
\t< 688.000B :   0 
\t<=999.000B :   3 ▇
\t------------------------------------------
\tmax: 1.000kB";
        assert_eq!(
            histogram(&sizes(&[(24, 100), (48, 100), (1000, 3)])),
            expected
        );
    }

    #[test]
    fn strange_sizes_make_a_histogram_too() {
        assert_eq!(histogram(&[]), "<no data for histogram>");
        assert!(histogram(&sizes(&[(0, 7)])).contains("size 0"));
        assert!(histogram(&sizes(&[(1, 7)])).contains("<=1.000B   : 7"));
        assert!(histogram(&sizes(&[(0, 1), (u64::MAX, u64::MAX)])).contains("max: 18.447EB"));
    }
}
