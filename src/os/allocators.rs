//! Figures that allocators report about themselves. Read outside of hooks, on heapray's own threads.
//!
//! Functions are found by name at run time: an older libc does not have `mallinfo2`, and other allocators are rarely linked.
//! A static jemalloc or mimalloc exports no name, but the program's symbol table has it. See `heapray::allocator_memory` for
//! those of stripped programs.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::transmute;

#[cfg(target_env = "gnu")]
use super::glibc::figures as glibc;
use super::program_symbols;

/// Figures of an allocator, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AllocatorFigures {
    /// The allocator.
    pub(crate) name: &'static str,
    /// Bytes in blocks that are handed out.
    pub(crate) in_use: u64,
    /// Bytes kept for later.
    pub(crate) kept: u64,
    /// Number of its arenas; 0 if unknown.
    pub(crate) arenas: u32,
}

/// Returns the figures of all allocators that are found.
pub(crate) fn figures() -> impl Iterator<Item = AllocatorFigures> {
    [glibc(), jemalloc(), mimalloc()].into_iter().flatten()
}

/// Returns the address of a function of an allocator.
pub(super) fn function(name: &CStr) -> Option<*mut c_void> {
    // SAFETY: the name is a C string. Not called in a hook: `dlsym` may lock and allocate.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if address.is_null() {
        program_symbols::function(name)
    } else {
        Some(address)
    }
}

#[cfg(not(target_env = "gnu"))]
fn glibc() -> Option<AllocatorFigures> {
    None
}

/// `int mallctl(const char *name, void *oldp, size_t *oldlenp, void *newp, size_t newlen)`, jemalloc(3).
type Mallctl =
    unsafe extern "C" fn(*const c_char, *mut c_void, *mut usize, *mut c_void, usize) -> c_int;

fn jemalloc() -> Option<AllocatorFigures> {
    let address = function(c"mallctl").or_else(|| function(c"_rjem_mallctl"))?;
    // SAFETY: jemalloc's function, by its manual.
    let mallctl: Mallctl = unsafe { transmute(address) };
    let mut epoch = 1u64;
    // SAFETY: "epoch" takes a u64 and makes the figures those of now; the pointers are live and the length is theirs.
    unsafe {
        mallctl(
            c"epoch".as_ptr(),
            core::ptr::null_mut(),
            core::ptr::null_mut(),
            (&raw mut epoch).cast(),
            size_of::<u64>(),
        )
    };
    let read = |name: &CStr| {
        let (mut bytes, mut length) = (0usize, size_of::<usize>());
        // SAFETY: these names give a size_t; where one is unknown, nothing is written and an error comes back.
        let failed = unsafe {
            mallctl(
                name.as_ptr(),
                (&raw mut bytes).cast(),
                &raw mut length,
                core::ptr::null_mut(),
                0,
            )
        };
        (failed == 0).then_some(bytes as u64)
    };
    // Without the feature `stats` of the usual crates, jemalloc keeps no figures. That it is there still explains something.
    let in_use = read(c"stats.allocated").unwrap_or(0);
    Some(AllocatorFigures {
        name: "jemalloc",
        in_use,
        kept: read(c"stats.resident").unwrap_or(0).saturating_sub(in_use),
        arenas: 0,
    })
}

/// `void mi_process_info(size_t *elapsed, *user, *system, *rss, *peak_rss, *commit, *peak_commit, *faults)`, mimalloc.h.
type ProcessInfo = unsafe extern "C" fn(
    *mut usize,
    *mut usize,
    *mut usize,
    *mut usize,
    *mut usize,
    *mut usize,
    *mut usize,
    *mut usize,
);

fn mimalloc() -> Option<AllocatorFigures> {
    let address = function(c"mi_process_info")?;
    // SAFETY: mimalloc's function, by its header.
    let process_info: ProcessInfo = unsafe { transmute(address) };
    let mut numbers = [0usize; 8];
    let [a, b, c, d, e, committed, g, h] = &mut numbers;
    // SAFETY: eight live places, each of its own.
    unsafe { process_info(a, b, c, d, e, committed, g, h) };
    Some(AllocatorFigures {
        // It does not report how much of its memory is handed out.
        name: "mimalloc (in use or kept)",
        in_use: *committed as u64,
        kept: 0,
        arenas: 0,
    })
}
