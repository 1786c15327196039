//! System calls on open files: locks, reserved space, and the limit on their size.

use std::io;

/// Waits until the lock of an open file is free, and takes it. The lock is released when the file is closed. Returns false
/// on an error, with `errno` set.
pub(crate) fn lock_file(descriptor: core::ffi::c_int) -> bool {
    // SAFETY: a descriptor that is not open is refused.
    unsafe { libc::flock(descriptor, libc::LOCK_EX) == 0 }
}

/// Takes the lock of an open file if it is free. The lock is released when the last descriptor of this opening is closed, or
/// with the process. Returns false if it is not free or on an error, with `errno` set.
pub(crate) fn try_lock_file(descriptor: core::ffi::c_int) -> bool {
    // SAFETY: a descriptor that is not open is refused.
    unsafe { libc::flock(descriptor, libc::LOCK_EX | libc::LOCK_NB) == 0 }
}

/// Returns whether other machines, or other kernels on this one, may use the same files and not see this kernel's locks.
#[must_use]
pub(crate) fn is_shared_between_kernels(descriptor: core::ffi::c_int) -> bool {
    #[cfg(target_os = "linux")]
    {
        /// statfs(2): NFS, SMB, CIFS, SMB2, FUSE (virtiofs too), 9P, Ceph, AFS, OCFS2, GFS2, Lustre.
        const SHARED: [u64; 11] = [
            0x6969,
            0x517b,
            0xff53_4d42,
            0xfe53_4d42,
            0x6573_5546,
            0x0102_1997,
            0x00c3_6400,
            0x5346_414f,
            0x7461_636f,
            0x0116_1970,
            0x0bd0_0bd0,
        ];
        // SAFETY: a structure of numbers may be all zeros.
        let mut about: libc::statfs = unsafe { core::mem::zeroed() };
        // SAFETY: a descriptor that is not open is refused; the structure is live for the call.
        let known = unsafe { libc::fstatfs(descriptor, &raw mut about) } == 0;
        !known || SHARED.contains(&(about.f_type as u64 & 0xffff_ffff))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = descriptor;
        true
    }
}

/// Has the file system reserve `bytes` for the file of this descriptor. Returns whether it did.
#[must_use]
pub(crate) fn set_aside(file: i32, bytes: u64) -> bool {
    let Ok(bytes) = i64::try_from(bytes) else {
        return false;
    };
    #[cfg(target_os = "linux")]
    // SAFETY: a descriptor is a number; what it is not, the kernel refuses. Not `posix_fallocate`, which would write all
    // of it where the file system cannot do it.
    return unsafe { libc::fallocate(file, 0, 0, bytes) } == 0;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (file, bytes);
        false
    }
}

/// Returns the largest size of a file of this process (`RLIMIT_FSIZE`), or `u64::MAX` if there is no limit.
///
/// A write past the limit does not simply fail: the kernel sends `SIGXFSZ`, which ends a process that does not expect it. A
/// profiler must not end its service, so it asks first (setrlimit(2)). It asks the kernel, not `/proc`, which may be hidden
/// from a service.
#[must_use]
pub(crate) fn file_size_limit() -> u64 {
    let mut found = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: a limit that exists and a live place for it.
    unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut found) };
    // The system's own value for "no limit" is not the largest number everywhere.
    match found.rlim_cur {
        libc::RLIM_INFINITY => u64::MAX,
        limit => limit,
    }
}

/// Returns the error of a write past the limit.
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
