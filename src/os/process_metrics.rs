//! The figures of the process that every Prometheus library exports, from `/proc`.

use std::time::{Duration, SystemTime};

use super::cgroup::field;
use super::process::mapping_limits;
use super::process_start;

/// Figures of this process. Those that the system does not report are `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessMetrics {
    /// CPU time, user and system.
    pub(crate) cpu: Duration,
    pub(crate) threads: Option<u64>,
    pub(crate) open_fds: Option<u64>,
    pub(crate) max_fds: Option<u64>,
    pub(crate) virtual_bytes: Option<u64>,
    pub(crate) max_virtual_bytes: Option<u64>,
    pub(crate) started: Option<SystemTime>,
}

impl ProcessMetrics {
    pub(crate) fn read() -> ProcessMetrics {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        let (status, limits) = (text("/proc/self/status"), text("/proc/self/limits"));
        let virtual_kib = field(&status, "VmSize");
        // The folder itself is open while it is read.
        let fds = std::fs::read_dir("/proc/self/fd").ok();
        let fds = fds.map(|fds| (fds.count() as u64).saturating_sub(1));
        ProcessMetrics {
            cpu: cpu_time(),
            threads: field(&status, "Threads"),
            open_fds: fds,
            max_fds: limit(&limits, "Max open files"),
            virtual_bytes: virtual_kib.map(|kib| kib.saturating_mul(1024)),
            max_virtual_bytes: mapping_limits()[0],
            started: process_start::time(),
        }
    }
}

/// Returns the soft limit in the line of `limits` that begins with `name`; `None` for `unlimited`.
fn limit(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// Returns the CPU time of the process.
fn cpu_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a clock that exists and a live place for its time.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
    let part = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_from_their_lines() {
        let limits = "Max open files            1024                 4096                 files\n\
                      Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(limit(limits, "Max open files"), Some(1024));
        assert_eq!(limit(limits, "Max address space"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_all_of_them() {
        let metrics = ProcessMetrics::read();
        assert!(metrics.threads >= Some(1) && metrics.open_fds >= Some(1));
        assert!(metrics.max_fds >= metrics.open_fds && metrics.virtual_bytes > Some(1 << 20));
        let age = SystemTime::now().duration_since(metrics.started.unwrap());
        // The machine's start is known to the second.
        assert!(age.unwrap_or_default() < Duration::from_secs(3600));
    }
}
