//! Clocks, memory and medians.

use std::fs;
use std::time::Duration;

/// An error is printed and ends the run.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// CPU time of the calling thread.
pub(crate) fn thread_cpu() -> Duration {
    cpu_time(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU time of all threads of this process.
pub(crate) fn process_cpu() -> Duration {
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

/// The middle one; of an even number the mean of the two in the middle.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let (below, above) = (values.len().saturating_sub(1) / 2, values.len() / 2);
    match (values.get(below), values.get(above)) {
        (Some(below), Some(above)) => (below + above) / 2.0,
        _ => f64::NAN,
    }
}

/// Resident bytes of a process: now (`VmRSS`) and at the most (`VmHWM`).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) most: u64,
}

/// Reads what the kernel says about process `pid`.
pub(crate) fn resident(pid: u32) -> Result<Resident> {
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

/// Lets [`Resident::most`] of a process begin again from what it has now (proc(5), `clear_refs`).
pub(crate) fn reset_most(pid: u32) -> Result<()> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

/// CPU time of a process's threads: those of the service, and those of heapray, by their names.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadTimes {
    pub(crate) service: Duration,
    pub(crate) heapray: Duration,
}

/// Reads `schedstat` of each thread of process `pid`.
pub(crate) fn thread_times(pid: u32) -> Result<ThreadTimes> {
    let mut times = ThreadTimes::default();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let task = task?.path();
        // A thread may end between the two looks.
        let Ok(name) = fs::read_to_string(task.join("comm")) else {
            continue;
        };
        let Ok(schedule) = fs::read_to_string(task.join("schedstat")) else {
            continue;
        };
        let ran = schedule.split_ascii_whitespace().next().unwrap_or_default();
        let ran = Duration::from_nanos(ran.parse()?);
        if name.starts_with("heapray") {
            times.heapray += ran;
        } else {
            times.service += ran;
        }
    }
    Ok(times)
}

/// `12.3 MiB`.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(vec![]).is_nan());
    }
}
