//! A sampler: ordinary code around a slot and its timer.

use core::fmt;
use core::sync::atomic::AtomicU64;

use super::handler::{Installed, SIGNAL};
use super::slot::{Slot, Tables};
use super::{CpuError, CpuTally};
use crate::capture::arch::{self, Registers};
use crate::capture::modules;

/// Sampler of one thread at a time, which can be moved from one thread to the next.
pub(crate) struct Sampler {
    slot: &'static Slot,
    interval_ns: u64,
    /// The thread that it was resumed on last, and its timer.
    timer: Option<(u32, i32)>,
    running: bool,
    /// Time left until the next sample, so that a thread that is sampled in short pieces reaches it as well.
    left_ns: u64,
    /// CPU time that passed after the last sample before a pause.
    pending_ns: u64,
    /// CPU time that passed while it was resumed; up to the last pause.
    sampled_ns: u64,
    /// The thread's CPU time when it was resumed.
    resumed_ns: u64,
    _installed: Installed,
}

impl fmt::Debug for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sampler")
            .field("interval_ns", &self.interval_ns)
            .field("thread", &self.timer.map(|(thread, _)| thread))
            .finish_non_exhaustive()
    }
}

impl Sampler {
    /// Makes a sampler that takes a stack every `interval_ns` nanoseconds of CPU time, or at each tick of the kernel if the
    /// ticks are longer. The sampler is paused.
    ///
    /// # Errors
    /// See [`CpuError`].
    pub(crate) fn new(interval_ns: u64) -> Result<Sampler, CpuError> {
        modules::refresh();
        let installed = Installed::new()?;
        Ok(Sampler {
            slot: Slot::take()?,
            interval_ns,
            timer: None,
            running: false,
            left_ns: interval_ns,
            pending_ns: 0,
            sampled_ns: 0,
            resumed_ns: 0,
            _installed: installed,
        })
    }

    /// Samples the calling thread from now on.
    ///
    /// # Errors
    /// See [`CpuError`].
    pub(crate) fn resume_here(&mut self) -> Result<(), CpuError> {
        self.resume_on(arch::gettid())
    }

    /// Samples the thread `tid` of this process from now on.
    ///
    /// # Errors
    /// See [`CpuError`].
    pub(crate) fn resume_on(&mut self, tid: u32) -> Result<(), CpuError> {
        self.pause();
        let timer = match self.timer {
            Some((thread, timer)) if thread == tid => timer,
            _ => self.move_to(tid)?,
        };
        let now = arch::cpu_ns_of(tid).ok_or(CpuError::System(libc::ESRCH))?;
        self.resumed_ns = now;
        self.tables().accounted = now.saturating_sub(self.pending_ns);
        self.running = true;
        self.slot.resume(tid);
        arch::set_timer(timer, self.left_ns.max(1), self.interval_ns);
        Ok(())
    }

    fn move_to(&mut self, tid: u32) -> Result<i32, CpuError> {
        if let Some((_, timer)) = self.timer.take() {
            arch::delete_timer(timer);
        }
        self.tables().unwinder.begin_thread();
        let timer = arch::create_cpu_timer(tid, SIGNAL, self.slot.address());
        let timer = timer.map_err(CpuError::System)?;
        self.timer = Some((tid, timer));
        Ok(timer)
    }

    /// Pauses the sampler: it takes no samples until it is resumed.
    pub(crate) fn pause(&mut self) {
        if !self.running {
            return;
        }
        self.running = false;
        if let Some((tid, timer)) = self.timer {
            // Read the clock first: the cost of pausing does not belong to the profiled code.
            let now = arch::cpu_ns_of(tid);
            self.left_ns = arch::set_timer(timer, 0, 0).max(1);
            self.slot.pause();
            let accounted = self.tables().accounted;
            // A thread that has ended has no clock any more. A last sample may have come after the clock was read.
            let now = now.unwrap_or(0).max(accounted).max(self.resumed_ns);
            self.sampled_ns += now - self.resumed_ns;
            self.pending_ns = now - accounted;
        }
    }

    /// Returns the value that this sampler's signals carry.
    pub(crate) fn signal_value(&self) -> usize {
        self.slot.address()
    }

    /// Returns the counter of samples, of this sampler and earlier ones in its slot.
    pub(crate) fn samples(&self) -> &'static AtomicU64 {
        self.slot.samples()
    }

    /// Returns the CPU time that passed between resuming and pausing, in nanoseconds.
    pub(crate) fn sampled_ns(&self) -> u64 {
        self.sampled_ns
    }

    /// Returns the samples for which there was no memory.
    pub(crate) fn lost(&mut self) -> CpuTally {
        self.pause();
        self.tables().lost
    }

    /// Returns the node of the stack at `registers`, in this sampler's tree. The sampler is paused.
    ///
    /// # Safety
    /// `registers` are those of a frame of the calling thread that has not returned yet, and the calling thread is the
    /// one that is sampled next.
    pub(crate) unsafe fn node_at(&mut self, registers: Registers) -> u32 {
        self.pause();
        if self
            .timer
            .is_none_or(|(thread, _)| thread != arch::gettid())
        {
            self.tables().unwinder.begin_thread();
        }
        // SAFETY: the caller's duty; the unwinder has just been told of this thread, if it served another.
        unsafe { self.tables().node(registers) }
    }

    /// Returns the node of the stack of `node` without its two innermost frames.
    pub(crate) fn callers_caller(&mut self, node: u32) -> u32 {
        self.pause();
        let nodes = self.tables().tree.nodes();
        nodes.node(nodes.node(node).0).0
    }

    /// Calls `visit` for every node of the call tree except the root, parents first: `(parent, return address, samples with
    /// that stack)`.
    pub(crate) fn for_each_node(&mut self, mut visit: impl FnMut(u32, u64, CpuTally)) {
        self.pause();
        let tables = self.tables();
        let nodes = tables.tree.nodes();
        let tallies = tables.tallies.as_slice();
        for number in 1..nodes.count() {
            let (parent, address) = nodes.node(number);
            let tally = tallies.get(number as usize).copied();
            visit(parent, address, tally.unwrap_or_default());
        }
    }

    fn tables(&mut self) -> &mut Tables {
        debug_assert!(!self.running);
        // SAFETY: this sampler has taken the slot, is paused wherever this is called, and is borrowed for as long as
        // the reference lives.
        unsafe { self.slot.tables() }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.pause();
        if let Some((_, timer)) = self.timer {
            arch::delete_timer(timer);
        }
        // SAFETY: this sampler has taken the slot and is paused; nothing of it is used from here on.
        unsafe { self.slot.give_back() };
    }
}
