//! Modules that come and go. When a program asks for a function by name (`dlsym`), or at the collector's next look, the
//! unwind tables of new modules are compiled and their slots patched. Nothing of this runs inside an allocator hook.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use super::got::{self, Patched};
use super::{Family, operators};
use crate::capture::{control, modules, thread};

/// How many could not be made to, when they were last patched: the system did not let their pages be written.
static REFUSED: AtomicUsize = AtomicUsize::new(0);

/// How many held another function then, by [`Family`](super::Family).
static OTHERS: [AtomicUsize; Family::COUNT] = [const { AtomicUsize::new(0) }; Family::COUNT];

/// One thread at a time looks at modules. Others do not wait for its end, since the loader's lock may be theirs.
static LOOKING: Mutex<Look> = Mutex::new(Look { waits_for: None });

/// How many modules the loader had ever added when slots were last patched; 0 while none are.
static PATCHED_UP_TO: AtomicU64 = AtomicU64::new(0);

/// How many GOT entries pointed to ours when they were last patched.
static PATCHED: AtomicUsize = AtomicUsize::new(0);

/// A program that has opened a module asks for its functions before it calls them. (That `dlopen` was called would say less:
/// when it begins, the module is not there yet, and when it has returned, another thread may use it.) Called then.
pub(super) fn refresh_if_new() {
    if PATCHED_UP_TO.load(Ordering::Acquire) != modules::added() {
        refresh();
    }
}

/// What a look leaves for the next one.
struct Look {
    /// Some of the modules were not ready: how many the loader had added then, and when that was first seen.
    waits_for: Option<(u64, Instant)>,
}

impl Look {
    /// How long the loader is waited for. What is not ready then will not be.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// Patches what can be, in the modules of which the loader had added so many before.
    fn patch(&mut self, added: u64) {
        let waited = self
            .waits_for
            .filter(|&(waits_for, _)| waits_for == added)
            .map(|(_, since)| since);
        let wait_no_longer = waited.is_some_and(|since| since.elapsed() > Self::PATIENCE);
        let patched = got::patch(wait_no_longer);
        let is_done = note_patched(added, patched, wait_no_longer);
        self.waits_for = (!is_done).then(|| (added, waited.unwrap_or_else(Instant::now)));
    }
}

/// Patches every loaded module. What another thread is just opening is patched at a later look.
pub fn patch() {
    let mut look = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let _busy = thread::Busy::enter();
    look.patch(modules::added());
}

/// Puts the original entries back. Where the system does not let a page be written they stay, and their calls are handed on:
/// [`patched`] says how many.
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

/// How many GOT entries point to ours.
pub fn patched() -> usize {
    PATCHED.load(Ordering::Relaxed)
}

/// What is not hooked though it is called: a note for each reason.
pub fn not_hooked() -> Vec<String> {
    let mut notes = Vec::new();
    let refused = REFUSED.load(Ordering::Relaxed);
    if refused != 0 {
        notes.push(format!(
            "{refused} words that calls go through could not be made to point to heapray, since the system does not let \
             their pages be written (a seccomp filter?): those calls are not seen"
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
                "{others} words that calls of {} go through point to another library's functions than those that the \
                 program calls: those calls are not seen",
                family.title()
            ));
        }
    }
    if !operators::all_are_seen() {
        notes.push(format!(
            "calls of {} are not seen: an allocator replaces new, and not delete",
            Family::Operators.title()
        ));
    }
    notes
}

/// Whether all of the first `added` modules that are still there count as patched: if none was too early, or that does not
/// matter any more.
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

/// Looks at the loaded modules and, if some came or went, compiles and patches what is new.
pub fn refresh() {
    let mut look = match LOOKING.try_lock() {
        Ok(look) => look,
        // A look that panicked left nothing half done that another one does not do again.
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
        if let Some(patched) = got::try_patch(|| control::session() != 0) {
            note_patched(added, patched, false);
            return;
        }
        std::thread::sleep(PAUSE);
    }
}
