//! The workloads with stats_alloc: a handful of counters that all threads share, and nothing else. Profilers that keep whole
//! stacks are compared with this where several threads allocate.

use std::alloc::System;
use std::process::ExitCode;

use heapray_bench_workloads::Profiler;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Counters;

fn main() -> ExitCode {
    heapray_bench_workloads::main(|| Ok(Counters))
}

impl Profiler for Counters {
    fn facts(&mut self) -> Vec<(&'static str, f64)> {
        let stats = GLOBAL.stats();
        vec![
            ("recorded", stats.allocations as f64),
            (
                "live",
                stats.allocations as f64 - stats.deallocations as f64,
            ),
        ]
    }
}
