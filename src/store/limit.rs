//! The process's file size limit, asked before it strikes.
//!
//! A write past `RLIMIT_FSIZE` does not simply fail: the kernel sends `SIGXFSZ`, which ends a process that does not
//! expect it. A profiler must not end its service, so it asks first (setrlimit(2)). It asks the kernel, not `/proc`: that
//! may be hidden from a service.

use std::io;

pub(crate) use crate::capture::sys::file_size_limit;

/// The error that a write past the limit would have given.
pub(crate) fn too_large() -> io::Error {
    io::Error::from_raw_os_error(libc::EFBIG)
}

#[cfg(test)]
mod tests {
    use super::file_size_limit;

    #[test]
    fn the_limit_is_the_one_that_proc_shows() {
        let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
        let line = limits.lines().find_map(|l| l.strip_prefix("Max file size"));
        let soft = line.unwrap().split_whitespace().next().unwrap();
        assert_eq!(file_size_limit(), soft.parse().unwrap_or(u64::MAX));
    }
}
