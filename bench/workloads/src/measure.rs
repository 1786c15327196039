//! Clocks and memory of a process.

use std::fs;
use std::time::{Duration, Instant};

use crate::profiler::Profiler;

/// Result whose error is printed and ends the process.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// Returns the CPU time of the calling thread.
#[must_use]
pub fn thread_cpu() -> Duration {
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the CPU time of all threads of this process, including ended ones.
#[must_use]
pub fn process_cpu() -> Duration {
    cpu_time(libc::CLOCK_PROCESS_CPUTIME_ID)
}

fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: both clocks exist on Linux, and the result goes to a live place.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Resident bytes of a process: now (`VmRSS`) and at most (`VmHWM`).
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// Bytes at this moment.
    pub now: u64,
    /// Largest number of bytes since the process began, or since [`reset_most`].
    pub most: u64,
}

/// Reads the kernel's figures of process `pid`.
///
/// # Errors
///
/// The process does not exist.
pub fn resident(pid: u32) -> Result<Resident> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let bytes = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim()
            .strip_suffix(" kB")?
            .trim()
            .parse::<u64>()
            .ok()
            .map(|kib| kib * 1024)
    };
    let found = bytes("VmRSS:").zip(bytes("VmHWM:"));
    let (now, most) = found.ok_or("the kernel does not tell the resident size")?;
    Ok(Resident { now, most })
}

/// Resets [`Resident::most`] of a process to its present memory (proc(5), `clear_refs`).
///
/// # Errors
///
/// The process does not exist.
pub fn reset_most(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

/// Measured part of the work.
#[derive(Debug)]
pub(crate) struct Stretch {
    cpu: Duration,
    start: Instant,
}

impl Stretch {
    pub(crate) fn begin() -> Stretch {
        Stretch {
            cpu: process_cpu(),
            start: Instant::now(),
        }
    }

    /// Prints the cost: elapsed time, and CPU time of the whole process, including work that the profiler has put off.
    pub(crate) fn end(self, profiler: &mut dyn Profiler) {
        let wall = self.start.elapsed();
        profiler.settle();
        println!("wall_ns={}", wall.as_nanos());
        println!("cpu_ns={}", (process_cpu() - self.cpu).as_nanos());
    }
}
