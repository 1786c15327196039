//! Which of a call site's sums is looked at.

use super::Sums;
use crate::model::{Site, Tally};

/// One side of the heap: each view, page and file format shows one of them, or several by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Measure {
    /// Live at the moment when the heap was largest.
    #[default]
    HighWater,
    /// Live at the end: leaks, and what is in use.
    Live,
    /// Everything ever allocated; zero where the source format does not tell.
    Allocated,
    /// Freed soon after, by the thread that allocated.
    Temporary,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unit {
    /// Bytes.
    #[default]
    Bytes,
    /// Blocks.
    Count,
}

impl Measure {
    /// All of them.
    pub const ALL: &'static [Measure] = &[
        Measure::HighWater,
        Measure::Live,
        Measure::Allocated,
        Measure::Temporary,
    ];

    /// What `site` has of it.
    #[must_use]
    pub fn of(self, site: &Site) -> Tally {
        match self {
            Measure::HighWater => site.high_water,
            Measure::Live => site.live,
            Measure::Allocated => site.allocated,
            Measure::Temporary => site.temporary,
        }
    }

    /// What `sums` have of it.
    #[must_use]
    pub fn of_sums(self, sums: &Sums) -> Tally {
        match self {
            Measure::HighWater => sums.high_water,
            Measure::Live => sums.live,
            Measure::Allocated => sums.allocated,
            Measure::Temporary => sums.temporary,
        }
    }

    /// As people read it: `high-water mark`, `still live`, `allocated`, `temporary`.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Measure::HighWater => "high-water mark",
            Measure::Live => "still live",
            Measure::Allocated => "allocated",
            Measure::Temporary => "temporary",
        }
    }
}

impl Unit {
    /// This side of `tally`.
    #[must_use]
    pub const fn of(self, tally: Tally) -> u64 {
        match self {
            Unit::Bytes => tally.bytes,
            Unit::Count => tally.count,
        }
    }

    /// The one that this is not.
    #[must_use]
    pub const fn other(self) -> Unit {
        match self {
            Unit::Bytes => Unit::Count,
            Unit::Count => Unit::Bytes,
        }
    }
}
