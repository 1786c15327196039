//! The slot of one sampled thread, and the work of the signal handler in it.
//!
//! A timer's signal carries the address of its slot. Slots are a static array, so the value of a signal is either one of
//! their addresses or belongs to another program's signal. A signal that was under way when its sampler ended finds a slot
//! that says so. Three words keep the two sides apart:
//!
//! ```text
//!  handler:  entered ← true;  goes on only if `thread` is its own;  …tables…;  entered ← false
//!  sampler:  thread ← 0;  waits until not entered;  …tables…
//! ```
//! Both sides write before they read, all in one order (`SeqCst`), so the two are never in the tables together.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use super::{CpuError, CpuTally, MOST_THREADS};
use crate::capture::arch::{self, Registers};
use crate::capture::call_tree::{self, CallTree};
use crate::capture::memory::GrowArray;
use crate::capture::unwind::ThreadUnwinder;

/// Number of nodes for which there is room at first: a page.
const FIRST_TALLIES: usize = 256;

/// Tables that a sampled thread's handler writes.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) unwinder: ThreadUnwinder,
    pub(super) tree: CallTree,
    /// Samples by node of the tree.
    pub(super) tallies: GrowArray<CpuTally>,
    /// Samples for which there was no memory.
    pub(super) lost: CpuTally,
    /// CPU time of the thread up to the last sample.
    pub(super) accounted: u64,
}

impl Tables {
    fn new() -> Option<Tables> {
        Some(Tables {
            unwinder: ThreadUnwinder::new()?,
            tree: CallTree::new()?,
            tallies: GrowArray::mapped(FIRST_TALLIES)?,
            lost: CpuTally::default(),
            accounted: 0,
        })
    }

    /// Takes a sample of the thread at `context`.
    ///
    /// # Safety
    /// `context` is that of the running handler, on the thread that the unwinder serves.
    unsafe fn sample(&mut self, context: *const c_void) {
        let now = arch::thread_cpu_ns();
        let passed = now.saturating_sub(self.accounted);
        self.accounted = now;
        // SAFETY: the caller's duty.
        let node = unsafe {
            let interrupted = arch::interrupted(context);
            self.unwinder
                .capture_interrupted(interrupted, &mut self.tree)
        };
        let node = call_tree::whole(node) as usize;
        let has_room = node < self.tallies.capacity() || self.tallies.grow(2 * node);
        let tally = match has_room {
            true => &mut self.tallies.as_mut_slice()[node],
            false => &mut self.lost,
        };
        tally.samples += 1;
        tally.ns += passed;
    }

    /// Returns the node of the stack at `registers`.
    ///
    /// # Safety
    /// The same as for [`ThreadUnwinder::capture`].
    pub(super) unsafe fn node(&mut self, registers: Registers) -> u32 {
        // SAFETY: the caller's duty.
        unsafe { self.unwinder.capture(registers, &mut self.tree) }
    }

    fn release(self) {
        self.unwinder.release();
        self.tallies.release();
        // SAFETY: nobody was given its `Nodes` for longer than a call.
        unsafe { self.tree.release() };
    }
}

/// Slot of one sampled thread.
#[derive(Debug)]
pub(super) struct Slot {
    taken: AtomicBool,
    /// The kernel's number of the thread that is sampled now, or 0.
    thread: AtomicU32,
    /// Set while a handler is running.
    entered: AtomicBool,
    /// Number of samples ever taken in this slot.
    samples: AtomicU64,
    tables: UnsafeCell<Option<Tables>>,
}

// SAFETY: `tables` is touched by the handler while it has entered and found `thread` its own, and by the sampler that
// took the slot while it is paused and nobody has entered; the protocol at the head of this file keeps these apart.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; MOST_THREADS] = [const {
    Slot {
        taken: AtomicBool::new(false),
        thread: AtomicU32::new(0),
        entered: AtomicBool::new(false),
        samples: AtomicU64::new(0),
        tables: UnsafeCell::new(None),
    }
}; MOST_THREADS];

impl Slot {
    /// Takes a free slot for the caller, with fresh tables.
    pub(super) fn take() -> Result<&'static Slot, CpuError> {
        let tables = Tables::new().ok_or(CpuError::Memory)?;
        let free = SLOTS.iter().find(|slot| {
            let was_free = !slot.taken.load(Ordering::Relaxed);
            was_free && !slot.taken.swap(true, Ordering::Acquire)
        });
        let Some(slot) = free else {
            tables.release();
            return Err(CpuError::TooManyThreads);
        };
        // SAFETY: the caller has just taken it, and no thread is sampled in it.
        unsafe { *slot.tables.get() = Some(tables) };
        Ok(slot)
    }

    /// Returns the address that a timer's signal carries.
    pub(super) fn address(&'static self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    /// Returns the slot at `address`, if there is one.
    pub(super) fn at(address: usize) -> Option<&'static Slot> {
        let offset = address.wrapping_sub(SLOTS.as_ptr() as usize);
        if !offset.is_multiple_of(size_of::<Slot>()) {
            return None;
        }
        SLOTS.get(offset / size_of::<Slot>())
    }

    /// Returns the counter of samples ever taken in this slot.
    pub(super) fn samples(&self) -> &AtomicU64 {
        &self.samples
    }

    /// Handles the signal of this slot's timer.
    ///
    /// # Safety
    /// `context` is that of the running handler.
    pub(super) unsafe fn on_signal(&'static self, context: *const c_void) {
        let here = arch::gettid();
        // A signal may come late, to a thread that is no longer sampled.
        if self.thread.load(Ordering::Relaxed) != here {
            return;
        }
        if self.entered.swap(true, Ordering::SeqCst) {
            return;
        }
        if self.thread.load(Ordering::SeqCst) == here {
            // SAFETY: entered, and the sampler has not paused it before that; see the head of this file.
            let tables = unsafe { &mut *self.tables.get() };
            if let Some(tables) = tables {
                // SAFETY: the caller's duty; the unwinder was told of the thread that `thread` names.
                unsafe { tables.sample(context) };
                self.samples.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.entered.store(false, Ordering::SeqCst);
    }

    /// Samples thread `tid` from now on. The slot is paused before.
    pub(super) fn resume(&self, tid: u32) {
        self.thread.store(tid, Ordering::SeqCst);
    }

    /// Ends sampling, and waits until no handler is running.
    pub(super) fn pause(&self) {
        self.thread.store(0, Ordering::SeqCst);
        while self.entered.load(Ordering::SeqCst) {
            core::hint::spin_loop();
        }
    }

    /// Returns the tables.
    ///
    /// # Safety
    /// The caller has taken the slot, has paused it, and has no other reference to them.
    #[allow(clippy::mut_from_ref)] // what the cell is for
    pub(super) unsafe fn tables(&self) -> &mut Tables {
        // SAFETY: the caller's duty.
        let tables = unsafe { &mut *self.tables.get() };
        match tables {
            Some(tables) => tables,
            None => unreachable!("a slot that is taken has tables"),
        }
    }

    /// Gives the slot back.
    ///
    /// # Safety
    /// The same as for [`tables`](Self::tables).
    pub(super) unsafe fn give_back(&self) {
        // SAFETY: the caller's duty.
        if let Some(tables) = unsafe { (*self.tables.get()).take() } {
            tables.release();
        }
        self.taken.store(false, Ordering::Release);
    }
}
