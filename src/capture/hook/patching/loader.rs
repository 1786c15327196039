//! Modules that come and go. When a program asks for a function by name (`dlsym`), or at the collector's next look, the
//! unwind tables of new modules are compiled and their slots patched. Nothing of this runs inside an allocator hook.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::Duration;

use super::got;
use crate::capture::{control, modules, thread};

/// One thread at a time looks at modules. Others do not wait for its end, since the loader's lock may be theirs.
static LOOKING: Mutex<()> = Mutex::new(());

/// How many modules the loader had ever added when slots were last patched; 0 while none are.
static PATCHED_UP_TO: AtomicU64 = AtomicU64::new(0);

/// How many GOT entries pointed to ours when they were last patched.
static PATCHED: AtomicUsize = AtomicUsize::new(0);

/// A program that has opened a module asks for its functions before it calls them. (That `dlopen` was called would say less:
/// when it begins, the module is not there yet, and when it has returned, another thread may use it.)
pub(super) extern "C" fn dlsym() {
    if control::session() != 0
        && !thread::with_local(|local| local.is_busy())
        && PATCHED_UP_TO.load(Ordering::Acquire) != modules::added()
    {
        refresh();
    }
}

/// Patches every loaded module.
pub fn patch() {
    let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    let added = modules::added();
    note_patched(added, got::patch());
}

/// Puts the original entries back.
pub fn restore() {
    let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    got::restore();
    note_patched(0, 0);
}

/// How many GOT entries point to ours.
pub fn patched() -> usize {
    PATCHED.load(Ordering::Relaxed)
}

/// `slots` point to our entries, in all of the first `added` modules that are still there.
fn note_patched(added: u64, slots: usize) {
    PATCHED.store(slots, Ordering::Relaxed);
    PATCHED_UP_TO.store(added, Ordering::Release);
}

/// Looks at the loaded modules and, if some came or went, compiles and patches what is new.
pub fn refresh() {
    let _looking = match LOOKING.try_lock() {
        Ok(looking) => looking,
        // A look that panicked left nothing half done that another one does not do again.
        Err(TryLockError::Poisoned(looking)) => looking.into_inner(),
        Err(TryLockError::WouldBlock) => return patch_meanwhile(),
    };
    let _busy = thread::Busy::enter();
    modules::refresh();
    let added = modules::added();
    if PATCHED_UP_TO.load(Ordering::Acquire) != added && control::session() != 0 {
        note_patched(added, got::patch());
    }
}

/// Another thread is looking: it compiles the unwind table of a new module, which may take a while. What the module allocates
/// meanwhile is to be seen all the same, if with stacks whose outer frames are not found.
fn patch_meanwhile() {
    const TRIES: u32 = 200;
    const PAUSE: Duration = Duration::from_micros(100);
    let _busy = thread::Busy::enter();
    // To patch is short. But the thread that does it may be waiting for the loader's lock, and that may be ours: it is waited
    // for no longer than this.
    for _ in 0..TRIES {
        let added = modules::added();
        if PATCHED_UP_TO.load(Ordering::Acquire) == added {
            return;
        }
        if let Some(slots) = got::try_patch(|| control::session() != 0) {
            return note_patched(added, slots);
        }
        std::thread::sleep(PAUSE);
    }
}
