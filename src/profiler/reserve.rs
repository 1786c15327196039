//! Disk space that is reserved for a report.

use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use crate::os::file;

/// Bytes reserved where at least sixteen times as much may be taken: the flight recorder's report has call sites, not
/// allocations, and rarely needs more.
pub(super) const RESERVE: u64 = 4 << 20;

/// A file that takes the disk space which a report may need. A former process's is removed with its drafts.
#[derive(Debug)]
pub(super) struct DiskReserve {
    path: PathBuf,
    /// Open, so that other processes know that this one lives.
    _file: File,
    pid: u32,
}

impl DiskReserve {
    /// Reserves disk space in `directory`; `None` where it cannot be had.
    pub(super) fn take(directory: &Path) -> Option<DiskReserve> {
        if file::file_size_limit() < RESERVE {
            return None;
        }
        let (path, file) = crate::profiler::store::room(directory).ok()?;
        let pid = std::process::id();
        let descriptor = file.as_raw_fd();
        let reserve = DiskReserve {
            path,
            _file: file,
            pid,
        };
        // If not, the file is removed as it is dropped.
        file::set_aside(descriptor, RESERVE).then_some(reserve)
    }
}

impl Drop for DiskReserve {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // Somebody else may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}
