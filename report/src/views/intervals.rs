//! What was allocated when and freed when: enough for any range of the capture.

use crate::model::Tally;

/// What was allocated when and freed when, coarse in time: the capture is cut into slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intervals {
    /// Start of each slot in milliseconds since the start of the capture; rising, the first is 0.
    pub starts_ms: Vec<u64>,
    /// Blocks by call site, slot of birth and slot of death.
    pub rows: Vec<Interval>,
}

/// Blocks of one call site that were allocated in one slot and freed in another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval {
    /// An index into [`Report::sites`](crate::Report::sites).
    pub site: u32,
    /// The slot of the allocation.
    pub born: u32,
    /// The slot of the free; `None`: never freed.
    pub freed: Option<u32>,
    /// Blocks and bytes.
    pub blocks: Tally,
}
