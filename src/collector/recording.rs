//! The tables of a session: its own, and those of its open scopes.
//!
//! A scope has sums and a high-water mark of its own, for [`capture_scope`](crate::capture_scope). It is a second set of
//! tables that gets the same events from its begin to its end. The call tree is the session's: an event names a node of that
//! tree. A session without scopes pays one comparison per batch.

use std::collections::HashMap;

use heapray_report::model::Mark;

use super::call_tree::CallTree;

use super::export::Export;
use super::hash::Map;
use super::retire::Use;
use super::snapshot::RawThread;
use super::tables::Tables;
use crate::capture::event::{Event, Kind, NodeId};

/// With less room for sites than this, the stack is created under which sites without room are summed up.
const MANY_SITES: usize = 1 << 20;

/// Number of a scope in a session. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeId(pub u64);

/// Open scope.
#[derive(Debug)]
struct ScopeTables {
    id: ScopeId,
    /// The thread whose allocations are counted, or `None` for all threads.
    thread: Option<u32>,
    tables: Tables,
    /// The selected events of a batch, if only one thread counts.
    selected: Vec<Event>,
}

impl ScopeTables {
    fn apply(&mut self, events: &[Event]) {
        let Some(thread) = self.thread else {
            return self.tables.apply_batch(events);
        };
        self.selected.clear();
        let selected = events.iter().filter_map(|event| of_thread(event, thread));
        self.selected.extend(selected);
        self.tables.apply_batch(&self.selected);
    }
}

/// Returns `event` as a scope of `thread` counts it. Other threads' events count only if they free a block of the thread.
fn of_thread(event: &Event, thread: u32) -> Option<Event> {
    if event.thread == thread || event.kind == Kind::ThreadStart || event.kind == Kind::ThreadName {
        return Some(*event);
    }
    match event.kind {
        // The old block is gone. It may belong to the scope.
        Kind::Realloc => Some(Event {
            kind: Kind::ReallocDone,
            node: NodeId::ROOT,
            ..*event
        }),
        kind if kind.is_allocation() => None,
        Kind::Context | Kind::RunEnd | Kind::MeteredRunEnd | Kind::TraceId | Kind::SpanId => None,
        // Most are of blocks outside of the scope, which must not count as unknown.
        Kind::Free | Kind::Munmap | Kind::ReallocFree => Some(event.as_untracked()),
        _ => Some(*event),
    }
}

/// Tables of a session and its scopes; see the module.
#[derive(Debug)]
pub struct Recording {
    session: Tables,
    scopes: Vec<ScopeTables>,
}

impl Recording {
    /// Makes a recording without scopes.
    #[must_use]
    pub fn new(session: Tables) -> Recording {
        Recording {
            session,
            scopes: Vec::new(),
        }
    }

    /// Returns the session's own tables.
    #[must_use]
    pub fn session(&self) -> &Tables {
        &self.session
    }

    /// Returns the session's own tables, for an export. Events and readings go through the recording.
    pub fn session_mut(&mut self) -> &mut Tables {
        &mut self.session
    }

    /// Returns the call tree of the events' nodes.
    pub fn call_tree_mut(&mut self) -> &mut CallTree {
        self.session.call_tree_mut()
    }

    /// Applies events, oldest first.
    pub fn apply_batch(&mut self, events: &[Event]) {
        if !self.scopes.is_empty() {
            self.apply_to_scopes(events);
        }
        self.session.apply_batch(events);
    }

    #[cold]
    fn apply_to_scopes(&mut self, events: &[Event]) {
        for scope in &mut self.scopes {
            scope.apply(events);
        }
    }

    /// Adds a reading of the process's resident bytes and of heapray's own memory, taken at `stamp`.
    pub fn reading(&mut self, stamp: u64, rss: u64, own: u64) {
        for tables in self.all_mut() {
            tables.reading(stamp, rss, own);
        }
    }

    /// Names the moment at `stamp`. Returns `None`, and names nothing, if 1,000 moments are named already.
    pub fn mark(&mut self, name: String, stamp: u64) -> Option<Mark> {
        let mark = self.session.mark(name, stamp)?;
        for scope in &mut self.scopes {
            scope.tables.mark(mark.name.clone(), stamp);
        }
        Some(mark)
    }

    /// Notes that the session samples with this mean from now on.
    pub(super) fn change_mean(&mut self, mean_bytes: u64, stamp: u64) {
        for tables in self.all_mut() {
            tables.change_mean(mean_bytes, stamp);
        }
    }

    /// Returns what each context is in use for.
    pub(super) fn uses(&self) -> Map<u32, Use> {
        let mut uses = Map::default();
        self.all().for_each(|tables| tables.add_uses(&mut uses));
        uses
    }

    /// Counts what was done in some contexts, which hold nothing, under others: `retired` has both numbers.
    pub(super) fn retire(&mut self, retired: &Map<u32, u32>) {
        if !retired.is_empty() {
            for tables in self.all_mut() {
                tables.retire(retired);
            }
        }
    }

    /// Begins a scope at `stamp`, of all threads or of one.
    pub fn begin_scope(&mut self, id: ScopeId, thread: Option<u32>, stamp: u64) {
        self.scopes.push(ScopeTables {
            id,
            thread,
            tables: self.session.begin_again(stamp),
            selected: Vec::new(),
        });
    }

    /// Ends a scope. Returns its own tables, for their sums, and its part of a snapshot, or `None` if the scope does not
    /// exist.
    pub fn end_scope(&mut self, id: ScopeId) -> Option<(Tables, Export)> {
        let at = self.scopes.iter().position(|scope| scope.id == id)?;
        let ScopeTables { mut tables, .. } = self.scopes.swap_remove(at);
        let mut export = tables.export();
        export.take_stacks_of(self.session.call_tree.nodes());
        self.name_threads(&mut export.stacks.threads);
        Some((tables, export))
    }

