//! The high-water mark: the last moment at which the heap was as large as it ever was.
//!
//! memray's rule (capture format, section 5; tried with memray 1.20): of equal heaps the latest counts, so an event that
//! leaves the heap at its mark moves the mark. While the heap rises, every event sets a new mark, so nothing is copied: the
//! live memory *is* the memory at the mark. The first fall ends the *peak*. From then on, a site is copied when it first
//! changes.
//!
//! ```text
//!            heap reaches the mark: mark = live, epoch += 1
//!             ┌───────────────────────────────────┐
//!             ▼          heap falls               │
//!          AT PEAK ───────────────────────────▶ BELOW ◀──┐ a site that changes keeps its live tally
//!         sites: live                             └──────┘ from before, once an epoch
//! ```

use heapray_report::model::Tally;

/// High-water mark; see the module.
#[derive(Debug)]
pub(super) struct Peak {
    mark: Tally,
    stamp: u64,
    epoch: u64,
    here: bool,
}

impl Peak {
    /// Makes the mark of an empty heap, which is at its peak.
    pub(super) fn new(stamp: u64) -> Peak {
        Peak {
            mark: Tally::default(),
            stamp,
            epoch: 1,
            here: true,
        }
    }

    /// Notes that an event made the heap `live`. Returns the epoch for which the event's site must keep its tally from
    /// before, or `None` if the mark is now.
    #[inline]
    pub(super) fn move_to(&mut self, live: Tally, stamp: u64) -> Option<u64> {
        if live.bytes < self.mark.bytes {
            self.here = false;
            return Some(self.epoch);
        }
        self.mark = live;
        self.stamp = stamp;
        // The copies from before belong to an older mark.
        self.epoch += u64::from(!self.here);
        self.here = true;
        None
    }

    /// Returns by how many bytes the heap, which is `live`, may rise and stay below the mark; 0 at the mark.
    pub(super) fn room(&self, live: Tally) -> u64 {
        self.mark.bytes.saturating_sub(live.bytes)
    }

    /// Returns whether the heap is at its mark.
    pub(super) fn is_here(&self) -> bool {
        self.here
    }

    /// Returns the live memory at the mark.
    pub(super) fn mark(&self) -> Tally {
        self.mark
    }

    /// Returns the time stamp of the mark.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// Returns the epoch of the sites' copies.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}
