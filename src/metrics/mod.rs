//! Metrics for Prometheus: what the process holds and what the profiler does, in a text that a server scrapes.
//!
//! ```text
//! ProcessFigures ──▶ families ──▶ text (0.0.4, OpenMetrics) ──▶ GET …/metrics, metrics_text()
//! os::process_metrics ──▶ process ──┘    └──▶ a Collector of the crate prometheus-client
//! ```
//!
//! A scrape never asks the collector, unless it wants lines or routes too, and takes no lock that a request or a hook waits for.

#[cfg(feature = "prometheus-client")]
mod collector;
mod families;
mod family;
#[cfg(feature = "http")]
mod process;
mod resident;
#[cfg(feature = "http")]
mod routes;
#[cfg(feature = "http")]
mod sites;
mod text;

#[cfg(feature = "prometheus-client")]
pub use collector::MetricsCollector;
pub(crate) use families::families;
pub(crate) use family::Family;
#[cfg(feature = "http")]
pub(crate) use process::families as process_families;
#[cfg(feature = "http")]
pub(crate) use routes::families as route_families;
#[cfg(feature = "http")]
pub(crate) use sites::families as site_families;
pub(crate) use text::{TextFormat, text};

use crate::capture::untracked;
use crate::profiler::{Profiler, profiler};

impl Profiler {
    /// Returns the profiler's metrics in Prometheus's text format 0.0.4, to append to what the service's own `/metrics`
    /// answers. All names begin with `heapray_`. The text is empty where the profiler is disabled, and in a forked child.
    ///
    /// `GET …/memray/metrics` answers with the same text. `docs/monitoring.md` lists the families.
    ///
    /// This takes microseconds, and seldom a few milliseconds. It waits neither for a report nor for a request.
    #[must_use]
    pub fn metrics_text(&self) -> String {
        let _untracked = untracked::enter();
        text(&self.metric_families(), TextFormat::Plain)
    }

    fn metric_families(&self) -> Vec<Family> {
        let core = self.core();
        core.map_or_else(|_| Vec::new(), |core| families(&core.figures_blocking()))
    }
}

/// Returns what [`Profiler::metrics_text`] returns.
///
/// ```
/// // What a service's own `/metrics` answers.
/// let mut text = String::from("# TYPE shop_orders_total counter\nshop_orders_total 3\n");
/// text.push_str(&heapray::metrics_text());
/// ```
#[must_use]
pub fn metrics_text() -> String {
    profiler().metrics_text()
}
