//! Turns a call of an allocator function into an event in the thread's ring. The GOT hooks and the global allocator both
//! call this module, with the thread marked busy.

use core::sync::atomic::Ordering;

use super::arch::{self, Registers};
use super::event::{Kind, NodeId, RunEnd, size_of_free};
use super::ring::ThreadStart;
use super::thread::{self, Local, ThreadState};
use super::trace::TraceContext;
use super::{clock, control, room, sampling, scope};

/// Ways in which an allocation was seen: bits of [`Local::probe`].
pub mod seen {
    /// A probe is running: calls are noted here and not recorded.
    pub const ARMED: u8 = 1;
    /// The patched GOT entries of `malloc` and its like saw it.
    pub const GOT: u8 = 2;
    /// The global allocator's wrapper saw it.
    pub const GLOBAL: u8 = 4;
    /// The patched GOT entries of functions that align blocks saw it.
    pub const ALIGNED: u8 = 8;
    /// The patched GOT entries of `mmap` and its like saw it.
    pub const MAPPING: u8 = 16;
    /// The patched GOT entries of C++'s operators saw it.
    pub const OPERATOR: u8 = 32;
}

/// Returns whether no session records. This relaxed load is all that the global allocator's wrapper costs then.
#[inline(always)]
pub fn is_off() -> bool {
    control::session() == 0
}

/// Returns whether an allocation of the calling thread is recorded.
#[inline(always)]
pub fn wants_allocation(local: &Local) -> bool {
    control::session() != 0 && records(local)
}

/// Returns whether the calling thread's allocations are the service's.
#[inline(always)]
pub fn records(local: &Local) -> bool {
    !local.is_busy() && !local.is_untracked()
}

/// Returns whether a free by the calling thread is recorded. Frees of an untracked thread are.
#[inline(always)]
pub fn wants_free(local: &Local) -> bool {
    control::session() != 0 && !local.is_busy()
}

/// Notes a call for a probe instead of recording it. Returns true if the thread is probing.
#[inline(always)]
pub fn probed(local: &Local, by: u8) -> bool {
    let probe = local.probe.get();
    if probe != 0 {
        local.probe.set(probe | by);
    }
    probe != 0
}

/// Returns the ways in which the allocations of `work` are seen: bits of [`seen`]. Nothing is recorded. Called while a
/// session is open.
pub fn probe(work: impl FnOnce()) -> u8 {
    let was_busy = thread::with_local(|local| {
        let was_busy = local.is_busy();
        local.set_busy(false);
        local.probe.set(seen::ARMED);
        was_busy
    });
    work();
    thread::with_local(|local| {
        local.set_busy(was_busy);
        local.probe.replace(0) & !seen::ARMED
    })
}

/// Records a block that an allocator has just handed out.
///
/// # Safety
/// `registers` are those of a call that the calling thread is in; the thread is busy.
#[inline]
pub unsafe fn allocation(
    local: &Local,
    kind: Kind,
    address: usize,
    size: usize,
    registers: Registers,
) {
    let Some((state, _borrowed)) = thread::state(local) else {
        return lost_without_state();
    };
    // SAFETY: the calling thread owns `state`, and is busy, so no second borrow of its private part exists.
    let private = unsafe { &mut *state.private.get() };
    // SAFETY: the caller vouches for the registers; the tree is the state's own.
    let node = unsafe { private.unwinder.capture(registers, &mut private.tree) };
    if kind != Kind::Mmap {
        sampling::remember(private, &state.meter, address);
    }
    publish(local, state, kind, address as u64, size as u64, node);
}

/// Records the end of a block, or of a range, that is about to be given back. `size`: as [`Ring::push`](super::ring::Ring::push)
/// has it of `kind`.
#[inline]
fn end(local: &Local, kind: Kind, address: usize, size: u64) {
    let Some((state, _borrowed)) = thread::state(local) else {
        return lost_without_state();
    };
    // An untracked thread mostly frees blocks that it allocated while untracked. They must not count as unknown.
    let NodeId(node) = NodeId::of_free(local.is_untracked());
    publish_end(local, state, kind, address as u64, size, node);
}

