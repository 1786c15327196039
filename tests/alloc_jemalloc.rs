//! `heapray::Alloc` round jemalloc, which calls `mmap` and `munmap` through the patched entries and purges on a thread of its own.
//!
//! A process of its own: its global allocator.
#[path = "support/allocator.rs"]
mod allocator;
mod support;

#[global_allocator]
static GLOBAL: heapray::Alloc<tikv_jemallocator::Jemalloc> =
    heapray::Alloc::new(tikv_jemallocator::Jemalloc);

/// Gives memory back at once, from background threads too, instead of keeping it: as many mappings as can be.
// SAFETY: the name that tikv-jemallocator's jemalloc reads; it wants a pointer to a C string, which the first word of a
// slice is.
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: &[u8] =
    b"background_thread:true,dirty_decay_ms:0,muzzy_decay_ms:0,retain:false\0";

#[test]
fn every_allocation_of_rust_code_is_counted_exactly_once() {
    allocator::books_are_exact();
}

#[test]
fn blocks_of_many_threads_freed_by_another_are_counted_exactly_once() {
    allocator::books_of_threads_are_exact();
}

#[test]
fn stacks_lead_to_the_code_that_asked() {
    allocator::stacks_lead_to_the_code_that_asks();
}

#[test]
fn c_is_seen_through_the_got() {
    allocator::c_is_seen_through_the_got();
}

#[test]
fn stopped_means_that_nothing_is_recorded() {
    allocator::stopped_means_nothing_is_recorded();
}

#[test]
fn jemalloc_runs_threads_of_its_own() {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let is_jemallocs = |task: std::io::Result<std::fs::DirEntry>| {
        let name = std::fs::read_to_string(task.unwrap().path().join("comm"));
        name.unwrap_or_default().starts_with("jemalloc_bg")
    };
    assert!(
        tasks.into_iter().any(is_jemallocs),
        "the options above count"
    );
}

#[test]
fn memory_that_the_allocator_maps_is_not_counted_besides() {
    allocator::the_allocators_own_mappings_are_not_counted();
}
