//! The reports of replicas: the worst compared with the median, and all of them as one.

use std::io::Seek;

use heapray_report::Report;
use heapray_report::memray::{self, MemoryLimit};
use heapray_report::model::FrameId;
use heapray_report::views::{Diff, Measure, Unit, agree_on_names, diff};

use super::figures::Replica;
use crate::failure::Failure;
use crate::remote::{Remote, Session, copy, too_large};
use crate::selection::NamesArgs;

/// Lines of a difference that are shown.
const LINES: usize = 5;
/// Smallest share of a line that is shown.
const LEAST_SHARE: f64 = 0.01;

/// How the replica that holds the most differs from the one in the middle.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) worst: String,
    pub(crate) median: String,
    pub(crate) worst_live: u64,
    pub(crate) median_live: u64,
    /// The lines that hold more, the most first.
    pub(crate) lines: Vec<Grown>,
}

/// A line that holds more in the worst replica.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Grown {
    pub(crate) function: String,
    pub(crate) file: String,
    pub(crate) line: u32,
    /// Bytes that it holds more.
    pub(crate) more: u64,
    /// Its part of all that the worst holds more, from 0 to 1.
    pub(crate) share: f64,
}

impl Comparison {
    /// Compares two reports. Both get the names that are shown.
    pub(crate) fn of([median, worst]: [(&Replica, Report); 2], names: NamesArgs) -> Comparison {
        let mut reports = [median.1, worst.1];
        names.apply_to_all(&mut reports);
        let diff = diff(&reports[0], &reports[1]);
        let live = |sums| Unit::Bytes.of(Measure::Live.of_sums(sums));
        Comparison {
            worst: worst.0.name.clone(),
            median: median.0.name.clone(),
            worst_live: live(&diff.total.after),
            median_live: live(&diff.total.before),
            lines: grown(&diff),
        }
    }

    /// Returns how many times the median the worst holds.
    pub(crate) fn times(&self) -> f64 {
        self.worst_live as f64 / (self.median_live.max(1)) as f64
    }
}

fn grown(diff: &Diff) -> Vec<Grown> {
    let of = |growth: i128| u64::try_from(growth).ok().filter(|more| *more > 0);
    let all = of(diff.total.growth(Measure::Live, Unit::Bytes));
    let mut lines: Vec<Grown> = diff
        .by_own_site
        .iter()
        .filter_map(|(frame, change)| {
            let more = of(change.growth(Measure::Live, Unit::Bytes))?;
            let frame = frame.and_then(|FrameId(frame)| diff.tables.frames.get(frame as usize));
            let strings = &diff.tables.strings;
            Some(Grown {
                function: frame
                    .map_or("(no call stack)", |frame| strings.get(frame.function))
                    .to_owned(),
                file: frame.map_or("", |frame| strings.get(frame.file)).to_owned(),
                line: frame.map_or(0, |frame| frame.line),
                more,
                // Other lines may hold less.
                share: (more as f64 / all? as f64).min(1.0),
            })
        })
        .collect();
    lines.sort_by_key(|line| std::cmp::Reverse(line.more));
    lines.retain(|line| line.share >= LEAST_SHARE);
    lines.truncate(LINES);
    lines
}

/// Downloads the report of a replica: of the session that runs, or else of the one that ended last.
pub(crate) fn report(
    replica: &Replica,
    remote: &Remote,
    max_size: u64,
    memory: MemoryLimit,
) -> Result<Report, Failure> {
    let name = &replica.name;
    let failed = |error| Failure::io(format!("{name}: cannot download its report"), error);
    let session = if replica.is_running() {
        Session::Running
    } else {
        Session::Last
    };
    let (length, body) = remote.report(session)?;
    if length.is_some_and(|length| length > max_size) {
        return Err(failed(too_large(max_size)));
    }
    let mut file = tempfile::tempfile().map_err(failed)?;
    copy(body, &mut file, max_size).map_err(failed)?;
    file.rewind().map_err(failed)?;
    let capture = memray::read_file_within(file, memory);
    let capture = capture.map_err(|error| Failure::reading(name, error))?;
    if !capture.complete {
        return Err(Failure::Capture {
            name: name.clone(),
            problem: capture
                .report
                .conditions
                .notes
                .last()
                .cloned()
                .unwrap_or_default(),
        });
    }
    Ok(capture.report)
}

/// Returns all reports as one, in which each thread's name begins with that of its replica.
pub(crate) fn merged(reports: Vec<(String, Report)>) -> Report {
    let label = |(name, mut report): (String, Report)| {
        for thread in &mut report.threads {
            let of = report.strings.get(thread.name);
            let labelled = if of.is_empty() {
                name.clone()
            } else {
                format!("{name}/{of}")
            };
            thread.name = report.strings.intern(&labelled);
        }
        report
    };
    let mut reports: Vec<Report> = reports.into_iter().map(label).collect();
    agree_on_names(&mut reports);
    heapray_report::views::merged(&reports)
}
