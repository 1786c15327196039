//! The standard families of a process, with the names that Prometheus's own libraries give them
//! (<https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>). A service may export them already, so
//! they are written only on request.

use std::time::SystemTime;

use heapray_report::model::ProcessMemory;

use super::family::Family;
use crate::os::process_metrics::ProcessMetrics;

/// Returns those families that the system has figures for.
pub(crate) fn families(memory: Option<&ProcessMemory>) -> Vec<Family> {
    let process = ProcessMetrics::read();
    let allocators = memory.map_or(&[][..], |memory| &memory.allocators);
    let heap = allocators
        .iter()
        .fold(0_u64, |heap, it| heap.saturating_add(it.in_use));
    let started = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).ok();
    vec![
        Family::counter(
            "process_cpu_seconds",
            "CPU time of the process, user and system, in seconds.",
            process.cpu.as_secs_f64(),
        ),
        Family::gauge(
            "process_open_fds",
            "Open file descriptors.",
            process.open_fds,
        ),
        Family::gauge(
            "process_max_fds",
            "Most file descriptors that may be open.",
            process.max_fds,
        ),
        Family::gauge(
            "process_virtual_memory_bytes",
            "Virtual memory in bytes.",
            process.virtual_bytes,
        ),
        Family::gauge(
            "process_virtual_memory_max_bytes",
            "Most virtual memory that the process may have, in bytes.",
            process.max_virtual_bytes,
        ),
        Family::gauge(
            "process_resident_memory_bytes",
            "Resident memory in bytes.",
            memory.map(|memory| memory.rss),
        ),
        Family::gauge(
            "process_heap_bytes",
            "Bytes in blocks that the allocator has handed out.",
            (heap > 0).then_some(heap),
        ),
        Family::gauge(
            "process_threads",
            "Threads of the process.",
            process.threads,
        ),
        Family::gauge(
            "process_start_time_seconds",
            "When the process started, in seconds since the Unix epoch.",
            process.started.and_then(started).map(|at| at.as_secs_f64()),
        ),
    ]
}
