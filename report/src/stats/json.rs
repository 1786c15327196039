//! `memray stats --json`, byte for byte, with one additional key, `heapray`, for data that memray does not have.
//!
//! Python's `json.dump(indent=2)` writes memray's file: characters outside ASCII are escaped, and times are spelt as in
//! Python. memray gives times in the time zone of the reader; ours are in UTC. For a capture that heapray wrote, memray's
//! `total_allocations` is one more: it counts the record that closes the capture.

use std::io::{self, Write};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::ser::{Formatter, PrettyFormatter};

use super::heapray::{live_locations, live_own_lines};
use super::histogram::databins;
use super::memray::{allocators, top_locations, top_modules};
use super::{Estimates, TOP, place};
use crate::formats::json::{Candidate, KnownMemory};
use crate::memray::{Facts, in_one_line};
use crate::model::{Allocator, Report, Tally};
use crate::stats::time::python_time;
use crate::views::{Fragmentation, fragmentation, leaks};

/// Options of the statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JsonOptions {
    /// Largest number of places and modules in each list (`-n` of `memray stats`). Default: 5.
    pub num_largest: usize,
    /// Fields of the capture file's header, if the report is from a file.
    pub facts: Option<Facts>,
}

impl Default for JsonOptions {
    fn default() -> Self {
        JsonOptions {
            num_largest: TOP,
            facts: None,
        }
    }
}

/// Writes the statistics of `report`. Without sizes the histogram is empty; memray itself fails there.
///
/// # Errors
/// If `out` fails.
pub fn json(report: &Report, options: &JsonOptions, out: &mut impl Write) -> io::Result<()> {
    let most = options.num_largest;
    let by_size = |by_size| {
        let locations = top_locations(report, most, by_size).into_iter();
        locations.map(|(location, value)| (in_one_line(&location).into_owned(), value))
    };
    let modules = |by_size| {
        let modules = top_modules(report, most, by_size).into_iter();
        modules
            .map(|(module, tally)| Module {
                module,
                num_allocations: tally.count,
                total_bytes: tally.bytes,
            })
            .collect()
    };
    let totals = &report.totals;
    let stats = Stats {
        total_num_allocations: totals.allocated.count,
        total_bytes_allocated: totals.allocated.bytes,
        allocation_size_histogram: databins(&totals.sizes)
            .into_iter()
            .map(|(min_bytes, max_bytes, count)| Bin {
                min_bytes,
                max_bytes,
                count,
            })
            .collect(),
        allocator_type_distribution: Distribution(allocators(report)),
        top_allocations_by_size: by_size(true)
            .map(|(location, size)| BySize { location, size })
            .collect(),
        top_allocations_by_count: by_size(false)
            .map(|(location, count)| ByCount { location, count })
            .collect(),
        top_modules_by_allocation_size: modules(true),
        top_modules_by_allocation_count: modules(false),
        metadata: Metadata::of(report, options.facts),
        heapray: Heapray::of(report, most),
    };
    let formatter = Ascii(PrettyFormatter::new());
    stats.serialize(&mut serde_json::Serializer::with_formatter(out, formatter))?;
    Ok(())
}

#[derive(Serialize)]
struct Stats<'a> {
    total_num_allocations: u64,
    total_bytes_allocated: u64,
    allocation_size_histogram: Vec<Bin>,
    allocator_type_distribution: Distribution,
    top_allocations_by_size: Vec<BySize>,
    top_allocations_by_count: Vec<ByCount>,
    top_modules_by_allocation_size: Vec<Module>,
    top_modules_by_allocation_count: Vec<Module>,
    metadata: Metadata,
    heapray: Heapray<'a>,
}

#[derive(Serialize)]
struct Bin {
    min_bytes: u64,
    max_bytes: u64,
    count: u64,
}

struct Distribution(Vec<(Allocator, u64)>);

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (allocator, count) in &self.0 {
            map.serialize_entry(allocator.name(), count)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
struct BySize {
    location: String,
    size: u64,
}

#[derive(Serialize)]
struct ByCount {
    location: String,
    count: u64,
}

#[derive(Serialize)]
struct Module {
    module: String,
    num_allocations: u64,
    total_bytes: u64,
}

#[derive(Serialize)]
struct Metadata {
    start_time: String,
    end_time: String,
    total_allocations: u64,
    total_frames: u64,
    peak_memory: u64,
    command_line: String,
    pid: u32,
    main_thread_id: u64,
    python_allocator: &'static str,
    has_native_traces: bool,
    trace_python_allocators: bool,
    file_format: u8,
}

impl Metadata {
    fn of(report: &Report, facts: Option<Facts>) -> Metadata {
        let about = &report.about;
        let facts = facts.unwrap_or(Facts {
            main_thread_id: u64::from(about.pid),
            total_frames: report.frames.len() as u64,
            ..Facts::default()
        });
        Metadata {
            start_time: python_time(about.start_ms),
            end_time: python_time(about.end_ms),
            total_allocations: about.events,
            total_frames: facts.total_frames,
            peak_memory: report.totals.high_water.bytes,
            command_line: in_one_line(&about.command_line).into_owned(),
            pid: about.pid,
            main_thread_id: facts.main_thread_id,
            python_allocator: match about.python_allocator {
                1 => "pymalloc",
                2 => "pymalloc debug",
                4 => "unknown",
                5 => "mimalloc",
                6 => "mimalloc debug",
                _ => "malloc",
            },
            has_native_traces: facts.native_traces,
            trace_python_allocators: facts.python_allocators_traced,
            file_format: 0, // memray has statistics of captures of all allocations only
        }
    }
}

/// Statistics that memray does not have.
#[derive(Serialize)]
struct Heapray<'a> {
    producer: String,
    still_recording: bool,
    live: Amount,
    high_water: Amount,
    high_water_ms: Option<u64>,
    top_live_locations: Vec<LivePlace>,
    top_live_own_lines: Vec<LivePlace>,
    leaks: Vec<Candidate<'a>>,
    leaks_unknown: Option<&'static str>,
    known: Vec<KnownMemory<'a>>,
    fragmentation: Option<Kept>,
    lost_events: u64,
    lost_since_ms: Option<u64>,
    stacks_cut: u64,
    stacks_incomplete: u64,
    unknown_frees: u64,
    sizes_rounded: bool,
    sampling: Option<Estimates>,
    notes: Vec<String>,
    overhead: Overhead,
}

