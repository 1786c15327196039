//! `heapray::Alloc` round the system's allocator, whose functions are patched too: what passes through both is counted once.
//!
//! A process of its own: its global allocator.
#[path = "support/allocator.rs"]
mod allocator;
mod support;

#[global_allocator]
static GLOBAL: heapray::Alloc<std::alloc::System> = heapray::Alloc::new(std::alloc::System);

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
fn memory_that_the_allocator_maps_is_not_counted_besides() {
    allocator::the_allocators_own_mappings_are_not_counted();
}