/// [`publish`], once for all that ends.
#[inline(never)]
fn publish_end(
    local: &Local,
    state: &'static ThreadState,
    kind: Kind,
    address: u64,
    size: u64,
    node: u32,
) {
    publish(local, state, kind, address, size, node);
}

/// Records the end of a range of `length` bytes that is about to be unmapped.
#[inline]
pub fn unmapping(local: &Local, address: usize, length: usize) {
    end(local, Kind::Munmap, address, length as u64);
}

/// Records the end of a block that is about to be given back.
#[inline]
pub fn free_block(local: &Local, address: usize) {
    let temporary = sampling::was_temporary(local, address);
    end(local, Kind::Free, address, size_of_free(temporary));
}

/// Records of a `realloc`: the end of the old block before the real call, the outcome after it.
///
/// While sampling, either of the two blocks may be unrecorded.
#[derive(Debug, Clone, Copy)]
pub struct Reallocation {
    block: usize,
    size: usize,
    untracked: bool,
    old: bool,
    new: bool,
}

impl Reallocation {
    /// Begins a reallocation of the block at `block` to `size` bytes by the calling thread, which is not busy yet.
    #[inline(always)]
    pub fn begin(local: &Local, block: usize, size: usize) -> Reallocation {
        let untracked = local.is_untracked();
        Reallocation {
            block,
            size,
            untracked,
            old: sampling::is_end_due(block),
            new: !untracked && sampling::is_due(local, size),
        }
    }

    /// Records the end of the old block, before the real call. The thread is busy.
    #[inline(always)]
    pub fn before(&self, local: &Local) {
        if !self.old {
            return;
        }
        // Recorded as a final end if no outcome will follow: on an untracked thread (if the call fails, the block counts as
        // freed although it is live), and with size 0, which frees (glibc) and may return another block (other allocators).
        let kind = if self.untracked || self.size == 0 {
            Kind::Free
        } else {
            Kind::ReallocFree
        };
        end(local, kind, self.block, size_of_free(false));
    }

    /// Records the outcome: the new block, or 0.
    ///
    /// # Safety
    /// The same as for [`allocation`].
    #[inline(always)]
    pub unsafe fn after(&self, local: &Local, block: usize, registers: Registers) {
        if self.untracked {
        } else if block != 0 && self.new {
            // SAFETY: the caller's promise.
            unsafe { allocation(local, Kind::Realloc, block, self.size, registers) };
        } else if self.old && self.size != 0 {
            let outcome = if block == 0 {
                sampling::lives_on(self.block);
                Kind::ReallocFailed
            } else {
                Kind::ReallocDone
            };
            end(local, outcome, self.block, size_of_free(false));
        }
    }
}

/// Records the name of a thread that ends.
pub fn thread_name(local: &Local, state: &'static ThreadState, name: [u8; 16]) {
    // SAFETY: the calling thread owns `state` and is busy, so no second borrow of its private part exists.
    let private = unsafe { &mut *state.private.get() };
    // A thread that recorded nothing in this session needs no name.
    if control::session() == 0
        || private.session != control::session()
        || private.number != thread::number(local)
    {
        return;
    }
    // SAFETY: the calling thread owns the ring, and `room::make` reserved.
    if room::make(state) && unsafe { state.ring.push_name(name, clock::stamp) } {
        control::wake_collector();
    }
}

/// Records the end of a run, and its trace.
pub fn run_end(local: &Local, run: u64, end: RunEnd, trace: Option<TraceContext>) {
    let Some((state, _borrowed)) = thread::state(local) else {
        return lost_without_state();
    };
    let session = control::session();
    let number = thread::number(local);
    // SAFETY: the calling thread owns `state`, and is busy, so no second borrow of its private part exists.
    let announced = unsafe {
        let private = &*state.private.get();
        private.session == session && private.number == number
    };
    if session == 0 || !announced && !announce(local, state, session) {
        return;
    }
    if let Some([first, last, span]) = trace.map(|trace| trace.words()) {
        let parts = [(Kind::TraceId, [first, last]), (Kind::SpanId, [span, 0])];
        for (kind, words) in parts {
            if !room::make(state) {
                return;
            }
            // SAFETY: the calling thread owns the ring, and `room::make` reserved.
            if unsafe { state.ring.push_words(kind, words, clock::stamp) } {
                control::wake_collector();
            }
        }
    }
    // SAFETY: the calling thread owns the ring, and `room::make` reserved.
    if room::make(state) && unsafe { state.ring.push_run_end(run, end, clock::stamp) } {
        control::wake_collector();
    }
}

