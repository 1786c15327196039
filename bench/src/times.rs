//! CPU time of a running service, apart by whom it is for.

use std::fs;
use std::time::Duration;

use heapray_bench_workloads::Result;

/// Beginnings of the names of profilers' threads: heapray's, bytehound's, and those of pyroscope-rs and of its HTTP client.
const PROFILERS: [&str; 4] = ["heapray", "mem-prof", "pyroscope", "reqwest"];
/// heapray's collector.
const COLLECTOR: &str = "heapray";

/// CPU time since a process began.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CpuTimes {
    /// Of the service's own threads.
    pub(crate) service: Duration,
    /// Of the profiler's threads, recognized by name.
    pub(crate) profiler: Duration,
    /// The part of it for recording, whether or not profiles are pushed: heapray's collector.
    pub(crate) recording: Duration,
    /// Of child processes that have ended: heapray makes profiles in such a process.
    pub(crate) children: Duration,
}

impl CpuTimes {
    /// Reads `schedstat` of each thread, and the `stat` of the process.
    pub(crate) fn read(process: u32) -> Result<CpuTimes> {
        let mut times = CpuTimes {
            children: children(&fs::read_to_string(format!("/proc/{process}/stat"))?)?,
            ..CpuTimes::default()
        };
        for task in fs::read_dir(format!("/proc/{process}/task"))? {
            let task = task?;
            let is_main = task.file_name() == *process.to_string();
            // A thread may end between the two readings.
            let Ok(name) = fs::read_to_string(task.path().join("comm")) else {
                continue;
            };
            let Ok(schedule) = fs::read_to_string(task.path().join("schedstat")) else {
                continue;
            };
            let ran = schedule.split_ascii_whitespace().next().unwrap_or_default();
            let ran = Duration::from_nanos(ran.parse()?);
            if is_of_profiler(&name, is_main) {
                times.profiler += ran;
                if name.trim_end() == COLLECTOR {
                    times.recording += ran;
                }
            } else {
                times.service += ran;
            }
        }
        Ok(times)
    }

    /// Returns the CPU time from `before` on.
    pub(crate) fn since(&self, before: &CpuTimes) -> CpuTimes {
        CpuTimes {
            service: self.service.saturating_sub(before.service),
            profiler: self.profiler.saturating_sub(before.profiler),
            recording: self.recording.saturating_sub(before.recording),
            children: self.children.saturating_sub(before.children),
        }
    }
}

/// Returns whether a thread is a profiler's. The main thread has the name of the program, which is a profiler's for some.
fn is_of_profiler(name: &str, is_main: bool) -> bool {
    !is_main && PROFILERS.iter().any(|profiler| name.starts_with(profiler))
}

/// Returns `cutime` and `cstime` of a process's `stat` (proc(5), fields 16 and 17).
fn children(stat: &str) -> Result<Duration> {
    // The name, field 2, may have spaces and brackets in it.
    let (_, fields) = stat.rsplit_once(") ").ok_or("a process without a name")?;
    let mut fields = fields.split_ascii_whitespace().skip(13);
    let mut ticks = 0;
    for _ in 0..2 {
        let field = fields.next().ok_or("a process without its children")?;
        ticks += field.parse::<u64>()?;
    }
    // SAFETY: only asks for a number.
    let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    let a_second = u64::try_from(a_second)
        .ok()
        .filter(|&ticks| ticks > 0)
        .ok_or("the kernel's clock does not tick")?;
    Ok(Duration::from_millis(ticks * 1000 / a_second))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{children, is_of_profiler};

    #[test]
    fn the_time_of_children_is_in_the_16th_and_17th_field() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 11 12 30 20 20 0 3 0 99 1000 200";
        // SAFETY: only asks for a number.
        let a_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let expected = Duration::from_millis(50 * 1000 / a_second as u64);
        assert_eq!(children(stat).unwrap(), expected);
        assert!(children("7 (a) S 1 7").is_err());
    }

    #[test]
    fn threads_are_known_by_their_names() {
        assert!(is_of_profiler("heapray-push\n", false));
        assert!(is_of_profiler("reqwest-interna\n", false));
        assert!(is_of_profiler("pyroscope\n", false));
        assert!(!is_of_profiler("pyroscope\n", true));
        assert!(!is_of_profiler("tokio-rt-worker\n", false));
    }
}
