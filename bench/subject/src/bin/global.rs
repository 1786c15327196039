//! The workloads, with heapray's wrapper as the global allocator.

use std::process::ExitCode;

#[global_allocator]
static GLOBAL: heapray::Alloc = heapray::Alloc::new(std::alloc::System);

fn main() -> ExitCode {
    heapray_bench_workloads::main(heapray_bench_subject::Heapray::begin)
}
