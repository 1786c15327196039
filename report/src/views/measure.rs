//! The choice between a call site's sums.

use super::Sums;
use crate::model::{Site, Tally};

/// Measure of the heap. Each view, page and file format shows one of them, or several by their names.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
#[non_exhaustive]
pub enum Measure {
    /// Live at the moment when the heap was largest.
    #[default]
    HighWater,
    /// Live at the end: leaks, and memory in use.
    Live,
    /// Everything ever allocated; zero if the source format does not have it.
    Allocated,
    /// Freed soon after, by the thread that allocated.
    Temporary,
}

/// Unit of sums.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, serde::Serialize, serde::Deserialize,
)]
pub enum Unit {
    /// Bytes.
    #[default]
    Bytes,
    /// Blocks.
    Count,
}

impl Measure {
    /// All measures.
    pub const ALL: &'static [Measure] = &[
        Measure::HighWater,
        Measure::Live,
        Measure::Allocated,
        Measure::Temporary,
    ];

    /// Returns this measure of `site`.
    #[must_use]
    pub fn of(self, site: &Site) -> Tally {
        match self {
            Measure::HighWater => site.high_water,
            Measure::Live => site.live,
            Measure::Allocated => site.allocated,
            Measure::Temporary => site.temporary,
        }
    }

    /// Returns this measure of `sums`.
    #[must_use]
    pub fn of_sums(self, sums: &Sums) -> Tally {
        match self {
            Measure::HighWater => sums.high_water,
            Measure::Live => sums.live,
            Measure::Allocated => sums.allocated,
            Measure::Temporary => sums.temporary,
        }
    }

    /// Returns the name for users: `high-water mark`, `still live`, `allocated`, `temporary`.
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
    /// Returns the part of `tally` in this unit.
    #[must_use]
    pub const fn of(self, tally: Tally) -> u64 {
        match self {
            Unit::Bytes => tally.bytes,
            Unit::Count => tally.count,
        }
    }

    /// Returns the other unit.
    #[must_use]
    pub const fn other(self) -> Unit {
        match self {
            Unit::Bytes => Unit::Count,
            Unit::Count => Unit::Bytes,
        }
    }
}
