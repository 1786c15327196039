//! The calling thread: whether it is busy, its number, and its state (`state`), from its first event to its end.

use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::local::{CONTEXT_CHANGED, UNKNOWN_CONTEXT};
pub use super::local::{Local, with_local};
use super::state;
pub use super::state::{ThreadState, states};
use super::thread_context::ThreadContext;

/// The last number given to a thread.
static LAST_NUMBER: AtomicU32 = AtomicU32::new(0);

/// Key whose destructor runs when a thread ends; `u32::MAX` before [`prepare`].
static END_KEY: AtomicU32 = AtomicU32::new(u32::MAX);

/// Guard that marks the calling thread busy: neither its allocations nor its frees are recorded.
#[derive(Debug)]
pub struct Busy {
    before: bool,
    _not_send: PhantomData<*mut ()>,
}

impl Busy {
    /// Marks the calling thread until it ends.
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

/// Creates the key. `on_end` is called at the end of a thread that had a state. Called once, outside of every hook. Returns
/// false if the process has no key left.
pub(super) fn prepare(on_end: extern "C" fn(*mut libc::c_void)) -> bool {
    let mut key = 0;
    // SAFETY: `key` is a valid place for the result; the destructor is an `extern "C"` function that may run on any
    // thread, as POSIX asks.
    if unsafe { libc::pthread_key_create(&raw mut key, Some(on_end)) } != 0 {
        return false;
    }
    END_KEY.store(key, Ordering::Release);
    true
}

/// Returns the state of the calling thread, for one event, or `None` without memory.
#[inline]
pub fn state(local: &Local) -> Option<(&'static ThreadState, Borrowed)> {
    let state = local.state.get();
    // SAFETY: a state in a thread's `Local` is owned by that thread and never unmapped.
    match unsafe { state.as_ref() } {
        Some(state) => {
            state.touch();
            let release = false;
            Some((state, Borrowed { release, state }))
        }
        None => adopt(local),
    }
}

/// State in use by the calling thread. Dropping it returns a state that was only borrowed.
#[derive(Debug)]
pub struct Borrowed {
    release: bool,
    state: &'static ThreadState,
}

impl Borrowed {
    /// Returns whether the state is borrowed for this one use only.
    pub fn is_for_one_event(&self) -> bool {
        self.release
    }
}

impl Drop for Borrowed {
    #[inline]
    fn drop(&mut self) {
        if self.release {
            self.state.hand_on();
        }
    }
}

/// Returns the number of the calling thread, which is given at its first event.
pub fn number(local: &Local) -> u32 {
    let mark = local.number.get() & CONTEXT_CHANGED;
    let number = number_without_mark(local);
    local.number.set(number | mark);
    number
}

/// Returns the number of the calling thread, with [`CONTEXT_CHANGED`] if its context has changed since its last event. A
/// thread that has only this mark has no number yet.
#[inline(always)]
pub(super) fn number_or_mark(local: &Local) -> u32 {
    if local.number.get() == 0 {
        give_number(local);
    }
    local.number.get()
}

#[cold]
fn give_number(local: &Local) {
    let number = LAST_NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
    local.number.set(number);
}

/// Removes the mark of a changed context. Returns the thread's number.
pub(super) fn number_without_mark(local: &Local) -> u32 {
    local.number.set(local.number.get() & !CONTEXT_CHANGED);
    number_or_mark(local)
}

#[cold]
fn adopt(local: &Local) -> Option<(&'static ThreadState, Borrowed)> {
    let state = state::take()?;
    state.touch();
    // SAFETY: this thread owns `state` since `take`.
    let private = unsafe { &mut *state.private.get() };
    private.unwinder.begin_thread();
    private.thread_context = ThreadContext::NONE;
    let release = local.ended.get();
    if release {
        // The thread's last event may be on another state, and in another context than its last one here.
        private.context = UNKNOWN_CONTEXT;
        local.change_context(local.context.get());
    } else {
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

/// Ends the thread: calls `last`, which may still write to the thread's state, and leaves the state to the next thread.
pub(super) fn end(local: &Local, last: impl FnOnce(&Local, &'static ThreadState)) {
    let was_busy = local.is_busy();
    local.set_busy(true);
    let state = local.state.replace(ptr::null_mut());
    // SAFETY: as in `state`.
    if let Some(state) = unsafe { state.as_ref() } {
        last(local, state);
        local.ended.set(true);
        // SAFETY: the state is still this thread's, whose hooks do nothing now: it is busy.
        unsafe { state.ring.shorten() };
        state.hand_on();
    }
    local.set_busy(was_busy);
}

/// Forgets the parent's states. Called in a forked child.
pub fn forget_in_child() {
    with_local(|local| {
        local.state.set(ptr::null_mut());
        local.clear_unsampled_meter();
    });
}
