//! Merges the rings of all threads into one sequence of events in the order of time.
//!
//! A pass takes a stamp `W`, makes every running thread execute a barrier, and then reads each ring up to `W`. A ring whose
//! window is clear has nothing older than `W` left to publish (see [`crate::capture::ring`]). A ring whose window stays open
//! limits the pass to the last stamp that its thread is known to have reached. So no event is passed on before an older one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use super::call_tree::CallTree;
use super::recording::Recording;
use crate::capture::call_tree;
use crate::capture::event::{Event, Kind, NodeId};
use crate::capture::modules::{self, ModuleId};
use crate::capture::ring::{Bound, Reader, decode};
use crate::capture::thread::{self, ThreadState};
use crate::capture::{clock, room, sys};

/// Events passed on at once: few enough to stay in the second-level cache.
const BATCH: usize = 2048;

/// Number of checks of an open window before a pass goes on without that thread's event. A window is open for some 20 ns,
/// unless its thread was interrupted.
const LOOKS: usize = if cfg!(heapray_loom) { 1 } else { 200 };

/// Slots of a ring that are read before the producer is told, which costs a fence.
const COMMIT_EVERY: u32 = 128;

/// Reader of all rings.
#[derive(Debug)]
pub struct Merge {
    session: u32,
    sources: Vec<Source>,
    /// Room for [`BATCH`] events, and how many there are.
    batch: Box<[Event]>,
    filled: usize,
    queue: BinaryHeap<Reverse<(u64, usize)>>,
    /// Buffer for the new frames of a stack.
    path: Vec<Frame>,
}

/// New frame of a stack: its node in the thread's call tree, its module and its address.
#[derive(Debug)]
struct Frame {
    local: u32,
    module: ModuleId,
    address: u64,
}

/// Ring, and the state of its thread.
#[derive(Debug)]
struct Source {
    state: &'static ThreadState,
    reader: Reader<'static>,
    /// The thread that writes to the ring in this session; 0 before its `ThreadStart`.
    thread: u32,
    /// The thread's nodes in the collector's call tree, by the thread's own numbers; [`UNMAPPED`] for a new node.
    ///
    /// A mapping never has to be forgotten. A local node is an address in the modules of one epoch: the first capture after
    /// an epoch has ended makes the thread's tree forget its children ([`modules::epoch`], `ThreadUnwinder::renew`). So its
    /// later nodes have new numbers, and numbers are never reused. A tree that another thread takes over keeps both
    /// promises: the unwinder that remembers the epoch goes with it.
    nodes: Vec<NodeId>,
    /// No later event of this thread is older.
    reached: u64,
    /// Slots that were read since the producer was told.
    taken: u32,
}

/// Result of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MergeStats {
    /// Events that were passed on.
    pub events: u64,
    /// Threads that were writing an event during the whole pass.
    pub open_windows: u64,
}

const NO_EVENT: Event = Event {
    stamp: 0,
    thread: 0,
    kind: Kind::Free,
    address: 0,
    size: 0,
    node: NodeId::ROOT,
};

const UNMAPPED: NodeId = NodeId(u32::MAX);

impl Merge {
    /// Makes a merge that reads only events of session `session`, and skips those that late hooks of an earlier session
    /// left.
    pub fn new(session: u32) -> Merge {
        Merge {
            session,
            sources: Vec::new(),
            batch: vec![NO_EVENT; BATCH].into(),
            filled: 0,
            queue: BinaryHeap::new(),
            path: Vec::new(),
        }
    }

    /// Passes every event that is complete by now to `recording`, in order and in batches. An open window holds back the
    /// events that are younger than its thread's last event.
    pub fn pass(&mut self, recording: &mut Recording) -> MergeStats {
        self.read(recording, true)
    }

    /// Does what [`pass`](Merge::pass) does, but gives up the events that threads are writing: everything that is published
    /// is passed on.
    pub fn pass_over_open_windows(&mut self, recording: &mut Recording) -> MergeStats {
        self.read(recording, false)
    }

    /// Reads the rest once no hook begins a new event any more. Events that are being written finish. An event that does not
    /// finish within `longest` is lost, but must not hold back what others have recorded since. Returns the number of lost
    /// events.
    pub fn drain(&mut self, recording: &mut Recording, longest: Duration) -> u64 {
        let deadline = Instant::now() + longest;
        loop {
            let passed = self.pass(recording);
            if passed.open_windows == 0 && passed.events == 0 {
                return 0;
            }
            if Instant::now() >= deadline {
                return self.pass_over_open_windows(recording).open_windows;
            }
            if passed.open_windows > 0 {
                pause();
            }
        }
    }

