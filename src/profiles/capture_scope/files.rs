//! The files of a scope in its directory.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use heapray_report::formats::{Format, Options};
use heapray_report::memray::{Version, write_aggregated};
use heapray_report::page::flamegraph;
use heapray_report::peak::{self, Index, Order};
use heapray_report::views::{Names, below, joined, named};

use crate::collector::snapshot::Snapshot;
use crate::os::calendar::rfc3339;
use crate::profiler::store::Draft;
use crate::profiler::{Blocks, SamplingStatus};
use crate::symbolize::{self, NameMode, ReportOptions};

const INDEX: &str = "index.html";
const SVG: &str = "peak-memory.svg";
const REVERSED: &str = "peak-memory-reversed.svg";
const FOLDED: &str = "peak-memory.folded";
const REPORT: &str = "memray-report.bin";
const PAGE: &str = "memray-flamegraph.html";

/// Part of the names of the functions that run a scope.
const OWN_FRAMES: &str = "heapray::profiles::capture_scope::";

/// Files and sums of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CaptureScopeReport {
    /// Start of the scope.
    pub started: SystemTime,
    /// End of the scope.
    pub ended: SystemTime,
    /// Everything that was allocated in the scope.
    pub allocated: Blocks,
    /// Memory that was allocated in the scope and live at its end.
    pub live: Blocks,
    /// Live memory at the scope's high-water mark.
    pub high_water: Blocks,
    /// Sampling of the scope, if it was sampled: the sums are estimates then.
    pub sampling: Option<SamplingStatus>,
    /// Events that were lost because the collector could not keep up. If it is not 0, all sums are too low.
    pub lost_events: u64,
    /// The page that shows both flame graphs.
    pub index: PathBuf,
    /// The flame graph.
    pub svg: PathBuf,
    /// The flame graph with the leaves first.
    pub reversed_svg: PathBuf,
    /// Collapsed stacks.
    pub collapsed: PathBuf,
    /// memray's capture file.
    pub report: PathBuf,
    /// heapray's own page.
    pub flamegraph: PathBuf,
}

/// Writes all files. Each file is written whole or not at all. The index comes last.
pub(super) fn write(dir: &Path, snapshot: &Snapshot) -> io::Result<CaptureScopeReport> {
    fs::create_dir_all(dir)?;
    let options = ReportOptions {
        names: NameMode::Both,
        by_address: true,
        ..ReportOptions::default()
    };
    let both = symbolize::report(snapshot, &options).report;
    let mut draft = Draft::new(dir)?;
    write_aggregated(&both, Version::V13, &mut draft)?;
    draft.place(dir, REPORT)?;
    let both = joined(&both).map_or(both, |joined| joined.report);
    let mut draft = Draft::new(dir)?;
    flamegraph(&both, &mut draft)?;
    draft.place(dir, PAGE)?;
    // What led to the scope is the same in every stack, and not of interest here.
    let report = named(&both, Names::Plain).unwrap_or(both);
    let report = below(&report, |function| function.contains(OWN_FRAMES));
    let mut draft = Draft::new(dir)?;
    let options = Options {
        lines: true,
        ..Options::default()
    };
    Format::Collapsed.write(&report, &options, &mut draft)?;
    draft.place(dir, FOLDED)?;
    for (name, order) in [(SVG, Order::RootFirst), (REVERSED, Order::LeafFirst)] {
        let mut draft = Draft::new(dir)?;
        peak::svg(&report, order, &mut draft)?;
        draft.place(dir, name)?;
    }
    let mut draft = Draft::new(dir)?;
    let name = dir.file_name().unwrap_or(dir.as_os_str());
    let index = Index {
        report: &report,
        name: &name.to_string_lossy(),
        page: PAGE,
        date: &rfc3339(snapshot.started),
        svg: SVG,
        reversed: REVERSED,
        files: &[
            (
                PAGE,
                "everything: tables, threads, lifetimes, memory over time",
            ),
            (
                REPORT,
                "for memray from PyPI, and for heapray’s own commands",
            ),
            (
                FOLDED,
                "collapsed stacks, for flamegraph.pl, inferno and speedscope",
            ),
        ],
    };
    index.write(&mut draft)?;
    draft.flush()?;
    draft.place(dir, INDEX)?;
    let totals = &snapshot.totals;
    Ok(CaptureScopeReport {
        started: snapshot.started,
        ended: snapshot.taken,
        allocated: Blocks::of(totals.allocated),
        live: Blocks::of(totals.live),
        high_water: Blocks::of(totals.high_water),
        sampling: snapshot.sampling.as_ref().map(SamplingStatus::of),
        lost_events: snapshot.lost_events,
        index: dir.join(INDEX),
        svg: dir.join(SVG),
        reversed_svg: dir.join(REVERSED),
        collapsed: dir.join(FOLDED),
        report: dir.join(REPORT),
        flamegraph: dir.join(PAGE),
    })
}
