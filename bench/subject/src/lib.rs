//! heapray as the profiler of a workload. Its settings come from the environment (`MEMRAY_PROFILER` and so on), as in any
//! service. `HEAPRAY_BENCH_STOPPED` ends the session before the work begins.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use axum::Router;
use heapray::{Format, Measure, OutputKey, OutputKind, Unit};
use heapray_bench_workloads::{Folded, Profiler, Result, Written};

/// Profiler of the process, enabled or not.
#[derive(Debug, Clone)]
pub struct Heapray(heapray::Profiler);

impl Heapray {
    /// Begins with the settings of the environment.
    ///
    /// # Errors
    ///
    /// A bad setting, or recording that did not start.
    pub fn begin() -> Result<Heapray> {
        let profiler = heapray::builder().try_init()?;
        if std::env::var_os("HEAPRAY_BENCH_STOPPED").is_some() {
            profiler.stop()?;
        }
        Ok(Heapray(profiler))
    }
}

impl Profiler for Heapray {
    fn mount(&self, app: Router) -> Router {
        self.0.mount(app)
    }

    fn settle(&mut self) {
        // The collector answers after it has handled all earlier events.
        drop(self.0.status());
    }

    fn facts(&mut self) -> Vec<(&'static str, f64)> {
        if !self.0.is_enabled() {
            return Vec::new();
        }
        let status = self.0.status();
        vec![
            ("events", status.events as f64),
            ("recorded", status.allocated.count as f64),
            ("live", status.live.count as f64),
            ("lost", status.lost_events as f64),
            ("own_bytes", status.overhead.memory_bytes as f64),
            ("collector_ns", status.overhead.collector_cpu_ns as f64),
            ("log_bytes", status.overhead.log_bytes as f64),
            ("log_given_up", f64::from(status.log_given_up.is_some())),
        ]
    }

    fn finish(&mut self, folder: &Path) -> Result<Written> {
        if !self.0.is_enabled() {
            return Ok(Written::default());
        }
        let report = self.0.stop()?.report;
        let page = folder.join("flamegraph.html");
        io::copy(&mut self.0.flamegraph()?, &mut File::create(&page)?)?;
        Ok(Written {
            recording_bytes: report.map(|report| report.bytes),
            page: Some(page),
        })
    }

    fn folded(&mut self) -> Result<Option<Folded>> {
        if !self.0.is_enabled() {
            return Ok(None);
        }
        let key = OutputKey::new(OutputKind::File(Format::Collapsed))
            .full(true)
            .measure(Measure::Allocated)
            .unit(Unit::Count);
        let mut text = String::new();
        self.0.output(key)?.read_to_string(&mut text)?;
        Ok(Some(Folded::read(&text)))
    }
}