    fn read(&mut self, recording: &mut Recording, held_back: bool) -> MergeStats {
        let (mut limit, mut open_windows) = (clock::stamp(), 0);
        sys::heavy_barrier();
        self.find_new_rings();
        for source in &mut self.sources {
            if !source.is_complete() {
                open_windows += 1;
                if held_back {
                    // The published events are older than the one that is being written.
                    limit = limit.min(source.reached);
                }
            }
        }
        self.queue.clear();
        for (index, source) in self.sources.iter_mut().enumerate() {
            if let Some(stamp) = source.next_stamp(limit) {
                self.queue.push(Reverse((stamp, index)));
            }
        }
        let mut events = 0;
        while let Some(Reverse((_, index))) = self.queue.pop() {
            // This ring has the oldest event: read it until another ring has an older one.
            let until = self
                .queue
                .peek()
                .map_or(limit, |Reverse((stamp, _))| *stamp);
            let source = &mut self.sources[index];
            let next = loop {
                self.filled += source.take_run(until, &mut self.batch[self.filled..]);
                let next = source.next_stamp(limit);
                let Some(stamp) = next.filter(|&stamp| stamp <= until) else {
                    break next;
                };
                if let Some(place) = self.batch.get_mut(self.filled) {
                    if let Some(event) =
                        source.take(self.session, recording.call_tree_mut(), &mut self.path)
                    {
                        *place = event;
                        self.filled += 1;
                    }
                    source.reached = stamp;
                } else {
                    events += pass_on(&self.batch, &mut self.filled, recording);
                    source.commit();
                }
            };
            if source.taken >= COMMIT_EVERY {
                source.commit();
            }
            if let Some(stamp) = next {
                self.queue.push(Reverse((stamp, index)));
            }
        }
        events += pass_on(&self.batch, &mut self.filled, recording);
        for source in &mut self.sources {
            if source.taken > 0 {
                source.commit();
            }
        }
        MergeStats {
            events,
            open_windows,
        }
    }

    /// Finds new rings. They are added at the front of the list and never removed. Called after the barrier: a thread's ring
    /// is in the list before the thread takes its first stamp.
    fn find_new_rings(&mut self) {
        let known = self
            .sources
            .last()
            .map(|source| std::ptr::from_ref(source.state));
        let at = self.sources.len();
        for state in thread::states() {
            if known == Some(std::ptr::from_ref(state)) {
                break;
            }
            self.sources.push(Source::new(state));
        }
        // Newest last, so that the last source is the front of the list.
        self.sources[at..].reverse();
    }

    /// Returns the bytes of memory of the tables here.
    pub fn memory_bytes(&self) -> usize {
        self.sources
            .iter()
            .map(|source| source.nodes.capacity() * size_of::<NodeId>())
            .sum::<usize>()
            + size_of_val(&*self.batch)
    }
}

/// Passes the first `filled` events of `batch` on. Returns how many there were.
fn pass_on(batch: &[Event], filled: &mut usize, recording: &mut Recording) -> u64 {
    let events = std::mem::take(filled);
    recording.apply_batch(&batch[..events]);
    events as u64
}

/// Lets other threads run for a while.
fn pause() {
    #[cfg(not(heapray_loom))]
    std::thread::sleep(Duration::from_millis(1));
    #[cfg(heapray_loom)]
    loom::thread::yield_now();
}

impl Source {
    fn new(state: &'static ThreadState) -> Source {
        // The collector of the session before has ended.
        let reader = state.ring.reader().expect("one collector at a time");
        Source {
            state,
            reader,
            thread: 0,
            nodes: Vec::new(),
            reached: 0,
            taken: 0,
        }
    }

