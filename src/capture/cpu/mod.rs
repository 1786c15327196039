//! Samples of the CPU time of threads: a timer for each thread, and the stack that the timer's signal interrupts.
//!
//! ```text
//!  timer on one thread's CPU clock ──SIGPROF──▶ that thread's handler ─▶ slot: unwinder, call tree, tallies by node
//!                                                                           │
//!  Sampler (makes, pauses and ends it; ordinary code) ◀── reads when paused ┘
//! ```
//!
//! The handler may interrupt anything: the allocator, heapray's own hook, the loader with its lock. So it has an unwinder
//! and a call tree of its own, touches no thread-local, and calls neither libc nor code that locks; its memory comes from
//! the kernel directly. Samples are added up in the slot: a profile's size depends on its distinct stacks, not on its
//! duration, and nothing has to be drained.
//!
//! The kernel looks at such timers at its scheduler's tick (`CONFIG_HZ`: every 1 to 10 ms), even if the interval is shorter.
//! So a sample does not stand for an interval, but for the CPU time that its thread has used since the sample before.

#[cfg(heapray_native)]
mod handler;
#[cfg(heapray_native)]
mod sampler;
#[cfg(heapray_native)]
mod slot;
#[cfg(heapray_native)]
pub(crate) use sampler::Sampler;

#[cfg(not(heapray_native))]
mod portable;
#[cfg(not(heapray_native))]
pub(crate) use portable::Sampler;

/// Largest number of threads that are sampled at one time.
pub(crate) const MOST_THREADS: usize = 1024;

/// Reason why a thread is not sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CpuError {
    /// This system has no timers that send a thread its own signal, or no way to take stacks in a signal handler.
    Unsupported,
    /// 1,024 threads are sampled already.
    TooManyThreads,
    /// There is no memory for the tables.
    Memory,
    /// The kernel refused the timer or the signal handler, with this error number.
    System(i32),
}

impl core::fmt::Display for CpuError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            CpuError::Unsupported => write!(f, "this system can't sample one thread's CPU time"),
            CpuError::TooManyThreads => {
                write!(f, "{MOST_THREADS} threads are sampled already")
            }
            CpuError::Memory => write!(f, "there is no memory for a CPU profile's tables"),
            CpuError::System(number) => write!(
                f,
                "the kernel refused a timer of the thread's CPU time (error {number})"
            ),
        }
    }
}

impl core::error::Error for CpuError {}

/// Number of samples, and the CPU time that they stand for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
#[non_exhaustive]
pub struct CpuTally {
    /// Number of samples.
    pub samples: u64,
    /// Nanoseconds of CPU time.
    pub ns: u64,
}

// SAFETY: integers.
unsafe impl super::memory::Plain for CpuTally {}
