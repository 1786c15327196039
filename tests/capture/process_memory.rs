//! Tests that a snapshot says where the process's memory is: the figures of the system, of allocators and of heapray. A
//! function for an allocator's figures stays registered until the process ends, so the test has a process of its own.

use heapray::AllocatorMemory;

use crate::support::process::{in_own_process, test_name};
use crate::support::record;

fn arena() -> AllocatorMemory {
    AllocatorMemory::new("arena", 7, 3)
}

#[test]
fn a_snapshot_shows_where_the_resident_memory_went() {
    in_own_process(test_name!(), where_the_resident_memory_went);
}

fn where_the_resident_memory_went() {
    heapray::allocator_memory(|| Some(arena()));
    let snapshot = record("process_memory", || {
        std::hint::black_box(Box::leak(vec![1u8; 8 << 20].into_boxed_slice()));
    });
    let memory = snapshot.process_memory.expect("Linux has the figures");
    assert!(memory.rss > 8 << 20, "{memory:?}");
    assert!(memory.allocators.contains(&arena()));
    if cfg!(target_env = "gnu") {
        let glibc = memory.allocators.iter().find(|one| one.name == "glibc");
        assert!(glibc.is_some_and(|one| one.in_use > 8 << 20), "{memory:?}");
    }
    assert!(memory.own_mapped > 0 && memory.own_heap > 0, "{memory:?}");
    assert!(memory.stacks.is_some_and(|bytes| bytes > 0), "{memory:?}");

    // An allocator whose function panics is left out.
    heapray::allocator_memory(|| panic!("on purpose"));
    let snapshot = record("process_memory_panic", || {
        drop(std::hint::black_box(vec![1u8; 100]));
    });
    assert!(snapshot.process_memory.is_some());
}

#[test]
fn what_is_free_but_resident_is_told_apart_from_a_leak() {
    in_own_process(test_name!(), free_but_resident);
}

fn free_but_resident() {
    let snapshot = record("free_but_resident", || {
        // Of each 32 blocks one stays, so no page becomes free.
        let mut blocks: Vec<Vec<u8>> = (0..80_000).map(|_| vec![1; 1000]).collect();
        let mut number = 0;
        blocks.retain(|_| {
            number += 1;
            number % 32 == 0
        });
        std::hint::black_box(blocks.leak());
    });
    let report = heapray::symbolize::report(&snapshot, &heapray::ReportOptions::default()).report;
    let found = heapray_report::views::fragmentation(&report);
    if cfg!(target_env = "gnu") {
        let found = found.expect("78 of 80 MB are free");
        assert_eq!(found.allocator, "glibc");
        assert!(found.kept > 60 << 20 && found.arenas > 0, "{found:?}");
        let text = heapray_report::stats::text(&report);
        assert!(text.contains("MALLOC_ARENA_MAX"), "{text}");
    }
}
