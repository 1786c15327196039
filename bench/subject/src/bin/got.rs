//! The workloads, with heapray patching the GOT.

use std::process::ExitCode;

fn main() -> ExitCode {
    heapray_bench_workloads::main(heapray_bench_subject::Heapray::begin)
}
