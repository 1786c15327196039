//! Modules that come and go. The entries of `dlopen`, `dlclose` and `dlsym` note that something may have changed;
//! the next `dlsym`, or the collector's next look, compiles unwind tables for what is new and patches it. Nothing of
//! this runs inside an allocator hook.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};

use super::got;
use crate::capture::{control, modules, thread};

/// `dlopen` or `dlclose` was called since modules were last looked at.
static CHANGED: AtomicBool = AtomicBool::new(false);

/// One thread at a time looks at modules; others go on without waiting, since the loader's lock may be theirs.
static LOOKING: Mutex<()> = Mutex::new(());

pub(super) extern "C" fn dlopen() {
    CHANGED.store(true, Ordering::Release);
}

pub(super) extern "C" fn dlclose() {
    CHANGED.store(true, Ordering::Release);
}

/// A program that has opened a module asks for its functions before it calls them.
pub(super) extern "C" fn dlsym() {
    if CHANGED.load(Ordering::Acquire)
        && control::session() != 0
        && !thread::with_local(|local| local.is_busy())
    {
        refresh();
    }
}

/// How many GOT entries pointed to ours when they were last patched.
static PATCHED: AtomicUsize = AtomicUsize::new(0);

/// Patches every loaded module.
pub fn patch() {
    let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    PATCHED.store(got::patch(), Ordering::Relaxed);
}

/// Puts the original entries back.
pub fn restore() {
    let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    got::restore();
    PATCHED.store(0, Ordering::Relaxed);
}

/// How many GOT entries point to ours.
pub fn patched() -> usize {
    PATCHED.load(Ordering::Relaxed)
}

/// Looks at the loaded modules and, if some came or went, compiles and patches what is new.
pub fn refresh() {
    let _looking = match LOOKING.try_lock() {
        Ok(looking) => looking,
        // A look that panicked left nothing half done that another one does not do again.
        Err(TryLockError::Poisoned(looking)) => looking.into_inner(),
        Err(TryLockError::WouldBlock) => return,
    };
    let _busy = thread::Busy::enter();
    CHANGED.store(false, Ordering::Release);
    let changed = modules::refresh();
    if changed.added > 0 && control::session() != 0 {
        PATCHED.store(got::patch(), Ordering::Relaxed);
    }
}
