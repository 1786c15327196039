//! Whether pages can be written.

use core::ffi::c_void;
use std::sync::OnceLock;

use crate::capture::arch::page_size;

/// Whether a mapped page can be written.
pub(super) fn is_writable(page: usize) -> bool {
    if is_asked_by_populating() {
        populates(page)
    } else {
        is_listed(page)
    }
}

/// Kernels before 5.14 do not know the question, and emulators give one answer to all.
fn is_asked_by_populating() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let writable = 0;
        let code = is_writable as *const () as usize;
        populates(page_of((&raw const writable).addr())) && !populates(page_of(code))
    })
}

fn populates(page: usize) -> bool {
    // SAFETY: it changes nothing that is there, and fails where writing is not allowed or nothing is mapped.
    unsafe { libc::madvise(page as *mut c_void, page_size(), libc::MADV_POPULATE_WRITE) == 0 }
}

/// As the kernel lists mappings, which takes it a hundred times longer. Where it does not: no.
fn is_listed(page: usize) -> bool {
    let listed = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    listed
        .lines()
        .any(|line| lists_writable(line, page).unwrap_or(false))
}

/// Whether a line, such as `7f12a000-7f12b000 rw-p 0 0:0 0`, is of a mapping that holds `page` and can be written.
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
        assert!(is_listed(data) && !is_listed(code));
        assert!(!is_listed(0));
        // Whichever way is taken here.
        assert!(is_writable(data) && !is_writable(code));
        // The quicker way: an emulator may refuse it, or say yes to all; this test then runs for AArch64.
        if is_asked_by_populating() || cfg!(target_arch = "x86_64") {
            assert!(populates(data) && !populates(code), "Linux before 5.14?");
        }
    }
}
