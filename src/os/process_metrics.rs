//! The figures of the process that every Prometheus library exports, from `/proc`.

use std::time::{Duration, SystemTime};

use super::cgroup::field;
use super::process::mapping_limits;

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
            started: started(),
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

/// Returns when the process started: the 22nd field of `/proc/self/stat`, in ticks since the machine started
/// (proc_pid_stat(5)).
fn started() -> Option<SystemTime> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let system = std::fs::read_to_string("/proc/stat").ok()?;
    // SAFETY: no precondition.
    let ticks_per_second = u64::try_from(unsafe { libc::sysconf(libc::_SC_CLK_TCK) }).ok()?;
    let boot = field(&system, "btime")?;
    let ticks = start_ticks(&stat)?;
    let since_boot =
        Duration::from_millis(ticks.saturating_mul(1000).checked_div(ticks_per_second)?);
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(boot) + since_boot)
}

fn start_ticks(stat: &str) -> Option<u64> {
    // The name, the second field, is in parentheses and may have blanks and parentheses itself.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_any_name_of_a_program() {
        let stat = "17 (a b) c) S 1 17 17 0 -1 4194560 1 0 0 0 12 5 0 0 20 0 3 0 4711 9000 300 1";
        assert_eq!(start_ticks(stat), Some(4711));
        assert_eq!(start_ticks("17 (cut"), None);
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
