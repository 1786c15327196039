//! The random numbers of a program: splitmix64, so that a seed gives the same program on every machine.

use std::ops::Range;

/// A stream of random numbers. Each part of a program has a stream of its own, so that a cause does not change the
/// noise of the traffic above it.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Starts stream number `stream` of `seed`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        rng.next();
        rng
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number of 0 (included) to 1 (excluded).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number below `bound`, or 0 where `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns a number of `range`.
    pub(crate) fn within(&mut self, range: &Range<u64>) -> u64 {
        range.start + self.below(range.end.saturating_sub(range.start))
    }

    /// Returns true once in `count` calls, on average.
    pub(crate) fn one_of(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    /// Returns a waiting time of an exponential distribution.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }

    /// Returns a count of a Poisson distribution (Knuth's method: for small means).
    pub(crate) fn poisson(&mut self, mean: f64) -> u16 {
        let limit = (-mean).exp();
        let mut product = self.unit();
        let mut count = 0;
        while product > limit {
            count += 1;
            product *= self.unit();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distributions_have_the_means_that_they_name() {
        let mut rng = Rng::new(1, 1);
        let mean = |mut draw: Box<dyn FnMut() -> f64 + '_>| {
            (0..100_000).map(|_| draw()).sum::<f64>() / 1e5
        };
        let mut other = Rng::new(1, 2);
        assert!((mean(Box::new(|| rng.exponential(30.0))) - 30.0).abs() < 1.0);
        assert!((mean(Box::new(|| f64::from(other.poisson(0.7)))) - 0.7).abs() < 0.02);
        assert!((mean(Box::new(|| other.within(&(10..20)) as f64)) - 14.5).abs() < 0.1);
    }

    #[test]
    fn a_stream_depends_on_the_seed_and_on_its_number() {
        assert_eq!(Rng::new(7, 1).next(), Rng::new(7, 1).next());
        assert_ne!(Rng::new(7, 1).next(), Rng::new(7, 2).next());
        assert_ne!(Rng::new(7, 1).next(), Rng::new(8, 1).next());
    }
}
