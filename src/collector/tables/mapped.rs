//! The effects of `mmap` and `munmap`.

use super::Tables;
use super::lookup::Lookup;
use crate::capture::event::{Event, Kind};
use crate::collector::log::LogEntry;
use crate::collector::sites::one;
use heapray_report::model::Tally;

impl Tables {
    #[cold]
    pub(super) fn map(&mut self, event: &Event, lookup: Lookup) {
        // The kernel refuses a mapping of no bytes.
        if event.size == 0 {
            return;
        }
        // `MAP_FIXED` replaces the mappings at its place.
        self.cut(event);
        let slot = self.threads.slot(event.thread);
        let site = self.site(event, slot, lookup);
        let birth = self.clock.birth(event.stamp);
        self.ranges.insert(event.address, event.size, site, birth);
        self.count_allocation(event, slot, site, one(event.size));
        self.note_mark();
    }

    #[cold]
    pub(super) fn unmap(&mut self, event: &Event) {
        if self.cut(event) {
            self.counters.events += 1;
        } else {
            self.unknown_free(event);
        }
    }

    /// Removes the event's range from the range map. Returns whether the map had any part of it.
    pub(super) fn cut(&mut self, event: &Event) -> bool {
        let mut found = None;
        while let Some(cut) = self.ranges.cut(event.address, event.size) {
            let slot = self.threads.slot(event.thread);
            found = Some(slot);
            self.subtract(event.stamp, cut.site, cut.blocks, cut.bytes);
            let freed = Tally {
                count: u64::from(cut.blocks > 0),
                bytes: cut.bytes,
            };
            self.freed_in_run(slot, cut.site, freed);
            // A temporary range is unmapped in the same piece in which it was mapped.
            if cut.whole && cut.start == event.address && cut.bytes == event.size {
                self.notice_temporary(slot, cut.start, cut.site, cut.bytes);
            }
        }
        if let Some(slot) = found {
            self.log_entry(&LogEntry::Deallocation {
                thread: slot.thread,
                kind: Kind::Munmap,
                address: event.address,
                size: event.size,
            });
        }
        found.is_some()
    }
}
