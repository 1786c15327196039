//! From a call of an allocator function to an event in the thread's ring. Both ways of seeing allocations come here,
//! with the thread marked busy.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use super::arch::{self, Registers};
use super::event::Kind;
use super::ring::Full;
use super::thread::{self, Local, ThreadState};
use super::{clock, control};

/// How long a thread waits for room in its ring, all in all. Past it events are lost, counted and told.
pub const LONGEST_WAIT_MS: u64 = 200;

/// The longest sleep while waiting: the collector wakes the thread as soon as there is room.
const SLEEP_NS: u64 = 10_000_000;

/// Who saw an allocation: bits of [`Local::probe`].
pub mod seen {
    /// A probe is under way: note who sees the call, record nothing.
    pub const ARMED: u8 = 1;
    /// The patched GOT entries saw it.
    pub const GOT: u8 = 2;
    /// The global allocator's wrapper saw it.
    pub const GLOBAL: u8 = 4;
}

/// Whether no session records: the one relaxed load that the global allocator's wrapper costs then.
#[inline(always)]
pub fn is_off() -> bool {
    control::session() == 0
}

/// Whether the calling thread records, for an allocation.
#[inline(always)]
pub fn wants_allocation(local: &Local) -> bool {
    control::session() != 0 && !local.busy.get() && local.quiet.get() == 0
}

/// Whether the calling thread records, for a free: a quiet thread's frees count.
#[inline(always)]
pub fn wants_free(local: &Local) -> bool {
    control::session() != 0 && !local.busy.get()
}

/// A probe's note instead of an event. True if the thread is probing.
#[inline(always)]
pub fn probed(local: &Local, by: u8) -> bool {
    let probe = local.probe.get();
    if probe != 0 {
        local.probe.set(probe | by);
    }
    probe != 0
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
    publish(local, state, kind, address as u64, size as u64, node);
}

/// Records the end of a block, or of a range of `munmap`, that is about to be given back.
#[inline]
pub fn free(local: &Local, kind: Kind, address: usize, size: usize) {
    let Some((state, _borrowed)) = thread::state(local) else {
        return lost_without_state();
    };
    // A quiet thread mostly frees what it allocated quietly: nobody should count that as unknown.
    let quietly = u32::from(local.quiet.get() != 0);
    publish(local, state, kind, address as u64, size as u64, quietly);
}

/// How the old block of a `realloc` is recorded: as gone for good where no outcome will be told, which is so on a quiet
/// thread. (There, a call that fails leaves a block that is taken for freed.)
#[inline(always)]
pub fn first_of_realloc(without_outcome: bool) -> Kind {
    if without_outcome {
        Kind::Free
    } else {
        Kind::ReallocFree
    }
}

/// Records the name of a thread that ends.
pub fn thread_name(local: &Local, state: &'static ThreadState, name: [u8; 16]) {
    // SAFETY: the calling thread owns `state` and is busy, so no second borrow of its private part exists.
    let private = unsafe { &mut *state.private.get() };
    // A thread that recorded nothing in this session has no name to tell.
    if control::session() == 0
        || private.session != control::session()
        || private.number != thread::number(local)
    {
        return;
    }
    // SAFETY: the calling thread owns the ring, and `room` reserved.
    if room(state) && unsafe { state.ring.push_name(name, clock::stamp) } {
        control::wake_collector();
    }
}

#[inline]
fn publish(
    local: &Local,
    state: &'static ThreadState,
    kind: Kind,
    address: u64,
    size: u64,
    node: u32,
) {
    let number = thread::number(local);
    // SAFETY: as in `allocation`; the borrow there has ended.
    let private = unsafe { &mut *state.private.get() };
    let session = control::session();
    if (private.session != session || private.number != number) && !announce(local, state, session)
    {
        return;
    }
    if !room(state) {
        return;
    }
    // What is handed out was written by others before: its stamp must not be taken before the allocator's loads.
    let stamp = || {
        if kind.is_allocation() {
            clock::stamp_after_loads()
        } else {
            clock::stamp()
        }
    };
    // SAFETY: the calling thread owns the ring, and `room` reserved.
    if unsafe { state.ring.push(kind, address, size, node, stamp) } {
        control::wake_collector();
    }
}

/// The first event of a thread in a session, or of a new owner of a state: tell who writes here.
#[cold]
fn announce(local: &Local, state: &'static ThreadState, session: u32) -> bool {
    if session == 0 || !room(state) {
        return false;
    }
    let number = thread::number(local);
    // SAFETY: the calling thread owns the ring, and `room` reserved.
    unsafe {
        state.ring.push(
            Kind::ThreadStart,
            u64::from(session),
            u64::from(arch::gettid()),
            number,
            clock::stamp,
        )
    };
    // SAFETY: as in `allocation`.
    let private = unsafe { &mut *state.private.get() };
    private.session = session;
    private.number = number;
    true
}

/// Makes room for one event. False: the event is lost, and counted.
#[inline]
fn room(state: &'static ThreadState) -> bool {
    // SAFETY: the calling thread owns the ring.
    match unsafe { state.ring.reserve() } {
        Ok(()) => true,
        Err(Full::Wait) => wait_for_room(state),
    }
}

#[cold]
fn wait_for_room(state: &'static ThreadState) -> bool {
    // SAFETY: the calling thread owns `state` and is busy.
    let gave_up = unsafe { &mut (*state.private.get()).gave_up };
    let began = clock::milliseconds();
    loop {
        let seen = ROOM.load(Ordering::Acquire);
        state.ring.waiting.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // SAFETY: the calling thread owns the ring.
        let found = unsafe { state.ring.reserve() }.is_ok();
        let enough = *gave_up || clock::milliseconds() - began >= LONGEST_WAIT_MS;
        // Of a session that was closed meanwhile the event is none.
        let closed = control::session() == 0;
        if found || enough || closed {
            state.ring.waiting.store(false, Ordering::Relaxed);
            *gave_up = !found && !closed;
            if *gave_up {
                state.lost.fetch_add(1, Ordering::Relaxed);
            }
            return found;
        }
        control::wake_collector();
        arch::futex_wait(&ROOM, seen, SLEEP_NS);
    }
}

/// Goes up when the collector made room in a ring whose thread waits.
static ROOM: AtomicU32 = AtomicU32::new(0);

/// The collector made room in a ring whose thread waits: wake it.
pub fn made_room() {
    ROOM.fetch_add(1, Ordering::SeqCst);
    arch::futex_wake(&ROOM, u32::MAX);
}

/// Events lost since the process began.
pub fn lost() -> u64 {
    let of_threads: u64 = thread::states()
        .map(|state| state.lost.load(Ordering::Relaxed))
        .sum();
    of_threads + control::LOST_WITHOUT_STATE.load(Ordering::Relaxed)
}

#[cold]
fn lost_without_state() {
    control::LOST_WITHOUT_STATE.fetch_add(1, Ordering::Relaxed);
}
