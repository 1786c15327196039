//! Which process a waiting profile belongs to: the process holds the lock of a file as long as it lives.
//!
//! ```text
//! push-0123456789abcdef.owner                     its lock is held: the process lives
//! push-0123456789abcdef-1795000000123-7.profile   a profile of that process
//! ```

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::os::held;

/// Endings of the names.
const OWNER: &str = ".owner";
pub(super) const PROFILE: &str = ".profile";
pub(super) const DRAFT: &str = ".draft";

/// The lock of this process.
#[derive(Debug)]
pub(super) struct Owner {
    path: PathBuf,
    /// Open, so that other processes know that this one lives.
    _file: File,
    pid: u32,
}

impl Owner {
    /// Takes the lock in `directory`.
    pub(super) fn take(directory: &Path, life: u64) -> io::Result<Owner> {
        let (path, file) = held::create_at(&directory.join(format!("{}{OWNER}", stem(life))))?;
        Ok(Owner {
            path,
            _file: file,
            pid: std::process::id(),
        })
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if self.pid == std::process::id() {
            // Somebody else may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the beginning of the names of a process's files.
fn stem(life: u64) -> String {
    format!("push-{life:016x}")
}

/// Returns the name of a profile's file. The names of one process sort by time.
pub(super) fn profile_name(life: u64, taken_ms: u64, number: u64) -> String {
    format!("{}-{taken_ms:013}-{number}{PROFILE}", stem(life))
}

/// Returns the process that a file belongs to, and the rest of the name; `None` if the name is not one of ours.
pub(super) fn parts(name: &str) -> Option<(u64, &str)> {
    let (life, rest) = name.strip_prefix("push-")?.split_at_checked(16)?;
    Some((u64::from_str_radix(life, 16).ok()?, rest))
}

/// Returns when the profile in a file of this name was taken.
pub(super) fn taken_ms(name: &str) -> Option<u64> {
    let (_, rest) = parts(name)?;
    let numbers = rest.strip_prefix('-')?.strip_suffix(PROFILE)?;
    numbers.split('-').next()?.parse().ok()
}

/// Returns whether the process lives no more, and removes the file of its lock then.
pub(super) fn is_dead(directory: &Path, life: u64) -> bool {
    let path = directory.join(format!("{}{OWNER}", stem(life)));
    if !path.exists() {
        return true;
    }
    let claimed = held::claim(&path).is_some();
    if claimed {
        let _ = fs::remove_file(path);
    }
    claimed
}
