//! The figures of the process's allocators: those that are found by name, and the one that the service sets.

use std::sync::Mutex;

use heapray_report::model::AllocatorMemory;

use crate::os::allocators;

type Read = fn() -> Option<AllocatorMemory>;

static NAMED: Mutex<Option<Read>> = Mutex::new(None);

/// Sets the function that reads the figures of the service's allocator, for "where did the RSS go" in reports.
///
/// glibc's `malloc`, jemalloc and mimalloc do not need this: they are found by the names of their functions, in the program's
/// symbol table too. This sets another allocator, or one of those in a program without a symbol table (`strip = true`):
///
/// ```
/// # mod tikv_jemalloc_ctl { pub mod epoch { pub fn advance() -> Result<u64, ()> { Ok(1) } }
/// # pub mod stats { pub mod allocated { pub fn read() -> Result<usize, ()> { Ok(1) } }
/// # pub mod resident { pub fn read() -> Result<usize, ()> { Ok(2) } } } }
/// heapray::allocator_memory(|| {
///     tikv_jemalloc_ctl::epoch::advance().ok()?;
///     let in_use = tikv_jemalloc_ctl::stats::allocated::read().ok()? as u64;
///     let resident = tikv_jemalloc_ctl::stats::resident::read().ok()? as u64;
///     Some(heapray::AllocatorMemory::new("jemalloc", in_use, resident.saturating_sub(in_use)))
/// });
/// ```
///
/// `read` is called once per report, on a thread of heapray's own. Only the function that was set last is used.
pub fn allocator_memory(read: fn() -> Option<AllocatorMemory>) {
    *NAMED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner) = Some(read);
}

/// Returns all available figures.
pub(super) fn figures() -> Vec<AllocatorMemory> {
    let named = *NAMED
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    // The service's own code runs here: its panic must not end the collector.
    let named = named.and_then(|read| std::panic::catch_unwind(read).ok().flatten());
    let found = allocators::figures().map(|found| {
        AllocatorMemory::new(found.name, found.in_use, found.kept).with_arenas(found.arenas)
    });
    named.into_iter().chain(found).collect()
}