#[derive(Serialize)]
struct Amount {
    bytes: u64,
    count: u64,
}

impl From<Tally> for Amount {
    fn from(tally: Tally) -> Self {
        Amount {
            bytes: tally.bytes,
            count: tally.count,
        }
    }
}

/// [`Fragmentation`] with its advice.
#[derive(Serialize)]
struct Kept {
    allocator: String,
    kept: u64,
    rss: u64,
    arenas: Option<u32>,
    advice: String,
}

impl From<Fragmentation> for Kept {
    fn from(found: Fragmentation) -> Kept {
        Kept {
            advice: found.advice(),
            allocator: found.allocator,
            kept: found.kept,
            rss: found.rss,
            arenas: (found.arenas > 0).then_some(found.arenas),
        }
    }
}

#[derive(Serialize)]
struct LivePlace {
    location: String,
    bytes: u64,
    count: u64,
    oldest_ms: Option<u64>,
}

#[derive(Serialize)]
struct Overhead {
    memory_bytes: u64,
    collector_cpu_ns: u64,
    log_bytes: u64,
}

impl<'a> Heapray<'a> {
    fn of(report: &'a Report, most: usize) -> Heapray<'a> {
        let (totals, conditions) = (&report.totals, &report.conditions);
        let places = |places: Vec<super::heapray::Place>| {
            let places = places.into_iter();
            places
                .map(|(frame, sums)| LivePlace {
                    location: place(report, frame),
                    bytes: sums.live.bytes,
                    count: sums.live.count,
                    oldest_ms: sums.oldest_live_ms,
                })
                .collect()
        };
        let leaks = leaks(report);
        Heapray {
            producer: report.about.producer.clone(),
            still_recording: conditions.still_recording,
            live: totals.live.into(),
            high_water: totals.high_water.into(),
            high_water_ms: totals.high_water_ms,
            top_live_locations: places(live_locations(report, most)),
            top_live_own_lines: places(live_own_lines(report, most)),
            leaks: leaks
                .list()
                .iter()
                .take(most)
                .map(|leak| Candidate::of(report, leak))
                .collect(),
            leaks_unknown: leaks.unknown(),
            known: KnownMemory::of(report),
            fragmentation: fragmentation(report).map(Kept::from),
            lost_events: conditions.lost_events,
            lost_since_ms: conditions.lost_since_ms,
            stacks_cut: conditions.stacks_cut,
            stacks_incomplete: conditions.stacks_incomplete,
            unknown_frees: conditions.unknown_frees,
            sizes_rounded: totals.sizes_rounded,
            sampling: conditions.sampling.as_ref().map(Estimates::of),
            notes: conditions.notes.clone(),
            overhead: Overhead {
                memory_bytes: conditions.overhead.memory_bytes,
                collector_cpu_ns: conditions.overhead.collector_cpu_ns,
                log_bytes: conditions.overhead.log_bytes,
            },
        }
    }
}

/// Escapes characters outside ASCII, like Python.
struct Ascii(PrettyFormatter<'static>);

impl Formatter for Ascii {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        out: &mut W,
        text: &str,
    ) -> io::Result<()> {
        for c in text.chars() {
            if c.is_ascii() && c != '\u{7f}' {
                out.write_all(&[c as u8])?;
            } else {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_array(out)
    }
    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array(out)
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_array_value(out, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_array_value(out)
    }
    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object(out)
    }
    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object(out)
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        self.0.begin_object_key(out, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.begin_object_value(out)
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.0.end_object_value(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_report_holds_makes_ascii_json() {
        let mut report = Report::default();
        for name in ["", "späte \u{1f980}\u{7f}\n\"\\\u{2028}"] {
            report.about.command_line = name.into();
            report.conditions.notes = vec![name.into()];
            let mut out = Vec::new();
            json(&report, &JsonOptions::default(), &mut out).unwrap();
            assert!(out.is_ascii());
            let back: serde_json::Value = serde_json::from_slice(&out).unwrap();
            assert_eq!(back["heapray"]["notes"][0], name);
            assert_eq!(back["metadata"]["command_line"], &*in_one_line(name));
            assert_eq!(back["allocation_size_histogram"], serde_json::json!([]));
        }
    }
}
