//! Tests of `heapray::Alloc` around mimalloc, which calls `mmap` and `munmap` through the GOT.
//!
//! The tests are a program of their own, because a program has one global allocator.
#[path = "support/allocator.rs"]
mod allocator;
mod support;

#[global_allocator]
static GLOBAL: heapray::Alloc<mimalloc::MiMalloc> = heapray::Alloc::new(mimalloc::MiMalloc);

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
fn the_allocators_own_mappings_are_not_counted_in_addition() {
    allocator::the_allocators_own_mappings_are_not_counted();
}

#[test]
fn it_is_found_by_its_functions_and_tells_of_its_memory() {
    allocator::tells_of_its_memory("mimalloc");
}