    /// Returns whether everything older than the pass's stamp is published.
    fn is_complete(&mut self) -> bool {
        for _ in 0..LOOKS {
            if self.reader.bound() == Bound::All {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    #[inline]
    fn next_stamp(&mut self, limit: u64) -> Option<u64> {
        self.reader
            .peek()
            .map(|slot| slot[0])
            .filter(|&stamp| stamp <= limit)
    }

    /// Takes events that are published up to the stamp `until`, as long as there is room and they are ordinary: events of
    /// one slot, by a known thread, with known stacks. Returns how many events there were.
    #[inline]
    fn take_run(&mut self, until: u64, room: &mut [Event]) -> usize {
        let thread = self.thread;
        if thread == 0 {
            return 0;
        }
        let nodes = self.nodes.as_slice();
        let mut taken = 0;
        for (slot, place) in self.reader.run().slots().zip(room) {
            let decoded = decode(slot);
            let special = decoded.kind as u8 >= Kind::ThreadStart as u8;
            if (decoded.stamp > until) | decoded.more | special {
                break;
            }
            let mut node = decoded.node_of_free();
            if decoded.kind.is_allocation() {
                match nodes.get(decoded.stack() as usize) {
                    Some(&known) if known != UNMAPPED => node = known,
                    _ => break,
                }
            }
            *place = Event {
                stamp: decoded.stamp,
                thread,
                kind: decoded.kind,
                address: decoded.address,
                size: decoded.size,
                node,
            };
            self.reached = decoded.stamp;
            taken += 1;
        }
        self.reader.advance_by(taken);
        self.taken += taken as u32;
        taken
    }

    /// Takes the event that `next_stamp` found. Returns `None` if it is not of this session.
    #[inline]
    fn take(&mut self, session: u32, tree: &mut CallTree, path: &mut Vec<Frame>) -> Option<Event> {
        let mut decoded = decode(self.reader.peek()?);
        self.reader.advance();
        self.taken += 1;
        if decoded.more {
            // Published together with the first slot.
            let more = self.reader.peek()?;
            self.reader.advance();
            decoded.add(more);
        }
        if decoded.kind == Kind::ThreadStart {
            let start = decoded.thread_start();
            let is_ours = start.session == session;
            self.thread = if is_ours { start.number } else { 0 };
            return is_ours.then(|| Event::thread_start(decoded.stamp, start.number, start.tid));
        }
        if self.thread == 0 {
            return None;
        }
        let node = if decoded.kind.is_allocation() {
            self.node(decoded.stack(), tree, path)
        } else {
            decoded.node_of_free()
        };
        Some(Event {
            stamp: decoded.stamp,
            thread: self.thread,
            kind: decoded.kind,
            address: decoded.address,
            size: decoded.size,
            node,
        })
    }

    #[inline]
    fn node(&mut self, local: u32, tree: &mut CallTree, path: &mut Vec<Frame>) -> NodeId {
        match self.nodes.get(local as usize) {
            Some(&node) if node != UNMAPPED => node,
            _ => self.map_node(local, tree, path),
        }
    }

    /// Maps a node of the thread's tree, and the unmapped nodes on the way to the root. `path` is a buffer.
    #[cold]
    fn map_node(&mut self, local: u32, tree: &mut CallTree, path: &mut Vec<Frame>) -> NodeId {
        // For a stack that its thread had no room for, the recorded part of it.
        let local = call_tree::whole(local);
        if self.nodes.len() <= local as usize {
            // Grows in small steps, because there may be many threads.
            let room = (local as usize + 1).max(self.nodes.len() / 8 * 9).max(64);
            self.nodes.reserve_exact(room - self.nodes.len());
            self.nodes.resize(room, UNMAPPED);
            self.nodes[0] = NodeId::ROOT;
        }
        let mut at = local;
        while self.nodes[at as usize] == UNMAPPED {
            let (parent, address) = self.state.nodes.node(at);
            path.push(Frame {
                local: at,
                module: ModuleId::NONE,
                address,
            });
            at = parent;
        }
        let frames = path.iter_mut();
        modules::enter_modules(frames.map(|frame| (frame.address, &mut frame.module)));
        let mut node = self.nodes[at as usize];
        let mut is_cut = false;
        for frame in path.drain(..).rev() {
            if !is_cut {
                let child = tree.child(node, frame.address, frame.module);
                // Without room for a node, the rest of the stack stays at the last one.
                is_cut = child == node;
                node = child;
            }
            self.nodes[frame.local as usize] = node;
        }
        node
    }

    fn commit(&mut self) {
        self.taken = 0;
        room::note_made();
        if self.reader.commit() {
            self.state.ring.wake();
        }
    }
}
