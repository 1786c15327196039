//! The machine and the time of a measurement.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use heapray_bench_workloads::Result;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) cores: usize,
    pub(crate) memory_mib: u64,
    pub(crate) kernel: String,
    pub(crate) libc: String,
    pub(crate) rustc: String,
    pub(crate) heapray: String,
    /// Year, month and day.
    pub(crate) date: String,
    /// Load average at the beginning and at the end: above 0 at the beginning, other programs used the machine too.
    pub(crate) load: [f64; 2],
}

impl Machine {
    pub(crate) fn look() -> Result<Machine> {
        let info = std::fs::read_to_string("/proc/cpuinfo")?;
        let processor = info
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
            .map_or("unknown", |(_, name)| name);
        let memory = std::fs::read_to_string("/proc/meminfo")?;
        let memory = memory
            .lines()
            .find_map(|line| line.strip_prefix("MemTotal:")?.split_whitespace().next());
        let libc = first_line("ldd", &["--version"]);
        Ok(Machine {
            processor: processor.to_owned(),
            cores: std::thread::available_parallelism()?.get(),
            memory_mib: memory.and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) >> 10,
            kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?
                .trim()
                .to_owned(),
            libc: libc.rsplit(' ').next().unwrap_or_default().to_owned(),
            rustc: first_line("rustc", &["--version"]),
            heapray: first_line("git", &["describe", "--always", "--dirty"]),
            date: date(SystemTime::now()),
            load: [load(), 0.0],
        })
    }
}

/// Returns the load average of the last minute.
pub(crate) fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().and_then(|text| text.parse().ok());
    first.unwrap_or(f64::NAN)
}

/// Returns the first line that a program prints, or nothing if there is no such program.
pub(crate) fn first_line(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let text = text.unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the date in UTC, by Howard Hinnant's algorithm.
fn date(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let days = seconds as i64 / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::date;

    #[test]
    fn days_have_their_dates() {
        let after = |days: u64| date(UNIX_EPOCH + Duration::from_secs(days * 86_400));
        assert_eq!(after(0), "1970-01-01");
        assert_eq!(after(19_782), "2024-02-29");
        assert_eq!(after(20_453), "2025-12-31");
    }
}
