//! Names of the files, which mprof finds, and which never collide.
//!
//! ```text
//! main     mprofile_<YYYYMMDDhhmmss>.dat   local time; if that is taken, the next second that is free
//! worker   <HOSTNAME>.dat                  if that is taken, <HOSTNAME>-2.dat, <HOSTNAME>-3.dat …
//! ```
//!
//! Without a name, `mprof list` and `mprof plot` recognize a file by its fourteen digits: a suffix would hide it.

use std::fs;

use crate::config::MemoryRole;
use crate::os::process;

/// Number of names that are tried.
pub(super) const TRIES: u32 = 100_000;

/// Returns the name of try number `n`, from 0, for a log that begins `seconds` after the Unix epoch.
pub(super) fn file_name(role: MemoryRole, seconds: i64, n: u32) -> String {
    match role {
        MemoryRole::Main => stamped_name(seconds + i64::from(n)),
        MemoryRole::Worker => worker_name(&host_name(), n),
    }
}

/// Returns `mprofile_<YYYYMMDDhhmmss>.dat`, in local time.
#[must_use]
pub fn stamped_name(seconds: i64) -> String {
    let [year, month, day, hour, minute, second] = local_stamp(seconds);
    format!("mprofile_{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}.dat")
}

/// Returns year, month, day, hour, minute and second in local time, or all 0 for a time outside of the calendar.
#[must_use]
pub fn local_stamp(seconds: i64) -> [i32; 6] {
    process::local_time(seconds).unwrap_or_default()
}

fn worker_name(host: &str, n: u32) -> String {
    match n {
        0 => format!("{host}.dat"),
        n => format!("{host}-{}.dat", n + 1),
    }
}

/// Returns the name of this machine, or of this container.
fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() || name.starts_with('.') || name.contains('/') {
        return "localhost".into();
    }
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mprofs_list_knows_a_main_process_by_its_fourteen_digits() {
        for n in [0, 1, 59] {
            let name = file_name(MemoryRole::Main, 1_795_278_525, n);
            let digits = name
                .strip_prefix("mprofile_")
                .unwrap()
                .strip_suffix(".dat")
                .unwrap();
            assert!(
                digits.len() == 14 && digits.bytes().all(|b| b.is_ascii_digit()),
                "{name}"
            );
        }
        assert_ne!(stamped_name(1_795_278_525), stamped_name(1_795_278_526));
    }

    #[test]
    fn further_workers_of_a_host_are_numbered() {
        assert_eq!(worker_name("node7", 0), "node7.dat");
        assert_eq!(worker_name("node7", 1), "node7-2.dat");
        assert_eq!(worker_name("node7", 2), "node7-3.dat");
        assert!(!host_name().is_empty());
    }
}
