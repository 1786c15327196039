//! Tests of `heapray::Alloc` around jemalloc, which calls `mmap` and `munmap` through the GOT and purges on a thread of its
//! own.
//!
//! The tests are a program of their own, because a program has one global allocator.
#[path = "support/allocator.rs"]
mod allocator;
mod support;

#[global_allocator]
static GLOBAL: heapray::Alloc<tikv_jemallocator::Jemalloc> =
    heapray::Alloc::new(tikv_jemallocator::Jemalloc);

/// Options with which jemalloc unmaps memory at once, on background threads too, to get as many mappings as possible.
// SAFETY: tikv-jemallocator's jemalloc reads this name and expects a pointer to a C string. The first word of a slice is
// such a pointer.
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
fn stacks_lead_to_the_code_that_allocated() {
    allocator::stacks_lead_to_the_code_that_allocates();
}

#[test]
fn allocations_of_c_are_recorded_through_the_got() {
    allocator::c_is_recorded_through_the_got();
}

#[test]
fn nothing_is_recorded_between_sessions() {
    let test = support::process::test_name!();
    support::process::in_own_process(test, allocator::between_sessions_nothing_is_recorded);
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
        "jemalloc uses the options above"
    );
}

#[test]
fn the_allocators_own_mappings_are_not_counted_in_addition() {
    allocator::the_allocators_own_mappings_are_not_counted();
}

#[test]
fn it_is_found_by_its_functions_and_tells_of_its_memory() {
    allocator::tells_of_its_memory("jemalloc");
}
