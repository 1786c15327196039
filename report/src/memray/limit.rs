//! The limit on the memory for reading a capture, whatever the capture contains.
//!
//! A few hundred kilobytes of LZ4 can contain millions of definitions, or of blocks that are never freed. So everything that
//! grows with a capture is counted here before it grows, in its worst case: a hash map while it moves to one twice as large,
//! a list with as much spare room. At the limit, reading ends with an error; it never returns a part as the whole.

use std::fmt;

use super::error::ReadError;
use super::source::{Decoded, Stop};

/// Limit on the bytes of memory of a reader's tables; 2 GiB by default.
///
/// Buffers and the text that is being read need up to 64 MiB more. What is made of a report later is not included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemoryLimit(pub u64);

impl MemoryLimit {
    /// No limit, for trusted input.
    pub const NONE: MemoryLimit = MemoryLimit(u64::MAX);

    /// Checks whether `bytes` are within the limit.
    pub(crate) fn holds(self, bytes: u64) -> Result<(), TooLarge> {
        if bytes > self.0 {
            return Err(TooLarge { limit: self });
        }
        Ok(())
    }
}

impl Default for MemoryLimit {
    fn default() -> Self {
        MemoryLimit(2 << 30)
    }
}

/// Error of a capture that needs more memory than the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit that it would exceed.
    pub limit: MemoryLimit,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = crate::units::size(self.limit.0);
        write!(
            f,
            "the capture holds more call stacks, names or live blocks than fit into the memory limit of {limit}"
        )
    }
}

impl std::error::Error for TooLarge {}

impl From<TooLarge> for ReadError {
    fn from(error: TooLarge) -> ReadError {
        ReadError::TooLarge(error)
    }
}

impl From<TooLarge> for std::io::Error {
    fn from(error: TooLarge) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::OutOfMemory, error)
    }
}

/// Rest of a [`MemoryLimit`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    limit: MemoryLimit,
    taken: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Budget::new(MemoryLimit::NONE)
    }
}

impl Budget {
    pub(super) fn new(limit: MemoryLimit) -> Self {
        Budget { limit, taken: 0 }
    }

    /// Takes `bytes` from the budget.
    pub(super) fn take(&mut self, bytes: u64) -> Decoded<()> {
        self.taken = self.taken.saturating_add(bytes);
        self.fits(0)
    }

    /// Checks whether `others` fit in besides what was taken.
    pub(super) fn fits(&self, others: u64) -> Decoded<()> {
        let all = self.taken.saturating_add(others);
        self.limit.holds(all).map_err(Stop::TooLarge)
    }
}

/// Returns the largest memory of one entry of a hash map: while the map grows there are the old one, 7/8 full, and one of
/// twice its size, with a byte for each entry.
pub(crate) const fn in_map<T>() -> u64 {
    (size_of::<T>() as u64 + 1) * 24 / 7 + 1
}

/// Returns the largest memory of one entry of a list: half of the list may be spare. The system moves the pages of a list
/// that grows.
pub(crate) const fn in_list<T>() -> u64 {
    size_of::<T>() as u64 * 2
}

/// Returns the largest memory of one entry of a tree map: nodes are at least half full, and have links.
pub(crate) const fn in_tree<T>() -> u64 {
    size_of::<T>() as u64 * 2 + 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_adds_up_to_the_limit_and_no_further() {
        let mut budget = Budget::new(MemoryLimit(100));
        assert!(budget.take(60).is_ok() && budget.fits(40).is_ok());
        assert!(matches!(budget.fits(41), Err(Stop::TooLarge(_))));
        assert!(budget.take(40).is_ok());
        assert!(matches!(budget.take(1), Err(Stop::TooLarge(_))));
        assert!(budget.take(u64::MAX).is_err() && budget.take(0).is_err());
    }
}
