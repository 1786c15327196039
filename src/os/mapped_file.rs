//! A file whose bytes are read through the page cache.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::ptr::NonNull;

/// A file that is mapped to be read.
///
/// A file that somebody shortens meanwhile ends the process with `SIGBUS` where its missing end is read. So this is for
/// programs, libraries and their debug files, which are replaced and not rewritten, and the helper process reads them.
#[derive(Debug)]
pub(crate) struct MappedFile {
    start: NonNull<u8>,
    length: usize,
}

impl MappedFile {
    /// Maps `file`. Returns `None` if it is empty or if it cannot be mapped.
    pub(crate) fn of(file: &File) -> Option<MappedFile> {
        let length = usize::try_from(file.metadata().ok()?.len()).ok()?;
        // SAFETY: a new mapping, at an address that the kernel chooses. An empty file or a bad descriptor is refused.
        let start = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                length,
                libc::PROT_READ,
                libc::MAP_PRIVATE,
                file.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = NonNull::new(start.cast())?;
        Some(MappedFile { start, length })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: mapped readable with this length until `drop`, and the slice borrows `self`. Nobody in this process writes
        // to the mapping. See above for other processes: what they change is data that every reader checks.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }

    /// Gives the memory of the pages that were read back to the page cache. They are read again when they are needed.
    pub(crate) fn give_back(&self) {
        // SAFETY: the mapping is private and was never written to, so its pages come back with the file's bytes.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.length, libc::MADV_DONTNEED) };
    }
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this length. No slice is left, since each borrows `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.length) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_were_given_back_have_the_same_bytes() {
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        let mapped = MappedFile::of(&file).unwrap();
        let sum = |mapped: &MappedFile| -> u64 {
            mapped.bytes()[..1 << 20]
                .iter()
                .map(|byte| u64::from(*byte))
                .sum()
        };
        let before = sum(&mapped);
        mapped.give_back();
        assert_eq!(sum(&mapped), before);
        assert!(mapped.bytes().starts_with(b"\x7fELF"));
    }

    #[test]
    fn an_empty_file_is_not_mapped() {
        assert!(MappedFile::of(&File::open("/dev/null").unwrap()).is_none());
    }
}
