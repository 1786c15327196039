//! Loading, with a different profile for each part.

use crate::stations::{self, Measurement};

/// Lines of the input.
pub(crate) const LINES: usize = 400_000;

/// Loads with memory_profiler's table: resident memory, line by line.
#[heapray::profile]
pub(crate) fn load(lines: usize) -> Vec<Measurement> {
    let text = stations::text(lines);
    // Each line's station is a separate string.
    let measurements: Vec<Measurement> = text.lines().filter_map(parse).collect();
    drop(text);
    measurements
}

/// Does the same, with exactly the memory that this call allocates and keeps.
#[heapray::profile(metric = "heap", unit = "KiB", held = true)]
pub(crate) fn load_exactly(lines: usize) -> Vec<Measurement> {
    let text = stations::text(lines);
    let mut measurements = Vec::with_capacity(lines);
    for line in text.lines() {
        measurements.extend(parse(line));
    }
    measurements
}

/// Does the same, with its CPU time.
#[heapray::single_thread_profiler(report_name = "load.pstats", limit = 10)]
pub(crate) fn load_timed(lines: usize) -> Vec<Measurement> {
    let text = stations::text(lines);
    text.lines().filter_map(parse).collect()
}

#[inline(never)]
fn parse(line: &str) -> Option<Measurement> {
    let (station, celsius) = line.split_once(';')?;
    Some(Measurement {
        station: station.to_owned(),
        celsius: celsius.parse().ok()?,
    })
}
