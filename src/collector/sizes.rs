//! Number of allocations by size.
//!
//! Sizes below 1 KiB have a counter each. Larger sizes are counted exactly while there are few distinct ones. After that
//! they are counted by their 8 leading bits, in steps of less than 1 %. So the memory is bounded.

use super::hash::Map;
use heapray_report::model::SizeCount;

const SMALL: usize = 1024;
/// Distinct sizes from [`SMALL`] on that are counted exactly.
const DISTINCT: usize = 8192;
/// Bits of a rounded size after its leading one: a step is at most 1/128, 0.8 %.
const KEPT_BITS: u32 = 7;

/// Counters by size; see the module.
#[derive(Debug)]
pub(super) struct Sizes {
    small: Vec<u64>,
    large: Map<u64, u64>,
    rounded: bool,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes {
            small: vec![0; SMALL],
            large: Map::default(),
            rounded: false,
        }
    }
}

impl Sizes {
    /// Counts `times` allocations of `size` bytes.
    #[inline]
    pub(super) fn add(&mut self, size: u64, times: u64) {
        match usize::try_from(size)
            .ok()
            .and_then(|size| self.small.get_mut(size))
        {
            Some(count) => *count += times,
            None => self.add_large(size, times),
        }
    }

    fn add_large(&mut self, size: u64, times: u64) {
        let size = if self.rounded { round(size) } else { size };
        *self.large.entry(size).or_insert(0) += times;
        if !self.rounded && self.large.len() > DISTINCT {
            self.rounded = true;
            let mut rounded = Map::default();
            for (&size, count) in &self.large {
                *rounded.entry(round(size)).or_insert(0) += count;
            }
            self.large = rounded;
        }
    }

    /// Returns the sizes that occurred, smallest first.
    pub(super) fn counts(&self) -> Vec<SizeCount> {
        let small = (0..).zip(self.small.iter().copied());
        let mut counts: Vec<SizeCount> = small
            .chain(self.large.iter().map(|(&size, &count)| (size, count)))
            .filter(|&(_, count)| count != 0)
            .map(|(size, count)| SizeCount { size, count })
            .collect();
        counts.sort_unstable_by_key(|count| count.size);
        counts
    }

    /// Returns whether large sizes are rounded.
    pub(super) fn rounded(&self) -> bool {
        self.rounded
    }

    /// Returns the bytes of memory of the counters.
    pub(super) fn memory_bytes(&self) -> u64 {
        (size_of_val(self.small.as_slice()) + self.large.capacity() * size_of::<(u64, u64)>())
            as u64
    }
}

/// Returns the middle of `size`'s step. So sums over rounded sizes are off by half a step at most, and by little on average.
fn round(size: u64) -> u64 {
    let step = (u64::BITS - size.leading_zeros()).saturating_sub(KEPT_BITS + 1);
    (size >> step << step) | ((1 << step) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_sizes_are_exact() {
        let mut sizes = Sizes::default();
        for size in [5, 1023, 1024, 5, 1 << 40, u64::MAX] {
            sizes.add(size, 1);
        }
        let counts: Vec<_> = sizes
            .counts()
            .iter()
            .map(|count| (count.size, count.count))
            .collect();
        assert_eq!(
            counts,
            [(5, 2), (1023, 1), (1024, 1), (1 << 40, 1), (u64::MAX, 1)]
        );
        assert!(!sizes.rounded());
    }

    #[test]
    fn many_sizes_are_rounded_and_none_is_lost_and_memory_is_bounded() {
        let mut sizes = Sizes::default();
        for number in 0..300_000u64 {
            sizes.add(number, 1);
            sizes.add(number << 20, 1);
            sizes.add(number << 44, 1);
        }
        assert!(sizes.rounded());
        assert!(sizes.memory_bytes() < 512 << 10, "{}", sizes.memory_bytes());
        let counts = sizes.counts();
        assert_eq!(counts.iter().map(|count| count.count).sum::<u64>(), 900_000);
        assert!(counts.is_sorted_by(|a, b| a.size < b.size));
    }

    proptest! {
        #[test]
        fn rounding_errs_by_less_than_half_a_percent(shift in 0u32..54, size in any::<u64>()) {
            let size = size >> shift;
            let off = round(size).abs_diff(size);
            prop_assert!(off == 0 || off as f64 / size as f64 <= 0.005, "{size} became {}", round(size));
            prop_assert_eq!(round(round(size)), round(size));
        }
    }
}
