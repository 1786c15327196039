//! Random distances between sampling points, with nothing but `core`. This runs inside `malloc`, where a call of libm's
//! `log` could end in the loader.

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): small, and good from any seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Random(u64);

impl Random {
    /// Makes a generator with its own numbers for each `stream` of a seed.
    pub(super) fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95));
        random.next();
        random
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a distance in whole bytes, at least 1: exponential with this mean, rounded up. Rounding up does not change
    /// how often the distance exceeds `size` bytes: with the probability `e^(-size / mean)`.
    pub(super) fn distance(&mut self, mean: u64) -> u64 {
        // In (0, 1], so that the logarithm is finite: the farthest point lies 36.7 means away.
        let uniform = ((self.next() >> 11) + 1) as f64 * (1.0 / (1_u64 << 53) as f64);
        let distance = -logarithm(uniform) * mean as f64;
        // `as` saturates.
        let whole = distance as u64;
        (whole + u64::from((whole as f64) < distance)).max(1)
    }
}

/// Returns the natural logarithm of a positive normal number, to 10 digits.
fn logarithm(x: f64) -> f64 {
    const MANTISSA: u64 = (1 << 52) - 1;
    const ONE: u64 = 1023 << 52;
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut mantissa = f64::from_bits(bits & MANTISSA | ONE);
    if mantissa > core::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh((m - 1) / (m + 1)), and that fraction is below 0.172.
    let t = (mantissa - 1.0) / (mantissa + 1.0);
    let square = t * t;
    let series = [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0];
    let sum = series.iter().fold(0.0, |sum, term| sum * square + term);
    2.0 * t * sum + exponent as f64 * core::f64::consts::LN_2
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logarithm_is_that_of_libm() {
        let mut random = Random::new(1, 1);
        for _ in 0..100_000 {
            let x = f64::from_bits(random.next() >> 2 | 1 << 52);
            if !x.is_normal() {
                continue;
            }
            let (ours, theirs) = (logarithm(x), x.ln());
            let off = (ours - theirs).abs() / theirs.abs().max(1.0);
            assert!(off < 1e-10, "ln {x} = {theirs}, not {ours}");
        }
        assert_eq!(logarithm(1.0), 0.0);
    }

    #[test]
    fn distances_pass_a_size_as_often_as_they_should() {
        const DRAWS: u32 = 1_000_000;
        for (mean, size) in [(1000, 1), (1000, 100), (1000, 1000), (4096, 20_000)] {
            let mut random = Random::new(7, mean);
            let within = (0..DRAWS).filter(|_| random.distance(mean) <= size).count() as f64;
            let p = -(-(size as f64) / mean as f64).exp_m1();
            let deviation = (f64::from(DRAWS) * p * (1.0 - p)).sqrt();
            let off = (within - f64::from(DRAWS) * p).abs();
            assert!(off < 4.0 * deviation, "{mean}, {size}: {within}");
        }
    }

    #[test]
    fn a_distance_is_never_0_and_streams_differ() {
        let mut ones = Random::new(3, 1);
        assert!((0..1000).all(|_| ones.distance(1) >= 1));
        let draw = |stream| Random::new(3, stream).distance(1 << 40);
        assert_ne!(draw(1), draw(2));
    }
}
