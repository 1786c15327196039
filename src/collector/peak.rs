//! The high-water mark: the last moment at which the heap was as large as it ever was.
//!
//! memray's rule (capture format, section 5; tried with memray 1.20): of equal heaps the latest counts, so an event that
//! leaves the heap at its mark moves the mark. While the heap rises, every event is a new mark, so nothing is copied: what
//! is live *is* what is live at the mark. The first fall ends the *peak*; from then on a site is copied when it first changes.
//!
//! ```text
//!            heap reaches the mark: mark = live, epoch += 1
//!             ┌───────────────────────────────────┐
//!             ▼          heap falls               │
//!          AT PEAK ───────────────────────────▶ BELOW ◀──┐ a site that changes keeps its live tally
//!         sites: live                             └──────┘ from before, once an epoch
//! ```

use heapray_report::model::Tally;

/// See the module.
#[derive(Debug)]
pub(super) struct Peak {
    mark: Tally,
    stamp: u64,
    epoch: u64,
    here: bool,
}

impl Peak {
    /// An empty heap is at its peak.
    pub(super) fn new(stamp: u64) -> Peak {
        Peak {
            mark: Tally::default(),
            stamp,
            epoch: 1,
            here: true,
        }
    }

    /// An event made the heap `live`. The answer is the epoch for which its site must keep what it had before, unless
    /// this is the mark now.
    #[inline]
    pub(super) fn move_to(&mut self, live: Tally, stamp: u64) -> Option<u64> {
        if live.bytes < self.mark.bytes {
            self.here = false;
            return Some(self.epoch);
        }
        self.mark = live;
        self.stamp = stamp;
        // What was kept before is about an older mark.
        self.epoch += u64::from(!self.here);
        self.here = true;
        None
    }

    /// By how many bytes the heap, which is `live`, may rise and still be below the mark; 0 at the mark.
    pub(super) fn room(&self, live: Tally) -> u64 {
        self.mark.bytes.saturating_sub(live.bytes)
    }

    /// Whether the heap is at its mark.
    pub(super) fn is_here(&self) -> bool {
        self.here
    }

    /// Live at the mark.
    pub(super) fn mark(&self) -> Tally {
        self.mark
    }

    /// When the mark was set.
    pub(super) fn stamp(&self) -> u64 {
        self.stamp
    }

    /// The epoch of what sites have kept.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }
}
