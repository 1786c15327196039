//! The resident size alone, read as fast as possible: line profiles read it at every line of a function.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::RwLock;

use crate::os::process::page_size;

/// `/proc/self/statm`, open, and the process that opened it: a forked child would read its parent's figures through it.
static STATM: RwLock<Option<(u32, File)>> = RwLock::new(None);

/// Returns the resident bytes of this process, or `None` where the system does not report them.
pub(crate) fn resident() -> Option<u64> {
    let pid = std::process::id();
    // Never waits: in a forked child the thread that holds the lock may not exist.
    if let Ok(open) = STATM.try_read()
        && let Some((owner, file)) = &*open
        && *owner == pid
    {
        return resident_by(file).ok();
    }
    let file = File::open("/proc/self/statm").ok()?;
    let resident = resident_by(&file).ok();
    if let Ok(mut open) = STATM.try_write() {
        *open = Some((pid, file));
    }
    resident
}

/// Returns the resident bytes by an open `/proc/<pid>/statm`.
///
/// # Errors
/// The process is gone, or the system does not report the size.
pub(crate) fn resident_by(statm: &File) -> io::Result<u64> {
    let mut text = [0; 128];
    let length = statm.read_at(&mut text, 0)?;
    let pages = pages(&text[..length]).ok_or(io::ErrorKind::InvalidData)?;
    Ok(pages * page_size())
}

/// Returns the second number: `size resident shared text lib data dt`, in pages.
fn pages(statm: &[u8]) -> Option<u64> {
    let field = statm.split(|&byte| byte == b' ').nth(1)?;
    str::from_utf8(field).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_resident_size() {
        assert_eq!(pages(b"1000 234 5 6 0 7 0\n"), Some(234));
        assert_eq!(pages(b"1000"), None);
        assert_eq!(pages(b"1000 x"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn touched_memory_is_resident() {
        // Not the difference of two readings: other tests of this process allocate and free at the same time.
        let block = std::hint::black_box(vec![1u8; 32 << 20]);
        let resident = resident().unwrap();
        assert!(resident >= 32 << 20, "{resident}");
        drop(block);
    }
}
