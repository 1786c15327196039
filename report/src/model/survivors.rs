//! The live blocks by age, and the marks that a user has set.

use super::Tally;
use super::join::join;

/// Moment that a user has named, to compare the allocations before and after it.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Mark {
    /// Name that the user gave.
    pub name: String,
    /// Milliseconds since the start of the capture.
    pub at_ms: u64,
    /// Live memory at the mark.
    pub live: Tally,
}

/// Live blocks by the time of their allocation.
///
/// The session's time is divided into generations: at every [`Mark`], at every moment of the [`History`](super::History), and,
/// in a short session, into a few equal parts.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Survivors {
    /// Start of each generation, in milliseconds since the start of the session: 0 first, then rising. The last generation
    /// ends with the session. Empty if births are not known.
    pub starts_ms: Vec<u64>,
    /// Live memory of each site and generation, ordered by both, without sites that have no survivors. A site's entries add
    /// up to its `live`.
    pub list: Vec<Survivor>,
}

/// Live memory of one call site and one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Survivor {
    /// Index into [`Report::sites`](super::Report::sites).
    pub site: u32,
    /// Index into [`Survivors::starts_ms`].
    pub generation: u32,
    /// Blocks and bytes.
    pub live: Tally,
}

impl Survivors {
    /// Returns the survivors after site `n` became `number(n)`, or was removed. Sites that became the same are summed up.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(u32) -> Option<u32>) -> Survivors {
        let list = self.list.iter().filter_map(|survivor| {
            Some(Survivor {
                site: number(survivor.site)?,
                ..*survivor
            })
        });
        Survivors::of(self.starts_ms.clone(), list.collect())
    }

    /// Makes survivors of entries in any order. Entries of the same site and generation are summed up.
    pub(crate) fn of(starts_ms: Vec<u64>, mut list: Vec<Survivor>) -> Survivors {
        join(
            &mut list,
            |survivor| (survivor.site, survivor.generation),
            |first, later| first.live += later.live,
        );
        Survivors { starts_ms, list }
    }
}
