//! Numbers that look random and are the same in every run.

/// Marsaglia's xorshift with 64 bits of state.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `end`.
    #[inline]
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        // The upper half times `end`, without a division.
        ((self.next() >> 32) * end) >> 32
    }
}
