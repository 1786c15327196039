//! Counts of allocations.

use core::iter::Sum;
use core::ops::{Add, Sub};

/// Counts of allocations, recorded or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Metered {
    /// Number of allocations.
    pub count: u64,
    /// Requested bytes.
    pub bytes: u64,
}

impl Add for Metered {
    type Output = Metered;

    fn add(self, other: Metered) -> Metered {
        Metered {
            count: self.count.wrapping_add(other.count),
            bytes: self.bytes.wrapping_add(other.bytes),
        }
    }
}

impl Sub for Metered {
    type Output = Metered;

    fn sub(self, other: Metered) -> Metered {
        Metered {
            count: self.count.wrapping_sub(other.count),
            bytes: self.bytes.wrapping_sub(other.bytes),
        }
    }
}

impl Sum for Metered {
    fn sum<I: Iterator<Item = Metered>>(each: I) -> Metered {
        each.fold(Metered::default(), Add::add)
    }
}
