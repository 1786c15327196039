//! CPU time of one thread while a function runs: samples of its stack, by function.
//!
//! ```
//! # fn crunch() -> u64 { (0..1000u64).sum() }
//! let (sum, stats) = heapray::cpu_profile::run(|| crunch());
//! # assert_eq!(sum, 499_500);
//! println!("{stats}");
//! # let directory = std::env::temp_dir().join(format!("heapray-cpu-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory)?;
//! // For `python -m pstats`, snakeviz and gprof2dot.
//! stats.strip_dirs().dump(directory.join("crunch.pstats"))?;
//! # std::fs::remove_dir_all(directory)?;
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! [`run_async`] does the same for a future, and samples only its polls. [`start`] begins a profile that ends at any later
//! place. The attribute [`single_thread_profiler`](crate::single_thread_profiler) profiles every call of a function. No
//! other thread is sampled, stopped or slowed down.
//!
//! # What is measured
//!
//! The profile measures CPU time, not elapsed time: a function that sleeps or waits has none. A timer on the thread's own
//! CPU clock interrupts the thread after each millisecond (by default) of CPU time, or at each tick of the kernel's
//! scheduler if the ticks are longer (1 to 10 ms; 4 ms if `CONFIG_HZ` is 250). Each sample stands for the CPU time since the
//! sample before. So the times add up to the thread's CPU time, with any tick. Work that is shorter than a few ticks is only
//! seen by chance.
//!
//! Samples do not count calls: where `pstats` shows calls, it shows the samples that have the function on the stack.
//!
//! # Where it works
//!
//! Linux on x86-64 and AArch64. Elsewhere the function runs normally, [`Stats`] are empty, and [`Stats::error`] says why.
//!
//! The signal is `SIGPROF`. A handler that the program has for it gets every signal that is not ours, and is restored when
//! the last profile ends. Another profiler that installs its own handler meanwhile takes our samples away. The kernel
//! restarts system calls that the signal interrupts (`SA_RESTART`), except for those that are never restarted: `poll`,
//! `epoll_wait`, `nanosleep` and the like (signal(7)). They can fail with `EINTR` only if the thread was using CPU at that
//! moment, since its clock stands still while it sleeps; the standard library and tokio try again.

#[cfg(feature = "macros")]
pub(crate) mod attribute;
mod profile;
mod pstats;
mod samples;
mod stats;
mod table;

pub use crate::capture::cpu::{CpuError, CpuTally};
pub use profile::{Builder, CpuProfile, builder, run, run_async, start};
pub(crate) use samples::Samples;
pub use stats::{Caller, Function, SortBy, Stats};
pub(crate) use stats::{Frame, StatsBuilder};
