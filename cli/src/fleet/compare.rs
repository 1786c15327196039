//! The replica that holds the most, compared with the one in the middle.

use heapray_report::Report;
use heapray_report::model::FrameId;
use heapray_report::views::{Diff, Measure, Unit, diff};

use super::figures::Replica;
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
    /// Its part of what all such lines hold more, from 0 to 1: lines that hold less do not count against it.
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

    /// Returns how many times the median the worst holds. `None` if the median holds nothing.
    pub(crate) fn times(&self) -> Option<f64> {
        let times = self.worst_live as f64 / self.median_live as f64;
        (self.median_live > 0).then_some(times)
    }
}

fn grown(diff: &Diff) -> Vec<Grown> {
    let of = |growth: i128| u64::try_from(growth).ok().filter(|more| *more > 0);
    if of(diff.total.growth(Measure::Live, Unit::Bytes)).is_none() {
        return Vec::new();
    }
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
                share: 0.0,
            })
        })
        .collect();
    let all: f64 = lines.iter().map(|line| line.more as f64).sum();
    for line in &mut lines {
        line.share = line.more as f64 / all;
    }
    lines.sort_by_key(|line| std::cmp::Reverse(line.more));
    lines.retain(|line| line.share >= LEAST_SHARE);
    lines.truncate(LINES);
    lines
}
