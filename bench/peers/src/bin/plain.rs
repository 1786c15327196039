//! The workloads without a profiler, built as the peers are: what they are compared with, and what is preloaded into.

use std::process::ExitCode;

fn main() -> ExitCode {
    heapray_bench_workloads::main(|| Ok(heapray_bench_workloads::Unprofiled))
}
