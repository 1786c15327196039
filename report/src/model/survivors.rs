//! How old the blocks are that are still live, and the marks that a person set on the way.

use super::Tally;

/// A moment that somebody named, to compare what was allocated before and after it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Mark {
    /// Its name, as it was given.
    pub name: String,
    /// Milliseconds since the start of the capture.
    pub at_ms: u64,
    /// What was live then.
    pub live: Tally,
}

/// The still-live blocks by the time of their allocation.
///
/// The capture's time is cut into generations: at every [`Mark`], and besides into a few equal parts. A call site whose
/// survivors stand in every generation grows; one with survivors in the first only is set-up.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Survivors {
    /// Where each generation begins, in milliseconds since the start of the capture: 0 first, then rising. The last one
    /// ends with the capture. Empty where births are not known.
    pub starts_ms: Vec<u64>,
    /// What is live of each site and generation, ordered by both; nothing for those without survivors. A site's
    /// entries add up to its `live`.
    pub list: Vec<Survivor>,
}

/// What is live of one call site and one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Survivor {
    /// An index into [`Report::sites`](super::Report::sites).
    pub site: u32,
    /// An index into [`Survivors::starts_ms`].
    pub generation: u32,
    /// Blocks and bytes.
    pub live: Tally,
}
