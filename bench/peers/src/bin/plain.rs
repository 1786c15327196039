//! The workloads without a profiler, built like the peers: the base of comparison, and the program for preloaded profilers.

use std::process::ExitCode;

fn main() -> ExitCode {
    heapray_bench_workloads::main(|| Ok(heapray_bench_workloads::Unprofiled))
}
