//! The call sites as real functions, one for each [`Site`]. A heap profiler shows their names.
//!
//! Each function returns a block of `bytes` bytes whose first byte is written. Where `block` is null the block is new
//! (`malloc`), else it is the given block with a new size (`realloc`).

use crate::Site;
use std::hint::black_box;
use std::ptr::NonNull;

/// Allocates a block at `site`, or resizes `block` there. `None`: there is not enough memory.
///
/// # Safety
///
/// `block` is null, or it came from this function and was neither freed nor passed to this function since.
pub unsafe fn obtain(site: Site, block: *mut u8, bytes: usize) -> Option<NonNull<u8>> {
    let function = match site {
        Site::Settings => settings,
        Site::StartUp => start_up,
        Site::RequestBody => request_body,
        Site::ResponseBuffer => response_buffer,
        Site::LogLine => log_line,
        Site::Session => session,
        Site::Cache => cache,
        Site::CacheIndex => cache_index,
        Site::Suspect => suspect,
        Site::SuspectIndex => suspect_index,
    };
    // SAFETY: the functions below ask of `block` what this function asks of it.
    NonNull::new(unsafe { function(block, bytes) })
}

/// Frees a block.
///
/// # Safety
///
/// `block` came from [`obtain`] and was neither freed nor passed to it since.
pub unsafe fn release(block: NonNull<u8>) {
    // SAFETY: `obtain` returns what `malloc` or `realloc` returned, and the caller says that it is still live.
    unsafe { libc::free(block.as_ptr().cast()) }
}

/// Calls the C library in the function of a call site, at the line of that function: a macro, since a function would be
/// one more frame, in which all call sites meet. Writes the first byte, so that the block's first page is really there.
#[collapse_debuginfo(yes)]
macro_rules! call {
    ($block:expr, $bytes:expr) => {{
        let (block, bytes): (*mut u8, usize) = ($block, $bytes.max(1));
        // SAFETY: `block` is null or a live block of `malloc` or `realloc`, as the caller of `obtain` promises. The size
        // is not 0.
        let block = unsafe { if block.is_null() { libc::malloc(bytes) } else { libc::realloc(block.cast(), bytes) } };
        let block: *mut u8 = block.cast();
        if !block.is_null() {
            // SAFETY: the block has at least one byte, and nobody else knows of it yet.
            unsafe { block.write_volatile(1) };
        }
        block
    }};
}

// The constant keeps the functions apart: the compiler merges those whose bodies are equal.

#[inline(never)]
unsafe fn settings(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::Settings);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn start_up(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::StartUp);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn request_body(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::RequestBody);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn response_buffer(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::ResponseBuffer);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn log_line(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::LogLine);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn session(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::Session);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn cache(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::Cache);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn cache_index(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::CacheIndex);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn suspect(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::Suspect);
    call!(block, bytes)
}

#[inline(never)]
unsafe fn suspect_index(block: *mut u8, bytes: usize) -> *mut u8 {
    black_box(Site::SuspectIndex);
    call!(block, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::any::type_name_of_val;
    use std::collections::HashSet;

    #[test]
    fn a_site_is_named_as_its_function_is() {
        let names = [
            type_name_of_val(&settings),
            type_name_of_val(&start_up),
            type_name_of_val(&request_body),
            type_name_of_val(&response_buffer),
            type_name_of_val(&log_line),
            type_name_of_val(&session),
            type_name_of_val(&cache),
            type_name_of_val(&cache_index),
            type_name_of_val(&suspect),
            type_name_of_val(&suspect_index),
        ];
        assert_eq!(names, Site::ALL.map(Site::name));
        assert_eq!(HashSet::from(names).len(), Site::ALL.len());
    }

    #[test]
    fn a_block_keeps_its_bytes_when_it_is_resized() {
        for site in Site::ALL {
            // SAFETY: null is a new block.
            let block = unsafe { obtain(site, std::ptr::null_mut(), 64) }.unwrap();
            // SAFETY: the block has 64 bytes.
            unsafe { block.as_ptr().add(63).write(7) };
            // SAFETY: the block is live, and is not used again under its old address.
            let block = unsafe { obtain(site, block.as_ptr(), 1 << 20) }.unwrap();
            // SAFETY: the block has more than 64 bytes now.
            let kept = unsafe { (block.read(), block.as_ptr().add(63).read()) };
            assert_eq!(kept, (1, 7));
            // SAFETY: the block is live and is not used again.
            unsafe { release(block) };
        }
    }
}
