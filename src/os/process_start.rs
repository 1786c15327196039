//! When the process started.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use super::cgroup::field;
use super::process::stat_fields;

/// Returns when the process started. Read once, since `/proc/stat` takes the kernel long on a machine with many processors.
pub(crate) fn time() -> Option<SystemTime> {
    static TIME: OnceLock<Option<SystemTime>> = OnceLock::new();
    *TIME.get_or_init(read)
}

/// Reads the 22nd field of `/proc/self/stat`: the start in ticks since the machine started (proc_pid_stat(5)).
fn read() -> Option<SystemTime> {
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
    stat_fields(stat)?.nth(22 - 3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_is_found_behind_any_name_of_a_program() {
        let stat = "17 (a b) c) S 1 17 17 0 -1 4194560 1 0 0 0 12 5 0 0 20 0 3 0 4711 9000 300 1";
        assert_eq!(start_ticks(stat), Some(4711));
        assert_eq!(start_ticks("17 (cut"), None);
    }
}
