//! The state of a recording thread, besides its [thread-local words](super::local). States are passed on from thread to
//! thread.
//!
//! A [`ThreadState`] is made when a thread records its first event and no state is free. It is never unmapped: a thread that
//! ends leaves its state in the list, with its grown tables and its call tree (which does not depend on a thread), for the
//! next thread. So memory follows the largest number of threads that live at one time.

use core::cell::UnsafeCell;
use core::ptr;
use core::sync::atomic::Ordering;

use super::call_tree::{CallTree, Nodes};
use super::memory;
use super::meter::{self, Meter};
use super::ring::Ring;
use super::shared::{AtomicBool, AtomicPtr, AtomicU64, OwnersOnly, shared};
use super::thread_context::ThreadContext;
use super::unwind::ThreadUnwinder;

/// Data that a recording thread owns besides its thread-local words.
#[derive(Debug)]
pub struct ThreadState {
    owned: AtomicBool,
    next: *mut ThreadState,
    /// Events that found the ring full for too long.
    pub lost: AtomicU64,
    /// Counter of the thread's allocations, while sampling.
    pub meter: Meter,
    /// The ring for the thread's events.
    pub ring: Ring,
    /// The call stacks that the events name.
    pub nodes: Nodes,
    hands_off: OwnersOnly,
    /// Part that only the owner touches.
    pub private: UnsafeCell<Private>,
}

// SAFETY: `next` is not written after the state was published; `private` is touched by the thread alone that owns the
// state, and ownership passes through `owned` (release, then acquire); the rest is made to be shared.
unsafe impl Sync for ThreadState {}

/// Owner's part of a [`ThreadState`].
#[derive(Debug)]
pub struct Private {
    /// Takes call stacks.
    pub unwinder: ThreadUnwinder,
    /// Keeps them.
    pub tree: CallTree,
    /// The session for which `ThreadStart` was published.
    pub session: u32,
    /// The number under which events are published.
    pub number: u32,
    /// The [context](super::context) that was published for that number.
    pub context: u32,
    /// The [run](super::run::Run) that was published with it.
    pub run: u64,
    /// The ring's [position](Ring::position) when it was full for too long. The thread does not wait again before there was
    /// room.
    pub gave_up_at: u64,
    /// Choice of the allocations that are recorded, if not all are.
    pub(super) sampling: meter::Private,
    /// The trace that the owner works for.
    pub(super) thread_context: ThreadContext,
}

shared! {
    /// All states that were ever made, newest first.
    static STATES: AtomicPtr<ThreadState> = AtomicPtr::new(ptr::null_mut());
}

impl ThreadState {
    /// Touches the state as its owner.
    #[inline(always)]
    pub(super) fn touch(&self) {
        self.hands_off.touch();
    }

    /// Leaves the state to the next thread.
    ///
    /// The calling thread owns the state, and does not use it any more.
    #[inline(always)]
    pub(super) fn hand_on(&self) {
        self.owned.store(false, Ordering::Release);
    }
}

/// Returns a state that the calling thread owns from now on: a free one, or else a new one. Returns `None` without memory.
pub(super) fn take() -> Option<&'static ThreadState> {
    take_free().or_else(create)
}

fn take_free() -> Option<&'static ThreadState> {
    states().find(|state| {
        !state.owned.load(Ordering::Relaxed)
            && state
                .owned
                .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
    })
}

fn create() -> Option<&'static ThreadState> {
    let ring = Ring::new()?;
    let unwinder = ThreadUnwinder::new()?;
    let tree = CallTree::new()?;
    let nodes = tree.nodes();
    let pages = memory::map(size_of::<ThreadState>())?;
    let place = pages.cast::<ThreadState>().as_ptr();
    // SAFETY: a fresh mapping large enough and page aligned, known to nobody else. It is published by the release
    // exchange below, after which only atomics and, by the owner, `private` are written.
    unsafe {
        place.write(ThreadState {
            owned: AtomicBool::new(true),
            next: ptr::null_mut(),
            lost: AtomicU64::new(0),
            meter: Meter::default(),
            ring,
            nodes,
            hands_off: OwnersOnly::default(),
            private: UnsafeCell::new(Private {
                unwinder,
                tree,
                session: 0,
                number: 0,
                context: 0,
                run: 0,
                gave_up_at: u64::MAX,
                sampling: meter::Private::default(),
                thread_context: ThreadContext::NONE,
            }),
        });
        let mut first = STATES.load(Ordering::Relaxed);
        loop {
            (*place).next = first;
            match STATES.compare_exchange_weak(first, place, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(&*place),
                Err(now) => first = now,
            }
        }
    }
}

/// Returns all states.
pub fn states() -> impl Iterator<Item = &'static ThreadState> {
    let mut at = STATES.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: states are never unmapped, and `next` is not written after the state was published.
        let state = unsafe { at.as_ref()? };
        at = state.next;
        Some(state)
    })
}

/// Unmaps all memory.
///
/// # Safety
/// All threads of the model have ended, and so has the collector.
#[cfg(all(test, heapray_loom))]
pub(super) unsafe fn release() {
    let mut at = STATES.load(Ordering::Relaxed);
    // SAFETY: the caller's promise: each state is a live mapping that nobody uses any more.
    while let Some(pages) = ptr::NonNull::new(at) {
        unsafe {
            let state = at.read();
            at = state.next;
            state.ring.release();
            let Private { unwinder, tree, .. } = state.private.into_inner();
            unwinder.release();
            tree.release();
            memory::unmap(pages.cast(), size_of::<ThreadState>());
        }
    }
}
