//! Tests that the page of a parallel profile during a session has the allocations of each worker and call site. The test has
//! a process of its own, because the session belongs to the process's own profiler.
#![cfg(all(heapray_native, target_env = "gnu"))]

use std::hint::black_box;

use crate::page::{Page, page_path};
use crate::support::process::{in_own_process, test_name};
use heapray::parallel_profile::builder;

fn allocates(blocks: usize) {
    for _ in 0..blocks {
        black_box(vec![1u8; 10_000]);
    }
}

#[test]
fn allocations_are_shown_by_worker_and_by_call_site() {
    in_own_process(test_name!(), allocate_on_workers);
}

fn allocate_on_workers() {
    let directory = std::env::temp_dir().join(format!("heapray-parallel-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let profiler = heapray::builder()
        .enabled(true)
        .dir(&directory)
        .ignore_environment()
        .init();
    // Allocated before the profiled function runs.
    allocates(5000);
    builder("allocating")
        .report_name(page_path("allocating"))
        .run(|| {
            std::thread::Builder::new()
                .name("allocator".to_owned())
                .spawn(|| allocates(300))
                .unwrap()
                .join()
                .unwrap();
            allocates(100);
        });
    profiler.shutdown().unwrap();
    std::fs::remove_dir_all(directory).unwrap();

    let page = Page::read(&page_path("allocating"));
    let found = &page.data["allocations"];
    let blocks = found["total"][0].as_u64().unwrap();
    assert!((400..5000).contains(&blocks), "{blocks} blocks");
    let first = &found["sites"][0];
    assert!(
        first["name"].as_str().unwrap().ends_with("allocates"),
        "{first}"
    );
    assert_eq!(first["count"], 400);
    assert_eq!(first["bytes"], 4_000_000);
}
