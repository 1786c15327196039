//! The workloads on jemalloc with its own profiler, whose profiles pyroscope-rs pushes to `HEAPRAY_BENCH_PUSH` each
//! `HEAPRAY_BENCH_PUSH_INTERVAL` seconds.
//!
//! Its threads without a name are called like this program, so the benchmark knows them by `pyroscope`.

use std::env;
use std::process::ExitCode;
use std::time::Duration;

use heapray_bench_workloads::{Profiler, Result};
use pyroscope::backend::jemalloc::jemalloc_backend;
use pyroscope::pyroscope::{PyroscopeAgent, PyroscopeAgentBuilder, PyroscopeAgentRunning};

#[global_allocator]
static GLOBAL: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Pushes as long as it lives.
struct Pushing(#[allow(dead_code)] PyroscopeAgent<PyroscopeAgentRunning>);

fn main() -> ExitCode {
    heapray_bench_workloads::main(begin)
}

fn begin() -> Result<Pushing> {
    let seconds = env::var("HEAPRAY_BENCH_PUSH_INTERVAL")?.parse()?;
    let agent = PyroscopeAgentBuilder::new(
        env::var("HEAPRAY_BENCH_PUSH")?,
        "server",
        // Of CPU samples; jemalloc has its own rate.
        100,
        "pyroscope-rs",
        env!("CARGO_PKG_VERSION"),
        jemalloc_backend(),
    )
    .upload_interval(Duration::from_secs(seconds))
    .build()?;
    Ok(Pushing(agent.start()?))
}

impl Profiler for Pushing {}
