//! The event log with the report's handles.

use std::io;

use heapray_report::model::{Allocator, Event};

use super::Resolved;
use crate::collector::snapshot::EventLog;
use crate::collector::{LogEntry, LogReader};

impl Resolved {
    /// Returns the events of `log`, in the order of time. `log` is that of the session that this report was made from.
    ///
    /// Ends after the first error of reading the event log.
    pub fn events(&self, log: &EventLog) -> impl Iterator<Item = io::Result<Event>> {
        let reader = LogReader::new(log.clone());
        reader.map(|entry| self.event(entry?))
    }

    pub(super) fn event(&self, entry: LogEntry) -> io::Result<Event> {
        Ok(match entry {
            LogEntry::Allocation {
                thread,
                context,
                kind,
                address,
                size,
                node,
            } => {
                let stack = self.stack_of(node);
                Event::Allocation {
                    thread: self.thread_of(thread),
                    context: self.context_of(context, stack),
                    allocator: allocator(kind as u8)?,
                    address,
                    size,
                    stack,
                }
            }
            LogEntry::Deallocation {
                thread,
                kind,
                address,
                size,
            } => Event::Deallocation {
                thread: self.thread_of(thread),
                allocator: allocator(kind as u8)?,
                address,
                size,
            },
            LogEntry::Memory { at_ms, rss } => Event::Memory { at_ms, rss },
        })
    }
}

fn allocator(kind: u8) -> io::Result<Allocator> {
    let allocator = Allocator::from_id(kind);
    allocator.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "unknown allocator"))
}
