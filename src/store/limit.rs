//! The process's file size limit, asked before it strikes.
//!
//! A write past `RLIMIT_FSIZE` does not simply fail: the kernel sends `SIGXFSZ`, which ends a process that does not
//! expect it. A profiler must not end its service, so it asks first (setrlimit(2)).

use std::fs;
use std::io;

/// Bytes that a file may have; `u64::MAX` where there is no limit or no way to know.
pub(crate) fn file_size_limit() -> u64 {
    let Ok(limits) = fs::read_to_string("/proc/self/limits") else {
        return u64::MAX;
    };
    soft_limit(&limits)
}

/// The error that a write past the limit would have given.
pub(crate) fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}

fn soft_limit(limits: &str) -> u64 {
    let line = limits.lines().find_map(|l| l.strip_prefix("Max file size"));
    let soft = line.and_then(|values| values.split_whitespace().next());
    soft.and_then(|value| value.parse().ok())
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::soft_limit;

    #[test]
    fn the_soft_limit_counts() {
        let table = "Limit                     Soft Limit           Hard Limit           Units     \n\
                     Max cpu time              unlimited            unlimited            seconds   \n\
                     Max file size             4096                 8192                 bytes     \n";
        assert_eq!(soft_limit(table), 4096);
        assert_eq!(soft_limit(&table.replace("4096", "unlimited")), u64::MAX);
        assert_eq!(soft_limit(""), u64::MAX);
    }
}
