//! The time of a block's allocation, in 26 bits: milliseconds since the start, as a small float.
//!
//! ```text
//! 25        20                   0
//! [ exponent | mantissa          ]    exponent 0: mantissa ms        (exact up to 35 minutes)
//!                                     else: mantissa << exponent ms  (mantissa has 21 bits, its highest bit set)
//! ```
//!
//! The mantissa's highest bit is added to the exponent's lowest, so codes are in the order of time and without a gap. An age
//! is off by at most 1 part in a million: by half a second after a week.

const MANTISSA_BITS: u32 = 21;

/// Bits that a [`Birth`] needs.
pub(super) const BITS: u32 = 26;

/// Coarse moment. The order of births is the order of their moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Birth(pub(super) u32);

const _: () = assert!(
    Birth::at_ms(u64::MAX).0 < 1 << BITS,
    "every moment fits in the bits that the live table has for it"
);

impl Birth {
    /// Moment later than every real one.
    pub(super) const NEVER: Birth = Birth(u32::MAX);

    /// Returns the birth at `ms` milliseconds, rounded down.
    #[inline]
    pub(super) const fn at_ms(ms: u64) -> Birth {
        let exponent = (u64::BITS - ms.leading_zeros()).saturating_sub(MANTISSA_BITS);
        Birth((exponent << (MANTISSA_BITS - 1)) + (ms >> exponent) as u32)
    }

    /// Returns the milliseconds since the start.
    pub(super) const fn ms(self) -> u64 {
        let exponent = (self.0 >> (MANTISSA_BITS - 1)).saturating_sub(1);
        ((self.0 - (exponent << (MANTISSA_BITS - 1))) as u64) << exponent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_birth_is_exact_to_a_millionth_and_never_late(shift in 0u32..64, ms in any::<u64>()) {
            let ms = ms >> shift;
            let coarse = Birth::at_ms(ms).ms();
            prop_assert!(coarse <= ms && ms - coarse <= ms >> 20, "{ms} became {coarse}");
            prop_assert!(ms >= 1 << 21 || coarse == ms);
            prop_assert_eq!(Birth::at_ms(coarse), Birth::at_ms(ms));
        }

        #[test]
        fn births_are_in_the_order_of_time(shift in 0u32..64, a in any::<u64>(), b in any::<u64>()) {
            let (a, b) = (a >> shift, b >> shift);
            prop_assert!(a > b || Birth::at_ms(a) <= Birth::at_ms(b));
        }
    }
}
