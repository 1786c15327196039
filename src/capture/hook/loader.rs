//! Handles modules that are loaded and unloaded. When a program asks for a function by name (`dlsym`), or at the collector's
//! next look, this compiles the unwind tables of new modules and patches their slots. Nothing of this runs inside an
//! allocator hook.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::got::{self, Patched};
use super::{Family, operators};
use crate::capture::{control, modules, thread};

/// Number of slots that could not be patched at the last patch, because the system did not let their pages be written.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// Number of slots that held another function at the last patch, by [`Family`](super::Family).
static OTHERS: [AtomicUsize; Family::COUNT] = [const { AtomicUsize::new(0) }; Family::COUNT];

/// Lock for looking at modules. Other threads do not wait for it, since they may hold the loader's lock.
static LOOKING: Mutex<Look> = Mutex::new(Look { waits_for: None });

/// Number of modules that the loader had ever added at the last patch; 0 while no slots are patched.
static PATCHED_UP_TO: AtomicU64 = AtomicU64::new(0);

/// Number of GOT entries that pointed to ours at the last patch.
static PATCHED: AtomicUsize = AtomicUsize::new(0);

/// Looks at the modules if some are new. Called when the program asks the loader for a function, as it does after it has
/// opened a module and before it calls the module's functions. A hook of `dlopen` would be less useful: when `dlopen`
/// begins, the module is not there yet, and when it has returned, another thread may use the module already.
pub(super) fn refresh_if_new() {
    if PATCHED_UP_TO.load(Ordering::Acquire) != modules::added() {
        refresh();
    }
}

/// State that a look leaves for the next one.
struct Look {
    /// Set if some modules were not ready: how many modules the loader had added then, and when that was first seen.
    waits_for: Option<(u64, Instant)>,
}

impl Look {
    /// Longest wait for the loader. A module that is not ready then will never be.
    const LOADER_TIMEOUT: Duration = Duration::from_secs(2);

    /// Patches all modules that are ready. The loader had added `added` modules before.
    fn patch(&mut self, added: u64) {
        let waited = self
            .waits_for
            .filter(|&(waits_for, _)| waits_for == added)
            .map(|(_, since)| since);
        let wait_no_longer = waited.is_some_and(|since| since.elapsed() > Self::LOADER_TIMEOUT);
        let patched = got::patch(wait_no_longer);
        let is_done = note_patched(added, patched, wait_no_longer);
        self.waits_for = (!is_done).then(|| (added, waited.unwrap_or_else(Instant::now)));
    }
}

/// Patches every loaded module. A module that another thread is just opening is patched at a later look.
pub fn patch() {
    let mut look = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    look.patch(modules::added());
}

/// Restores the original entries. If the system does not let a page be written, the slots stay patched, and our entries pass
/// calls on. [`patched`] says how many there are.
pub fn restore() {
    let mut look = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    let left = Patched {
        slots: got::restore(),
        ..Patched::default()
    };
    look.waits_for = None;
    note_patched(0, left, true);
}

/// Returns how many GOT entries point to ours.
pub fn patched() -> usize {
    PATCHED.load(Ordering::Relaxed)
}

/// Returns a note for each reason why called functions are not hooked.
pub fn not_hooked() -> Vec<String> {
    let mut notes = Vec::new();
    let refused = REFUSED.load(Ordering::Relaxed);
    if refused != 0 {
        notes.push(format!(
            "{refused} GOT entries could not be patched, since the system does not let \
             their pages be written (a seccomp filter?): allocations through them are not recorded"
        ));
    }
    for family in [
        Family::Malloc,
        Family::Aligned,
        Family::Operators,
        Family::Mappings,
    ] {
        let others = OTHERS[family as usize].load(Ordering::Relaxed);
        if others != 0 {
            notes.push(format!(
                "{others} GOT entries of {} belong to another library's functions than those that the program calls: \
                 allocations through them are not recorded",
                family.title()
            ));
        }
    }
    if !operators::all_are_seen() {
        notes.push(format!(
            "calls of {} are not recorded: an allocator replaces new, but not delete",
            Family::Operators.title()
        ));
    }
    notes
}

/// Notes that all of the first `added` modules that are still loaded are patched, if no slot was too early or `in_any_case`
/// is set. Returns whether they are.
fn note_patched(added: u64, patched: Patched, in_any_case: bool) -> bool {
    PATCHED.store(patched.slots, Ordering::Relaxed);
    REFUSED.store(patched.refused, Ordering::Relaxed);
    for (place, others) in OTHERS.iter().zip(patched.others) {
        place.store(others, Ordering::Relaxed);
    }
    let is_done = in_any_case || patched.too_early == 0;
    if is_done {
        PATCHED_UP_TO.store(added, Ordering::Release);
    }
    is_done
}

/// Looks at the loaded modules. If some were loaded or unloaded, compiles their tables and patches their slots.
pub fn refresh() {
    let mut look = match LOOKING.try_lock() {
        Ok(look) => look,
        // A look that panicked left nothing half done that the next one does not repeat.
        Err(TryLockError::Poisoned(look)) => look.into_inner(),
        Err(TryLockError::WouldBlock) => return patch_meanwhile(),
    };
    let _busy = thread::Busy::enter();
    modules::refresh();
    let added = modules::added();
    if PATCHED_UP_TO.load(Ordering::Acquire) != added && control::session() != 0 {
        look.patch(added);
    }
}

/// Patches the slots of a new module while another thread compiles its unwind table, which may take a while. So allocations
/// of the module are recorded meanwhile, although their stacks lack the outer frames.
fn patch_meanwhile() {
    const TRIES: u32 = 200;
    const PAUSE: Duration = Duration::from_micros(100);
    let _busy = thread::Busy::enter();
    // Patching is quick. But the thread that patches may be waiting for the loader's lock, and this thread may hold it. So
    // wait only this long.
    for _ in 0..TRIES {
        let added = modules::added();
        if PATCHED_UP_TO.load(Ordering::Acquire) == added {
            return;
        }
        if let Some(patched) = got::try_patch(|| control::session() != 0) {
            note_patched(added, patched, false);
            return;
        }
        std::thread::sleep(PAUSE);
    }
}
