//! What a recording thread has of its own besides its [thread-local words](super::local): its state, handed on from
//! thread to thread.
//!
//! A [`ThreadState`] is made when a thread records its first event and none is free. It is never given back to the
//! system: the thread that ends leaves it in the list, with its grown tables and its call tree (which knows no
//! thread), for the next one. So memory follows the number of threads that live at one time.

use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::call_tree::{CallTree, Nodes};
pub use super::local::{Local, with_local};
use super::ring::Ring;
use super::sampling::{self, Meter};
use super::shared::{AtomicBool, AtomicPtr, AtomicU64, OwnersOnly, shared};
use super::unwind::ThreadUnwinder;
use super::{memory, sys};

/// Everything a recording thread owns besides its thread-local words.
#[derive(Debug)]
pub struct ThreadState {
    owned: AtomicBool,
    next: *mut ThreadState,
    /// Events that found the ring full for too long.
    pub lost: AtomicU64,
    /// What its thread asks for, while sampling.
    pub meter: Meter,
    /// Where its events go.
    pub ring: Ring,
    /// The call stacks that its events name.
    pub nodes: Nodes,
    hands_off: OwnersOnly,
    /// Only the owner touches it.
    pub private: UnsafeCell<Private>,
}

// SAFETY: `next` is not written after the state was published; `private` is touched by the thread alone that owns the
// state, and ownership passes through `owned` (release, then acquire); the rest is made to be shared.
unsafe impl Sync for ThreadState {}

/// The owner's part of a [`ThreadState`].
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
    /// The ring's [position](Ring::position) when it was full for too long: do not wait again before there was room.
    pub gave_up_at: u64,
    /// Which allocations are recorded, if not all are.
    pub(super) sampling: sampling::Private,
}

shared! {
    /// All states ever made, newest first.
    static STATES: AtomicPtr<ThreadState> = AtomicPtr::new(ptr::null_mut());
}

/// The last number given to a thread.
static LAST_NUMBER: AtomicU32 = AtomicU32::new(0);

/// The key whose destructor tells that a thread ends; `u32::MAX` before [`prepare`].
static END_KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Marks the calling thread busy for as long as it lives: neither its allocations nor its frees are recorded.
#[derive(Debug)]
pub struct Busy {
    before: bool,
    _not_send: PhantomData<*mut ()>,
}

impl Busy {
    /// Marks the calling thread, to its very end.
    pub fn for_good() {
        with_local(|local| local.set_busy(true));
    }

    /// Marks the calling thread.
    pub fn enter() -> Busy {
        Busy {
            before: with_local(|local| {
                let before = local.is_busy();
                local.set_busy(true);
                before
            }),
            _not_send: PhantomData,
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        with_local(|local| local.set_busy(self.before));
    }
}

/// Creates the key. Called once, outside of every hook. False if the process has no key left.
pub fn prepare() -> bool {
    let mut key = 0;
    // SAFETY: `key` is a valid place for the result; the destructor is an `extern "C"` function that may run on any
    // thread, as POSIX asks.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_thread_end)) } != 0 {
        return false;
    }
    END_KEY.store(key, Ordering::Release);
    true
}

/// The state of the calling thread, for one event, and the number to publish under; `None` without memory.
#[inline]
pub fn state(local: &Local) -> Option<(&'static ThreadState, Borrowed)> {
    let state = local.state.get();
    // SAFETY: a state in a thread's `Local` is owned by that thread and never unmapped.
    match unsafe { state.as_ref() } {
        Some(state) => {
            state.hands_off.touch();
            let release = false;
            Some((state, Borrowed { release, state }))
        }
        None => adopt(local),
    }
}

/// A state in use by the calling thread. One that was only borrowed goes back when this is dropped.
#[derive(Debug)]
pub struct Borrowed {
    release: bool,
    state: &'static ThreadState,
}

impl Borrowed {
    /// Whether the state is the thread's for this one use only.
    pub fn is_for_one_event(&self) -> bool {
        self.release
    }
}

impl Drop for Borrowed {
    #[inline]
    fn drop(&mut self) {
        if self.release {
            self.state.owned.store(false, Ordering::Release);
        }
    }
}

/// The number of the calling thread; given at its first event.
pub fn number(local: &Local) -> u32 {
    if local.number.get() == 0 {
        local
            .number
            .set(LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1);
    }
    local.number.get()
}

#[cold]
fn adopt(local: &Local) -> Option<(&'static ThreadState, Borrowed)> {
    let state = take_free().or_else(create)?;
    state.hands_off.touch();
    // SAFETY: this thread owns `state` since `take_free` or `create`.
    unsafe { (*state.private.get()).unwinder.begin_thread() };
    let release = local.ended.get();
    if !release {
        local.state.set(ptr::from_ref(state).cast_mut());
        // SAFETY: the key exists (`prepare` comes before the first session). glibc keeps the values of the first 32
        // keys in the thread descriptor; for a later key it calls `calloc`, which finds this thread busy. The value
        // is a pointer that stays valid.
        unsafe {
            libc::pthread_setspecific(END_KEY.load(Ordering::Relaxed), ptr::from_ref(state).cast())
        };
    }
    Some((state, Borrowed { release, state }))
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
                gave_up_at: u64::MAX,
                sampling: sampling::Private::default(),
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

/// Every state there is.
pub fn states() -> impl Iterator<Item = &'static ThreadState> {
    let mut at = STATES.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        // SAFETY: states are never unmapped, and `next` is not written after the state was published.
        let state = unsafe { at.as_ref()? };
        at = state.next;
        Some(state)
    })
}

/// The thread ends: tell its name and leave the state to the next one.
unsafe extern "C" fn on_thread_end(_value: *mut libc::c_void) {
    with_local(end);
}

fn end(local: &Local) {
    let was_busy = local.is_busy();
    local.set_busy(true);
    let state = local.state.replace(ptr::null_mut());
    // SAFETY: as in `state`.
    if let Some(state) = unsafe { state.as_ref() } {
        super::record::thread_name(local, state, sys::thread_name());
        local.ended.set(true);
        // SAFETY: the state is still this thread's, whose hooks do nothing now: it is busy.
        unsafe { state.ring.shorten() };
        state.owned.store(false, Ordering::Release);
    }
    local.set_busy(was_busy);
}

/// In a forked child: the parent's states are not this process's.
pub fn forget_in_child() {
    with_local(|local| {
        local.state.set(ptr::null_mut());
        local.stop_passing();
    });
}

/// What the models of [`super::loom_tests`] need of a thread.
#[cfg(all(test, heapray_loom))]
pub(super) mod model {
    use super::*;

    /// The words of a thread that begins. (Loom runs all threads of a model on one.)
    pub(crate) fn begin() -> Local {
        Local::new()
    }

    /// What its end does.
    pub(crate) fn end(local: &Local) {
        super::end(local);
    }

    /// Gives all memory back.
    ///
    /// # Safety
    /// All threads of the model have ended, and so has the collector.
    pub(crate) unsafe fn release() {
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
}
