//! Load on the workload `server`.

use std::net::SocketAddr;
use std::time::Duration;

use heapray_bench_workloads::{REQUEST, Result};

use crate::contenders::Contender;
use crate::load;
use crate::plan::Case;
use crate::process::{Done, Measured};
use crate::times::CpuTimes;

/// Shortest and longest load before the measured one.
const WARM: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Starts the service, loads it, and adds the results.
pub(crate) fn measure(contender: &Contender, case: &Case) -> Result<Done> {
    let duration = Duration::from_secs_f64(case.options().text("seconds").unwrap_or("2").parse()?);
    let mut service = Service::start(contender)?;
    // Until a peer's helper process has read the program's debug information, too.
    service.warm(duration.clamp(WARM[0], WARM[1]))?;
    service.load(duration)?;
    service.finish()
}

/// Running service.
#[derive(Debug)]
pub(crate) struct Service {
    process: Measured,
    pid: u32,
    address: SocketAddr,
    /// Requests before the measured ones.
    warm: usize,
}

impl Service {
    pub(crate) fn start(contender: &Contender) -> Result<Service> {
        let mut process = Measured::start(contender, &["server".to_owned()], &[], &[])?;
        let pid = process.until("pid")?.parse()?;
        let address = process.until("address")?.parse()?;
        Ok(Service {
            process,
            pid,
            address,
            warm: 0,
        })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Adds a value that the caller has measured.
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.process.add(name, value);
    }

    /// Loads the service without measuring it.
    pub(crate) fn warm(&mut self, duration: Duration) -> Result<()> {
        let answers = load::drive(self.address, "/orders", REQUEST, duration)?;
        self.warm += answers.latencies.len();
        Ok(())
    }

    /// Loads the service, and adds the results. Returns the CPU time that it took.
    pub(crate) fn load(&mut self, duration: Duration) -> Result<CpuTimes> {
        let before = CpuTimes::read(self.pid)?;
        let answers = load::drive(self.address, "/orders", REQUEST, duration)?;
        let times = CpuTimes::read(self.pid)?.since(&before);
        let requests = answers.latencies.len() as f64;
        let each = |time: Duration| time.as_nanos() as f64 / requests;
        self.add("requests", requests);
        self.add("all_requests", requests + self.warm as f64);
        self.add("requests_per_second", answers.per_second());
        self.add("service_ns", each(times.service));
        self.add("profiler_ns", each(times.profiler));
        self.add("children_ns", each(times.children));
        for (name, part) in [("p50_ns", 0.5), ("p99_ns", 0.99), ("p999_ns", 0.999)] {
            self.add(name, answers.percentile(part));
        }
        Ok(times)
    }

    /// Lets the service end, and returns its values.
    pub(crate) fn finish(self) -> Result<Done> {
        self.process.finish()
    }
}
