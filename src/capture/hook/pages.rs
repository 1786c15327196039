//! Finds out whether pages can be written.

use core::ffi::{c_int, c_void};
use std::sync::OnceLock;

use crate::capture::arch::page_size;

/// Returns whether a mapped page can be written, or `None` where the system does not say.
pub(super) fn is_writable(page: usize) -> Option<bool> {
    if is_asked_by_populating() {
        match populates(page) {
            // The kernel's error for a page that may not be written, or is not mapped.
            Err(libc::EINVAL | libc::EFAULT | libc::ENOMEM) => return Some(false),
            Ok(()) => return Some(true),
            // The error of a seccomp filter.
            Err(_) => {}
        }
    }
    is_listed(page)
}

/// Returns whether `populates` works. Kernels before 5.14 do not have the call, and emulators give the same answer for all
/// pages.
fn is_asked_by_populating() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let writable = 0;
        let code = is_writable as *const () as usize;
        populates(page_of((&raw const writable).addr())).is_ok()
            && populates(page_of(code)).is_err()
    })
}

/// # Errors
/// The system's error number.
fn populates(page: usize) -> Result<(), c_int> {
    // SAFETY: it changes nothing that is there, and fails where writing is not allowed or nothing is mapped.
    match unsafe { libc::madvise(page as *mut c_void, page_size(), libc::MADV_POPULATE_WRITE) } {
        0 => Ok(()),
        // SAFETY: the calling thread's own word.
        _ => Err(unsafe { *libc::__errno_location() }),
    }
}

/// Looks the page up in the kernel's list of mappings, which is a hundred times slower.
fn is_listed(page: usize) -> Option<bool> {
    let listed = std::fs::read_to_string("/proc/self/maps").ok()?;
    let lists = |line| lists_writable(line, page).unwrap_or(false);
    Some(listed.lines().any(lists))
}

/// Returns whether a line such as `7f12a000-7f12b000 rw-p 0 0:0 0` is of a writable mapping that holds `page`.
fn lists_writable(line: &str, page: usize) -> Option<bool> {
    let (range, rest) = line.split_once(' ')?;
    let (start, end) = range.split_once('-')?;
    let start = usize::from_str_radix(start, 16).ok()?;
    let end = usize::from_str_radix(end, 16).ok()?;
    Some((start..end).contains(&page) && rest.as_bytes().get(1) == Some(&b'w'))
}

pub(super) fn page_of(address: usize) -> usize {
    address & !(page_size() - 1)
}

#[cfg(test)]
mod tests {
    use super::{is_asked_by_populating, is_listed, is_writable, page_of, populates};

    #[test]
    fn both_ways_tell_data_from_code() {
        let on_stack = 0;
        let data = page_of((&raw const on_stack).addr());
        let code = page_of(is_listed as *const () as usize);
        assert_eq!(
            [data, code, 0].map(is_listed),
            [true, false, false].map(Some)
        );
        // Whichever way this system uses.
        assert_eq!([data, code].map(is_writable), [true, false].map(Some));
        // The quicker way. An emulator may refuse it, or say yes for all pages; this test then runs for AArch64.
        if is_asked_by_populating() || cfg!(target_arch = "x86_64") {
            let told = populates(data).is_ok() && populates(code).is_err();
            assert!(told, "Linux before 5.14?");
        }
    }
}