/// Publishes an event. A part of [`allocation`]: a call here costs ten instructions.
#[inline(always)]
pub(super) fn publish(
    local: &Local,
    state: &'static ThreadState,
    kind: Kind,
    address: u64,
    size: u64,
    node: u32,
) {
    let number = thread::number_or_mark(local);
    // SAFETY: as in `allocation`; the borrow there has ended.
    let private = unsafe { &mut *state.private.get() };
    let session = control::session();
    if (private.session != session || private.number != number) && !announce(local, state, session)
    {
        return;
    }
    // Tested here, where all of these values are kept across cold calls anyway. Elsewhere the test would cost registers.
    if !local.scope.get().is_null() {
        scope::seen(local, state.nodes, kind, address, size, node);
    }
    if !room::make(state) {
        return;
    }
    // Other threads may have written to this memory before: take the stamp after the allocator's loads.
    let stamp = || {
        if kind.is_allocation() {
            clock::stamp_after_loads()
        } else {
            clock::stamp()
        }
    };
    // SAFETY: the calling thread owns the ring, and `room::make` reserved.
    if unsafe { state.ring.push(kind, address, size, node, stamp) } {
        control::wake_collector();
    }
}

/// Records the thread's number, before its first event in a session, or for a new owner of a state; and the thread's
/// context, if it has changed since the last event.
#[cold]
fn announce(local: &Local, state: &'static ThreadState, session: u32) -> bool {
    if session == 0 {
        return false;
    }
    let number = thread::number_without_mark(local);
    // SAFETY: as in `allocation`.
    let known = unsafe {
        let private = &*state.private.get();
        private.session == session && private.number == number
    };
    let announced =
        (known || announce_thread(state, session, number)) && announce_context(local, state);
    if !announced {
        // Try again at the next event.
        local.change_context(local.context.get());
    }
    announced
}

/// Records the thread's context, unless it is the one that was recorded last.
fn announce_context(local: &Local, state: &'static ThreadState) -> bool {
    let (context, run) = (local.context.get(), local.run.get());
    // SAFETY: as in `allocation`.
    let private = unsafe { &mut *state.private.get() };
    private.thread_context.notice();
    if private.context == context && private.run == run {
        return true;
    }
    if !room::make(state) {
        return false;
    }
    // SAFETY: the calling thread owns the ring, and `room::make` reserved; it owns the state, as in `allocation`.
    unsafe {
        state.ring.push_context(context, run, clock::stamp);
        let private = &mut *state.private.get();
        (private.context, private.run) = (context, run);
    }
    true
}

fn announce_thread(state: &'static ThreadState, session: u32, number: u32) -> bool {
    if !room::make(state) {
        return false;
    }
    let start = ThreadStart {
        session,
        tid: arch::gettid(),
        number,
    };
    // SAFETY: the calling thread owns the ring, and `room::make` reserved.
    unsafe { state.ring.push_thread_start(start, clock::stamp) };
    // SAFETY: as in `allocation`.
    let mean = unsafe {
        let private = &mut (*state.private.get()).sampling;
        sampling::renew_state(private, &state.meter);
        private.mean
    };
    if mean != 0 {
        if !room::make(state) {
            return false;
        }
        // SAFETY: the calling thread owns the ring, and `room::make` reserved.
        unsafe { state.ring.push_sampling(mean, clock::stamp) };
    }
    // SAFETY: as in `allocation`.
    let private = unsafe { &mut *state.private.get() };
    private.session = session;
    private.number = number;
    // A thread that starts is in no context, until another event says so.
    (private.context, private.run) = (0, 0);
    true
}

/// Returns the events that were lost since the process began.
pub fn lost() -> u64 {
    let of_threads: u64 = thread::states()
        .map(|state| state.lost.load(Ordering::Acquire))
        .sum();
    of_threads + control::LOST_WITHOUT_STATE.load(Ordering::Acquire)
}

#[cold]
fn lost_without_state() {
    control::count_lost(&control::LOST_WITHOUT_STATE);
}
