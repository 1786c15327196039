//! Sums of the runs of a context: of its requests, or of its futures.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::Tally;

/// What the runs of a context did, each from its beginning to its end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    /// Allocated bytes of each run.
    pub allocated_bytes: Spread,
    /// Allocated blocks of each run.
    pub allocated_blocks: Spread,
    /// The most bytes that each run held at one time. Empty if only samples were recorded.
    pub most_bytes: Spread,
    /// Bytes that each run left behind: what it had allocated, less what it had freed of its contexts' blocks when it ended.
    /// Empty if only samples were recorded.
    pub held_bytes: Spread,
    /// What runs freed that another context had allocated.
    pub freed_of_others: Tally,
}

impl Runs {
    /// Returns the number of runs.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.allocated_bytes.count()
    }

    /// Returns the spreads, in the order of the fields.
    #[must_use]
    pub fn spreads(&self) -> [&Spread; 4] {
        [
            &self.allocated_bytes,
            &self.allocated_blocks,
            &self.most_bytes,
            &self.held_bytes,
        ]
    }

    /// Returns the spreads, in the order of the fields.
    pub fn spreads_mut(&mut self) -> [&mut Spread; 4] {
        [
            &mut self.allocated_bytes,
            &mut self.allocated_blocks,
            &mut self.most_bytes,
            &mut self.held_bytes,
        ]
    }
}

impl AddAssign<&Runs> for Runs {
    fn add_assign(&mut self, more: &Runs) {
        for (spread, more) in self.spreads_mut().into_iter().zip(more.spreads()) {
            *spread += more;
        }
        self.freed_of_others += more.freed_of_others;
    }
}

/// How numbers are spread: how many of them lie in each of the buckets, two of which are an octave.
///
/// ```text
///   bucket   0   1   2   3   4   5      6      7       8        9        …
///   numbers  0   1   2   3   4   5..6   7..8   9..12   13..16   17..24   …
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spread {
    /// The numbers in each bucket, up to the last that has any.
    counts: Vec<u64>,
    sum: u64,
    largest: u64,
}

impl Spread {
    /// The largest number of buckets.
    pub const BUCKETS: usize = 97;

    /// Makes a spread of its parts. Buckets that do not exist are left out.
    #[must_use]
    pub fn from_parts(mut counts: Vec<u64>, sum: u64, largest: u64) -> Spread {
        counts.truncate(Spread::BUCKETS);
        Spread {
            counts,
            sum,
            largest,
        }
    }

    /// Adds a number.
    pub fn add(&mut self, number: u64) {
        let bucket = bucket_of(number);
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += 1;
        self.sum = self.sum.saturating_add(number);
        self.largest = self.largest.max(number);
    }

    /// Returns how many numbers were added.
    #[must_use]
    pub fn count(&self) -> u64 {
        let counts = self.counts.iter();
        counts.fold(0, |sum, &count| sum.saturating_add(count))
    }

    /// Returns the sum of all numbers.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the largest number; 0 if there is none.
    #[must_use]
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the average, rounded down. `None` without numbers.
    #[must_use]
    pub fn mean(&self) -> Option<u64> {
        self.sum.checked_div(self.count())
    }

    /// Returns the numbers in each bucket, up to the last that has any, with the largest number of the bucket.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let counts = self.counts.iter().enumerate();
        counts.map(|(bucket, &count)| (largest_in(bucket), count))
    }

    /// Returns the number that a part of all numbers does not exceed: 0.5 for the median. It is the middle of a bucket, and so
    /// wrong by a quarter at most. `None` without numbers.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let rank = (part * self.count() as f64).ceil().max(1.0) as u64;
        let mut below = 0u64;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if count > 0 && below.saturating_add(count) >= rank {
                let from = bucket.checked_sub(1).map_or(0, largest_in);
                let to = largest_in(bucket).min(self.largest).max(from);
                return Some(from + (to - from).div_ceil(2));
            }
            below = below.saturating_add(count);
        }
        None
    }

    /// Returns the bytes of memory besides the struct itself.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        (self.counts.capacity() * size_of::<u64>()) as u64
    }
}

impl AddAssign<&Spread> for Spread {
    fn add_assign(&mut self, more: &Spread) {
        if more.counts.len() > self.counts.len() {
            self.counts.resize(more.counts.len(), 0);
        }
        for (count, more) in self.counts.iter_mut().zip(&more.counts) {
            *count = count.saturating_add(*more);
        }
        self.sum = self.sum.saturating_add(more.sum);
        self.largest = self.largest.max(more.largest);
    }
}

fn bucket_of(number: u64) -> usize {
    if number < 3 {
        return number as usize;
    }
    let below = number - 1;
    let octave = below.ilog2();
    let half = below >> (octave - 1) & 1;
    (1 + 2 * octave as usize + half as usize).min(Spread::BUCKETS - 1)
}

fn largest_in(bucket: usize) -> u64 {
    match bucket {
        0..3 => bucket as u64,
        even if even.is_multiple_of(2) => 1 << (even / 2),
        odd => 3 << ((odd - 3) / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_in_the_bucket_that_ends_at_it_or_above() {
        for bucket in 1..Spread::BUCKETS {
            let (before, last) = (largest_in(bucket - 1), largest_in(bucket));
            assert!(before < last);
            assert_eq!(bucket_of(before + 1), bucket);
            assert_eq!(bucket_of(last), bucket);
        }
        assert_eq!(bucket_of(u64::MAX), Spread::BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_within_a_quarter_and_never_past_the_largest() {
        let mut spread = Spread::default();
        assert_eq!((spread.quantile(0.5), spread.mean()), (None, None));
        for number in 0..10_000 {
            spread.add(number * 7);
        }
        for part in [0.01, 0.5, 0.9, 0.99, 1.0] {
            let exact = part * 69_993.0;
            let found = spread.quantile(part).unwrap() as f64;
            assert!((found - exact).abs() <= exact / 4.0, "{part}: {found}");
        }
        assert!(spread.quantile(1.0) <= Some(69_993));
        assert_eq!((spread.count(), spread.mean()), (10_000, Some(34_996)));
        for number in 0..2000 {
            let mut one = Spread::default();
            one.add(number);
            let found = one.quantile(0.5).unwrap();
            assert!(found.abs_diff(number) * 4 <= number, "{number}: {found}");
        }
    }

    #[test]
    fn the_spread_of_all_is_the_sum_of_spreads() {
        let spread = |numbers: &[u64]| {
            let mut spread = Spread::default();
            numbers.iter().for_each(|&number| spread.add(number));
            spread
        };
        let mut sum = spread(&[1, 900]);
        sum += &spread(&[0, 5, 1 << 50]);
        assert_eq!(sum, spread(&[900, 0, 1 << 50, 5, 1]));
    }
}