    /// Returns the numbers of nodes, sites and live blocks (if a report of every event has a table of them).
    #[must_use]
    pub(super) fn lengths(&self) -> [u64; 3] {
        let sites = self.all().map(|tables| tables.sites.len()).sum::<usize>();
        let nodes = self.session.call_tree.nodes().len();
        [nodes as u64, sites as u64, self.session.logged_blocks()]
    }

    /// Allows so many nodes and sites from now on.
    pub(super) fn set_room(&mut self, nodes: usize, sites: usize) {
        let tree = self.session.call_tree_mut();
        tree.set_room(nodes);
        // No more sites than these are added until the next check.
        let others = if sites < MANY_SITES {
            tree.others()
        } else {
            NodeId::ROOT
        };
        let each = sites / (1 + self.scopes.len());
        for tables in self.all_mut() {
            tables.sites.set_room(each, others);
        }
    }

    /// Returns whether something was cut or summed up for lack of room.
    #[must_use]
    pub(super) fn has_cut(&self) -> bool {
        self.session.call_tree.has_cut() || self.all().any(|tables| tables.sites.has_folded())
    }

    /// Returns the bytes of memory of the tables.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        let events: usize = self.scopes.iter().map(|it| it.selected.capacity()).sum();
        let tables = self.all().map(Tables::memory_bytes).sum::<u64>();
        tables + (events * size_of::<Event>()) as u64
    }

    /// Returns those bytes that are pages of heapray's own, which [`memory::own_bytes`](crate::capture::memory::own_bytes)
    /// counts too.
    #[must_use]
    pub fn mapped_bytes(&self) -> u64 {
        self.all().map(Tables::mapped_bytes).sum()
    }

    fn all(&self) -> impl Iterator<Item = &Tables> {
        let scopes = self.scopes.iter().map(|scope| &scope.tables);
        std::iter::once(&self.session).chain(scopes)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Tables> {
        let scopes = self.scopes.iter_mut().map(|scope| &mut scope.tables);
        std::iter::once(&mut self.session).chain(scopes)
    }

    /// Adds names of threads that began before the scope, which the session knows.
    fn name_threads(&mut self, threads: &mut [RawThread]) {
        let known: HashMap<u32, RawThread> = self
            .session
            .threads
            .list()
            .iter()
            .map(|thread| (thread.number, thread.clone()))
            .collect();
        for thread in threads {
            // Entries by name are numbered down from the largest number.
            let one = thread.threads == 1 && thread.number < u32::MAX / 2;
            if one && let Some(known) = known.get(&self.session.threads.slot(thread.number).thread)
            {
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
    use crate::collector::Clock;
    use heapray_report::model::Tally;

    fn recording() -> Recording {
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
        Recording::new(tables)
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
    fn a_scope_has_its_own_mark_and_ignores_what_was_there_before() {
        let mut recording = recording();
        recording.apply_batch(&[event(1, 1, Kind::Malloc, 100, 1000)]);
        recording.apply_batch(&[event(2, 1, Kind::Malloc, 200, 500)]);
        recording.begin_scope(ScopeId(1), None, 10);
        recording.apply_batch(&[
            event(11, 1, Kind::Malloc, 300, 70),
            event(12, 2, Kind::Malloc, 400, 30),
            event(13, 1, Kind::Free, 100, 0),
            event(14, 2, Kind::Free, 300, 0),
        ]);
        recording.begin_scope(ScopeId(2), None, 15);
        recording.apply_batch(&[event(16, 1, Kind::Malloc, 300, 5)]);
        let (_, inner) = recording.end_scope(ScopeId(2)).unwrap();
        let (_, outer) = recording.end_scope(ScopeId(1)).unwrap();
        recording.apply_batch(&[event(17, 1, Kind::Malloc, 600, 9000)]);

        assert_eq!(inner.totals.allocated, tally(1, 5));
        assert_eq!(outer.totals.high_water, tally(2, 100));
        assert_eq!(outer.totals.high_water_ms, 2);
        assert_eq!(outer.totals.live, tally(2, 35));
        assert_eq!(outer.totals.unknown_frees, 1);
        assert_eq!(recording.session().counters().high_water, tally(4, 9535));
        assert!(recording.end_scope(ScopeId(1)).is_none(), "it has ended");
        // The stacks are those of the session's tree.
        let addresses: Vec<u64> = outer
            .stacks
            .sites
            .iter()
            .map(|site| outer.stacks.nodes[site.node.0 as usize].address)
            .collect();
        assert_eq!(addresses, [0x10, 0x20]);
    }

    #[test]
    fn a_scope_of_one_thread_counts_its_blocks_whichever_thread_frees_them() {
        let mut recording = recording();
        recording.begin_scope(ScopeId(1), Some(1), 0);
        recording.apply_batch(&[
            event(1, 1, Kind::Malloc, 100, 10),
            event(2, 1, Kind::Malloc, 200, 20),
            event(3, 2, Kind::Malloc, 300, 40),
            event(4, 2, Kind::Free, 300, 0),
            event(5, 2, Kind::Free, 100, 0),
            event(6, 2, Kind::ReallocFree, 200, 0),
            event(7, 2, Kind::Realloc, 500, 80),
            event(8, 2, Kind::Free, 500, 0),
        ]);
        let (_, scope) = recording.end_scope(ScopeId(1)).unwrap();
        assert_eq!(scope.totals.allocated, tally(2, 30));
        assert_eq!(scope.totals.freed, tally(2, 30));
        assert_eq!(scope.totals.unknown_frees, 0);
    }
}
