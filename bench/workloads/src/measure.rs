//! Clocks and memory of a process.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
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

/// Returns the CPU time of all child processes that have ended.
#[must_use]
pub fn children_cpu() -> Duration {
    // SAFETY: a `rusage` may be all zeros, and is live for the call, which fills it.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// Returns the bytes of this process's largest child process that no file backs. (The kernel's own record of a child's
/// largest size begins with that of its parent.)
#[must_use]
pub fn largest_child() -> u64 {
    largest_child_of(std::process::id())
}

/// Returns the most bytes that a child process of this process had in memory, with the pages of files.
#[must_use]
pub fn largest_child_with_files() -> u64 {
    largest(std::process::id(), "VmHWM:")
}

/// Returns the bytes of the largest child of process `pid` that no file backs.
#[must_use]
pub fn largest_child_of(pid: u32) -> u64 {
    largest(pid, "RssAnon:")
}

/// Returns the largest value that a line of the status of one of `pid`'s children has.
fn largest(pid: u32, line: &str) -> u64 {
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return 0;
    };
    let children =
        tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("children")).ok());
    let children: Vec<String> = children.collect();
    let pids = children
        .iter()
        .flat_map(|pids| pids.split_ascii_whitespace());
    pids.filter_map(|pid| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        bytes_of(&status, line)
    })
    .max()
    .unwrap_or(0)
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

/// Resident bytes of a process: now (`VmRSS`), at most (`VmHWM`), and of the first those of memory alone (`RssAnon`).
#[derive(Debug, Clone, Copy)]
pub struct Resident {
    /// Bytes at this moment.
    pub now: u64,
    /// Largest number of bytes since the process began, or since [`reset_most`].
    pub most: u64,
    /// Those of [`Resident::now`] that no file backs.
    pub anonymous: u64,
}

/// Reads the kernel's figures of process `pid`.
///
/// # Errors
///
/// The process does not exist.
pub fn resident(pid: u32) -> Result<Resident> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let bytes = |name| bytes_of(&status, name).ok_or("the kernel does not tell the resident size");
    Ok(Resident {
        now: bytes("VmRSS:")?,
        most: bytes("VmHWM:")?,
        anonymous: bytes("RssAnon:")?,
    })
}

/// Returns the bytes that a line of a process's status has.
fn bytes_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kib = line
        .trim()
        .strip_suffix(" kB")?
        .trim()
        .parse::<u64>()
        .ok()?;
    Some(kib * 1024)
}

/// Resets [`Resident::most`] of a process to its present memory (proc(5), `clear_refs`).
///
/// # Errors
///
/// The process does not exist.
pub fn reset_most(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

/// Does `work`, and returns the most that `look` saw meanwhile, which is the memory of a child process.
///
/// # Errors
///
/// An error of `work`.
pub fn watched<T>(look: fn() -> u64, work: impl FnOnce() -> Result<T>) -> Result<(T, u64)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = most.max(look());
                thread::sleep(Duration::from_millis(1));
            }
            most
        });
        let done = work();
        is_over.store(true, Ordering::Relaxed);
        let most = watcher.join().map_err(|_| "the watcher panicked")?;
        Ok((done?, most))
    })
}

/// Starts a thread that does nothing. A service has more than one thread, and so has every process with a profiler in it. With
/// a single thread glibc's allocator takes no locks, so the unprofiled run would use a faster allocator.
pub(crate) fn second_thread() {
    thread::spawn(|| {
        loop {
            thread::park();
        }
    });
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
