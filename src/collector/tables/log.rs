//! Writes events to the event log.

use super::Tables;
use crate::capture::event::Event;
use crate::collector::log::LogEntry;
use crate::collector::threads::ThreadSlot;

impl Tables {
    #[inline(always)]
    pub(super) fn log_allocation(&mut self, event: &Event, slot: ThreadSlot) {
        if let Some(log) = &mut self.log
            && log.push_allocation(
                slot.entry,
                event.kind,
                event.address,
                event.size,
                event.node,
            )
        {
            self.flush_log();
        }
    }

    /// Logs an allocation and the free of the same block.
    #[inline(always)]
    pub(super) fn log_short_lived(&mut self, event: &Event, slot: ThreadSlot) {
        if let Some(log) = &mut self.log
            && log.push_short_lived(
                slot.entry,
                event.kind,
                event.address,
                event.size,
                event.node,
            )
        {
            self.flush_log();
        }
    }

    #[inline(always)]
    pub(super) fn log_free(&mut self, address: u64, slot: ThreadSlot) {
        if let Some(log) = &mut self.log
            && log.push_free(slot.entry, address)
        {
            self.flush_log();
        }
    }

    #[cold]
    pub(super) fn log_entry(&mut self, entry: &LogEntry) {
        if let Some(log) = &mut self.log
            && log.push(entry)
        {
            self.flush_log();
        }
    }
}
