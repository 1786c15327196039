//! Parts of a session with sums and a high-water mark of their own: what [`capture_scope`](crate::capture_scope()) asks for.
//!
//! A part is a second set of tables that is fed the same events from its begin to its end. The call tree is the session's:
//! an event names a node of that one. A session without parts pays one comparison a batch.

use std::collections::HashMap;

use heapray_report::model::Mark;

use super::clock::Clock;
use super::export::Export;
use super::snapshot::RawThread;
use super::tables::Tables;
use crate::capture::event::{Event, Kind, NodeId};

/// Which part of a session. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartId(pub u64);

/// An open part.
#[derive(Debug)]
pub(super) struct Part {
    id: PartId,
    /// Whose allocations are counted, if not everybody's.
    thread: Option<u32>,
    tables: Tables,
    /// What is handed on of a batch where only one thread counts.
    chosen: Vec<Event>,
}

impl Part {
    pub(super) fn tables(&self) -> &Tables {
        &self.tables
    }

    pub(super) fn tables_mut(&mut self) -> &mut Tables {
        &mut self.tables
    }

    fn apply(&mut self, events: &[Event]) {
        let Some(thread) = self.thread else {
            return self.tables.apply_batch(events);
        };
        self.chosen.clear();
        let chosen = events.iter().filter_map(|event| of_thread(event, thread));
        self.chosen.extend(chosen);
        self.tables.apply_batch(&self.chosen);
    }
}

/// What is left of `event` where only the allocations of `thread` count. Whoever frees a block of its counts too.
fn of_thread(event: &Event, thread: u32) -> Option<Event> {
    if event.thread == thread || event.kind == Kind::ThreadStart || event.kind == Kind::ThreadName {
        return Some(*event);
    }
    match event.kind {
        // The old block is gone; it may be one of ours.
        Kind::Realloc => Some(Event {
            kind: Kind::ReallocDone,
            node: NodeId::ROOT,
            ..*event
        }),
        kind if kind.is_allocation() => None,
        // Most are of blocks that are not ours: nobody should count those as unknown.
        Kind::Free | Kind::Munmap | Kind::ReallocFree => Some(Event {
            node: NodeId::UNTRACKED,
            ..*event
        }),
        _ => Some(*event),
    }
}

impl Tables {
    /// Begins a part at `stamp`, of all threads or of one.
    pub fn begin_part(&mut self, id: PartId, thread: Option<u32>, stamp: u64) {
        let ticks_per_ms = self.clock.clock().ticks_per_ms;
        let mut tables = Tables::new(Clock {
            start_stamp: stamp,
            ticks_per_ms,
        });
        let samples = self.samples.as_ref();
        tables.samples = samples.map(|samples| Box::new(samples.begin_again()));
        self.parts.push(Part {
            id,
            thread,
            tables,
            chosen: Vec::new(),
        });
    }

    /// Ends a part. `None` if there is none of that number. Its own tables, to be asked for their sums, and all that they
    /// give to a snapshot.
    pub fn end_part(&mut self, id: PartId) -> Option<(Tables, Export)> {
        let at = self.parts.iter().position(|part| part.id == id)?;
        let Part { mut tables, .. } = self.parts.swap_remove(at);
        let mut export = tables.export();
        export.take_stacks_of(self.call_tree.nodes());
        self.name_threads(&mut export.threads);
        Some((tables, export))
    }

    /// Hands events on to the parts.
    #[cold]
    pub(super) fn apply_to_parts(&mut self, events: &[Event]) {
        for part in &mut self.parts {
            part.apply(events);
        }
    }

    /// A reading of memory, as the session's own.
    pub(super) fn reading_of_parts(&mut self, stamp: u64, rss: u64, own: u64) {
        for part in &mut self.parts {
            part.tables.reading(stamp, rss, own);
        }
    }

    /// A named moment, as the session's own.
    pub(super) fn mark_parts(&mut self, mark: &Mark, stamp: u64) {
        for part in &mut self.parts {
            part.tables.mark(mark.name.clone(), stamp);
        }
    }

    /// A rate of sampling, as the session's own.
    pub(super) fn change_mean_of_parts(&mut self, mean: u64, stamp: u64) {
        for part in &mut self.parts {
            part.tables.change_mean(mean, stamp);
        }
    }

