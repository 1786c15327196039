//! The limit on heapray's own memory: tables, rings, the threads' call trees and the making of a report together.
//!
//! The memory for a report depends on what the tables hold. So the limit applies to both: the present memory, and what a
//! report of it would need besides. The room is divided anew before each pass.
//!
//! ```text
//!   0        symbols             half of the rest                        limit
//!   |-----------|- call stacks and sites --|                                |
//!   |           |- live blocks, rings, threads, timeline … where there is room ---|─▶ recording ends
//! ```
//! When call stacks have no room left, new ones are cut nearer to the root, and new call sites are summed up with others:
//! every sum stays exact. A live block cannot be left out without making sums wrong. So if a live block has no room, the event
//! log is given up: a report of sums has no table of live blocks. If there is no room again, recording ends, with a report of
//! everything until then.

/// Bytes that making a report needs at its height, in any form, besides those for its nodes, sites and blocks. Symbolization
/// uses this memory. (23 MiB for the page of a test program of 80 MB; at 10^6 call stacks of two nodes and a site, the page
/// took 450 bytes for each of these, at 2.6 · 10^5 with the event log 580.)
const REPORT: u64 = 24 << 20;
/// The same for each node of the call tree, for each call site, and for each live block if there is an event log.
const REPORT_NODE: u64 = 128;
const REPORT_SITE: u64 = 384;
const REPORT_BLOCK: u64 = 40;
/// Share of the allocator in the memory: one byte in so many.
const SLACK: u64 = 8;

/// Bytes of a node: in its thread's call tree, in the map from there, and in the collector's call tree.
const NODE: u64 = 56;
/// Bytes of a site in the tables.
const SITE: u64 = 104;

/// Memory and table sizes of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Holdings {
    /// Bytes in total.
    pub(super) bytes: u64,
    /// Nodes of the call tree.
    pub(super) nodes: u64,
    /// Call sites.
    pub(super) sites: u64,
    /// Live blocks, if a report of every event has a table of them.
    pub(super) blocks: u64,
}

impl Holdings {
    /// Returns the bytes, together with what a report needs at its height.
    fn with_report(self) -> u64 {
        let report = self.nodes * REPORT_NODE + self.sites * REPORT_SITE;
        self.bytes + self.bytes / SLACK + REPORT + report + self.blocks * REPORT_BLOCK
    }

    fn of_stacks(self) -> u64 {
        self.nodes * (NODE + REPORT_NODE) + self.sites * (SITE + REPORT_SITE)
    }
}

/// Room until the next check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Room {
    /// Nodes.
    pub(super) nodes: usize,
    /// Call sites.
    pub(super) sites: usize,
    /// Bytes of the threads' call trees.
    pub(super) tree_bytes: usize,
}

/// Limit on memory; see the module.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bound {
    limit: u64,
}

impl Bound {
    /// Makes a limit of `limit` bytes.
    pub(super) fn new(limit: u64) -> Bound {
        Bound { limit }
    }

    /// Returns the room for call stacks and sites, or `None` if the limit is exceeded.
    pub(super) fn room(self, holdings: Holdings) -> Option<Room> {
        let left = self.limit.checked_sub(holdings.with_report())?;
        // An eighth is reserved for growth until the next check.
        let left = left.saturating_sub(self.limit / 8);
        let half = self.limit.saturating_sub(REPORT) / 2;
        let of_half = half.saturating_sub(holdings.of_stacks());
        let room = left.min(of_half);
        Some(Room {
            nodes: share(room / 8 * 3, NODE + REPORT_NODE),
            sites: share(room / 8 * 3, SITE + REPORT_SITE),
            tree_bytes: share(room / 4, 1),
        })
    }

    /// Returns the note that call stacks have no room left. `since_ms` is the time since the session's start.
    pub(super) fn cut_note(self, since_ms: u64) -> String {
        format!(
            "the profiler's own memory is bounded to {} MiB (MEMRAY_PROFILER_OVERHEAD_LIMIT), and call stacks have used \
             up their half of it: those that were new after {since_ms} ms are cut nearer to the root, or summed up as \
             other call stacks; sums are exact all the same",
            self.limit >> 20
        )
    }

    /// Returns the reason why the event log is given up.
    pub(super) fn log_note(self) -> String {
        format!(
            "the profiler's own memory has reached its limit of {} MiB (MEMRAY_PROFILER_OVERHEAD_LIMIT), and a report of \
             every allocation needs more than one of sums",
            self.limit >> 20
        )
    }

    /// Returns the reason why recording ends.
    pub(super) fn end_note(self) -> String {
        format!(
            "the profiler's own memory has reached its limit of {} MiB, which its tables and the making of a report need: \
             raise MEMRAY_PROFILER_OVERHEAD_LIMIT, or record samples (MEMRAY_PROFILER_SAMPLE)",
            self.limit >> 20
        )
    }
}

fn share(bytes: u64, each: u64) -> usize {
    usize::try_from(bytes / each).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 64 << 20;

    fn room(bytes: u64, nodes: u64, sites: u64, blocks: u64) -> Option<Room> {
        Bound::new(LIMIT).room(Holdings {
            bytes,
            nodes,
            sites,
            blocks,
        })
    }

    #[test]
    fn stacks_fill_half_of_what_symbols_leave_and_no_more() {
        let (mut nodes, mut sites) = (1, 0);
        for _ in 0..1000 {
            let bytes = (4 << 20) + nodes * NODE + sites * SITE;
            let room = room(bytes, nodes, sites, 0).expect("stacks alone never end a session");
            nodes += room.nodes as u64;
            sites += room.sites as u64;
        }
        let used = nodes * (NODE + REPORT_NODE) + sites * (SITE + REPORT_SITE);
        let half = (LIMIT - REPORT) / 2;
        assert!(used <= half && used > half - 4096, "{used}");
    }

    #[test]
    fn what_else_is_held_takes_the_room_of_stacks_and_ends_the_session_at_the_limit() {
        let empty = room(4 << 20, 1, 0, 0).unwrap();
        let less = room(22 << 20, 1, 0, 0).unwrap();
        assert!(less.nodes < empty.nodes && less.nodes > 0);
        let none = room(34 << 20, 1, 0, 0).unwrap();
        assert_eq!((none.nodes, none.sites, none.tree_bytes), (0, 0, 0));
        assert_eq!(room(36 << 20, 1, 0, 0), None);
        // A report of every event has a table of live blocks.
        assert_eq!(room(30 << 20, 1, 0, LIMIT / REPORT_BLOCK / 2), None);
    }

    #[test]
    fn without_a_limit_nothing_is_bounded() {
        let room = Bound::new(u64::MAX).room(Holdings {
            bytes: 1 << 40,
            nodes: 1 << 32,
            sites: 1 << 28,
            blocks: 1 << 34,
        });
        assert!(room.unwrap().nodes > 1 << 32);
    }
}
