//! Load on the workload `server`.

use std::time::Duration;

use heapray_bench_workloads::{REQUEST, Result};

use crate::contenders::Contender;
use crate::load;
use crate::plan::Case;
use crate::process::{Done, Measured};

/// Starts the service, loads it, and adds the results.
pub(crate) fn measure(contender: &Contender, case: &Case) -> Result<Done> {
    let seconds = case.options().text("seconds").unwrap_or("2").parse()?;
    let duration = Duration::from_secs_f64(seconds);
    let mut service = Measured::start(contender, &["server".to_owned()], &[], &[])?;
    let process: u32 = service.until("pid")?.parse()?;
    let address = service.until("address")?.parse()?;
    // Until a peer's helper process has read the program's debug information, too.
    let warm = load::drive(
        address,
        "/orders",
        REQUEST,
        duration.max(Duration::from_secs(1)),
    )?;
    let before = ThreadTimes::read(process)?;
    let answers = load::drive(address, "/orders", REQUEST, duration)?;
    let after = ThreadTimes::read(process)?;
    let requests = answers.latencies.len() as f64;
    let each = |before: Duration, after: Duration| {
        after.saturating_sub(before).as_nanos() as f64 / requests
    };
    service.add("requests", requests);
    service.add("all_requests", requests + warm.latencies.len() as f64);
    service.add("requests_per_second", answers.per_second());
    service.add("service_ns", each(before.service, after.service));
    service.add("profiler_ns", each(before.profiler, after.profiler));
    for (name, part) in [("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)] {
        service.add(name, answers.percentile(part));
    }
    service.finish()
}

/// CPU time of a process's threads: those of the service, and those of heapray or bytehound, recognized by name.
#[derive(Debug, Clone, Copy, Default)]
struct ThreadTimes {
    service: Duration,
    profiler: Duration,
}

impl ThreadTimes {
    /// Reads `schedstat` of each thread.
    fn read(process: u32) -> Result<ThreadTimes> {
        let mut times = ThreadTimes::default();
        for task in std::fs::read_dir(format!("/proc/{process}/task"))? {
            let task = task?.path();
            // A thread may end between the two readings.
            let Ok(name) = std::fs::read_to_string(task.join("comm")) else {
                continue;
            };
            let Ok(schedule) = std::fs::read_to_string(task.join("schedstat")) else {
                continue;
            };
            let ran = schedule.split_ascii_whitespace().next().unwrap_or_default();
            let ran = Duration::from_nanos(ran.parse()?);
            if name.starts_with("heapray") || name.starts_with("mem-prof") {
                times.profiler += ran;
            } else {
                times.service += ran;
            }
        }
        Ok(times)
    }
}