    /// Bytes of the parts' tables, and those of them that are pages of heapray's own.
    pub(super) fn memory_of_parts(&self) -> (u64, u64) {
        let add = |(all, mapped): (u64, u64), part: &Part| {
            let buffer = (part.chosen.capacity() * size_of::<Event>()) as u64;
            (
                all + part.tables.memory_bytes() + buffer,
                mapped + part.tables.mapped_bytes(),
            )
        };
        self.parts.iter().fold((0, 0), add)
    }

    /// The session knows the threads that began before the part.
    fn name_threads(&mut self, threads: &mut [RawThread]) {
        let known: HashMap<u32, RawThread> = self
            .threads
            .list()
            .iter()
            .map(|thread| (thread.number, thread.clone()))
            .collect();
        for thread in threads {
            // Those that are counted by name are numbered down from the largest number.
            let one = thread.threads == 1 && thread.number < u32::MAX / 2;
            if one && let Some(known) = known.get(&self.threads.slot(thread.number).entry) {
                if thread.tid == 0 && known.threads == 1 {
                    thread.tid = known.tid;
                }
                if thread.name.is_empty() {
                    thread.name.clone_from(&known.name);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapray_report::model::Tally;

    fn tables() -> Tables {
        let mut tables = Tables::new(Clock {
            start_stamp: 0,
            ticks_per_ms: 1.0,
        });
        let tree = tables.call_tree_mut();
        for address in [0x10, 0x20] {
            tree.child(
                NodeId::ROOT,
                address,
                super::super::snapshot::ModuleId::NONE,
            );
        }
        tables
    }

    fn event(stamp: u64, thread: u32, kind: Kind, address: u64, size: u64) -> Event {
        let node = if kind.is_allocation() {
            NodeId(thread)
        } else {
            NodeId::ROOT
        };
        Event {
            stamp,
            thread,
            kind,
            address,
            size,
            node,
        }
    }

    fn tally(count: u64, bytes: u64) -> Tally {
        Tally { count, bytes }
    }

    #[test]
    fn a_part_has_its_own_mark_and_ignores_what_was_there_before() {
        let mut tables = tables();
        tables.apply(&event(1, 1, Kind::Malloc, 100, 1000));
        tables.apply_batch(&[event(2, 1, Kind::Malloc, 200, 500)]);
        tables.begin_part(PartId(1), None, 10);
        tables.apply_batch(&[
            event(11, 1, Kind::Malloc, 300, 70),
            event(12, 2, Kind::Malloc, 400, 30),
            event(13, 1, Kind::Free, 100, 0),
            event(14, 2, Kind::Free, 300, 0),
        ]);
        tables.begin_part(PartId(2), None, 15);
        tables.apply(&event(16, 1, Kind::Malloc, 300, 5));
        let (_, inner) = tables.end_part(PartId(2)).unwrap();
        let (_, outer) = tables.end_part(PartId(1)).unwrap();
        tables.apply(&event(17, 1, Kind::Malloc, 600, 9000));

        assert_eq!(inner.totals.allocated, tally(1, 5));
        assert_eq!(outer.totals.high_water, tally(2, 100));
        assert_eq!(outer.totals.high_water_ms, 2);
        assert_eq!(outer.totals.live, tally(2, 35));
        assert_eq!(outer.totals.unknown_frees, 1);
        assert_eq!(tables.counters().high_water, tally(4, 9535));
        assert!(tables.end_part(PartId(1)).is_none(), "it has ended");
        // The stacks are those of the session's tree.
        let addresses: Vec<u64> = outer
            .sites
            .iter()
            .map(|site| outer.nodes[site.node.0 as usize].address)
            .collect();
        assert_eq!(addresses, [0x10, 0x20]);
    }

    #[test]
    fn a_part_of_one_thread_counts_its_blocks_whoever_frees_them() {
        let mut tables = tables();
        tables.begin_part(PartId(1), Some(1), 0);
        tables.apply_batch(&[
            event(1, 1, Kind::Malloc, 100, 10),
            event(2, 1, Kind::Malloc, 200, 20),
            event(3, 2, Kind::Malloc, 300, 40),
            event(4, 2, Kind::Free, 300, 0),
            event(5, 2, Kind::Free, 100, 0),
            event(6, 2, Kind::ReallocFree, 200, 0),
            event(7, 2, Kind::Realloc, 500, 80),
            event(8, 2, Kind::Free, 500, 0),
        ]);
        let (_, part) = tables.end_part(PartId(1)).unwrap();
        assert_eq!(part.totals.allocated, tally(2, 30));
        assert_eq!(part.totals.freed, tally(2, 30));
        assert_eq!(part.totals.unknown_frees, 0);
    }
}
