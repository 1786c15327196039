//! The output of reports: standard output, or a file that several processes may append to.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::announce;
use crate::os::file;

/// Returns the file that the environment named at the first call. Heapray's own variable comes before PyCOMPSs'.
fn file() -> Option<&'static Path> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let file = FILE.get_or_init(|| configured(|name| std::env::var_os(name)));
    file.as_deref()
}

fn configured(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    ["MEMRAY_PROFILER_FUNCTION_FILE", "COMPSS_PROFILING_FILE"]
        .into_iter()
        .filter_map(variable)
        .find(|path| !path.is_empty())
        .map(PathBuf::from)
}

/// Writes a report. If the file fails, that is logged once, and the report goes to standard output.
pub(super) fn print(text: &str) {
    #[cfg(feature = "__test")]
    if super::testing::captures(text) {
        return;
    }
    if let Some(path) = file() {
        match append(path, text) {
            Ok(()) => return,
            Err(error) => complain(path, &error),
        }
    }
    let mut out = io::stdout().lock();
    // If standard output is closed, nobody misses the report.
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    let mut file: File = OpenOptions::new().append(true).create(true).open(path)?;
    while !file::lock_file(file.as_raw_fd()) {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
    file.write_all(text.as_bytes())
}

fn complain(path: &Path, error: &io::Error) {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if TOLD.swap(true, Ordering::Relaxed) {
        return;
    }
    announce::error(format_args!(
        "can't write profiles of functions to {}: {error}; they go to standard output",
        path.display()
    ));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_variable_comes_first_and_an_empty_one_counts_as_none() {
        let both = |name: &str| Some(OsString::from(name));
        assert_eq!(
            configured(both),
            Some(PathBuf::from("MEMRAY_PROFILER_FUNCTION_FILE"))
        );
        let theirs = |name: &str| Some(OsString::from(name.strip_prefix("COMPSS").unwrap_or("")));
        assert_eq!(configured(theirs), Some(PathBuf::from("_PROFILING_FILE")));
        assert_eq!(configured(|_| None), None);
    }
}
