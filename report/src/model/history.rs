//! What call sites held while the session ran.

use super::Tally;
use super::join::join;

/// The memory of call sites at some moments of the session: enough to tell a leak from set-up, from a cache that is full,
/// and from memory that follows the traffic.
///
/// The moments divide the session evenly, half by time and half by allocated bytes, so that neither a short burst nor a long
/// pause hides the rest. [`Checkpoints`](crate::checkpoints::Checkpoints) chooses them while recording.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct History {
    /// The moments, oldest first. Each is also the start of a generation of [`Survivors`](super::Survivors). Empty if the
    /// source has no times.
    pub moments: Vec<HistoryMoment>,
    /// What sites held, ordered by site and moment. At most 512 sites have an entry for a moment: those that held most.
    pub list: Vec<Held>,
}

/// Moment of a [`History`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct HistoryMoment {
    /// Milliseconds since the start of the session.
    pub at_ms: u64,
    /// Everything that the process had allocated until then.
    pub allocated: Tally,
}

/// Memory of a call site at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Held {
    /// Index into [`Report::sites`](super::Report::sites).
    pub site: u32,
    /// Index into [`History::moments`].
    pub moment: u32,
    /// Live bytes.
    pub live: u64,
    /// Bytes that the site had allocated until then.
    pub allocated: u64,
}

impl History {
    /// Returns the history after site `n` became `number(n)`, or was removed. Sites that became the same are summed up.
    #[must_use]
    pub fn renumbered(&self, number: impl Fn(u32) -> Option<u32>) -> History {
        let list = self.list.iter().filter_map(|held| {
            Some(Held {
                site: number(held.site)?,
                ..*held
            })
        });
        History::of(self.moments.clone(), list.collect())
    }

    /// Makes a history of entries in any order. Entries of the same site and moment are summed up.
    pub(crate) fn of(moments: Vec<HistoryMoment>, mut list: Vec<Held>) -> History {
        join(
            &mut list,
            |held| (held.site, held.moment),
            |first, later| {
                first.live = first.live.saturating_add(later.live);
                first.allocated = first.allocated.saturating_add(later.allocated);
            },
        );
        History { moments, list }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joined_sites_are_summed_up_and_removed_ones_are_gone() {
        let held = |site, moment, live| Held {
            site,
            moment,
            live,
            allocated: 10 * live,
        };
        let history = History {
            moments: vec![HistoryMoment::default(); 2],
            list: vec![held(0, 0, 1), held(0, 1, 2), held(1, 1, 4), held(2, 1, 8)],
        };
        let joined = history.renumbered(|site| [Some(3), None, Some(3)][site as usize]);
        assert_eq!(joined.list, [held(3, 0, 1), held(3, 1, 10)]);
        assert_eq!(joined.moments, history.moments);
    }
}
