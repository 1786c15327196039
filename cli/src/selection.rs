//! Options that commands share: the measure, the part of a capture, and the form of its call stacks.

use std::path::Path;

use clap::{Args, ValueEnum};
use heapray_report::Report;
use heapray_report::memray::Version;
use heapray_report::model::Allocator;
use heapray_report::views::{
    Filter, Fold, Measure, Names, Unit, agree_on_names, at_moment, filtered, folded, in_range,
    inverted, named, readable, temporary,
};

use crate::context::Context;
use crate::contexts::{ByArgs, WhereArgs};
use crate::failure::Failure;
use crate::input::{Capture, Passes};

/// Measure that is shown. The default is the high-water mark.
#[derive(Debug, Clone, Default, Args)]
#[group(id = "measure", multiple = false)]
pub(crate) struct SideArgs {
    /// Show the live memory at the end, instead of the high-water mark.
    #[arg(long, group = "measure")]
    leaks: bool,
    /// Show everything that was ever allocated.
    #[arg(long, group = "measure")]
    allocated: bool,
    /// Show blocks that their thread freed with at most one other allocation of its own in between.
    #[arg(long, group = "measure")]
    temporary_allocations: bool,
    /// The same, with at most N other allocations in between.
    #[arg(long, group = "measure", value_name = "N")]
    temporary_allocation_threshold: Option<usize>,
}

impl SideArgs {
    /// Returns the requested measure, if there is one.
    pub(crate) fn chosen(&self) -> Option<Measure> {
        let temporary = self.temporary_allocations || self.temporary_allocation_threshold.is_some();
        if self.leaks {
            Some(Measure::Live)
        } else if self.allocated {
            Some(Measure::Allocated)
        } else if temporary {
            Some(Measure::Temporary)
        } else {
            None
        }
    }

    /// Returns the measure that is shown.
    pub(crate) fn measure(&self) -> Measure {
        self.chosen().unwrap_or_default()
    }

    /// Returns the requested measure in the page's spelling, or nothing to leave the choice to the page, which shows live
    /// memory.
    pub(crate) fn opens_at(&self) -> Option<&'static str> {
        match self.chosen()? {
            Measure::HighWater => Some("view=peak"),
            Measure::Live => Some("view=live"),
            Measure::Allocated => Some("view=total"),
            Measure::Temporary => Some("view=temporary"),
            _ => None,
        }
    }

    /// Returns the threshold, if it is not the default of every report.
    fn threshold(&self) -> Option<usize> {
        self.temporary_allocation_threshold.filter(|&n| n != 1)
    }
}

/// Part of the capture that is shown, and its form.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "A part of it")]
pub(crate) struct PartArgs {
    /// Only this thread, by name or number; may be repeated.
    #[arg(long, value_name = "NAME")]
    thread: Vec<String>,
    /// Only memory that was allocated with this function, such as `malloc` or `mmap`; may be repeated.
    #[arg(long, value_name = "FUNCTION", value_parser = allocator)]
    allocator: Vec<Allocator>,
    /// Only call stacks with a frame of this package; may be repeated.
    #[arg(long, value_name = "NAME")]
    package: Vec<String>,
    /// Only call stacks with this text in a function or file name, in upper or lower case.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    matching: String,
    /// Join uninteresting frames into one.
    #[arg(long, value_enum, value_name = "WHOSE")]
    fold: Option<FoldArg>,
    /// Show call stacks in the form of the source code: without closures and the plumbing of `async`.
    #[arg(long)]
    readable: bool,
    #[command(flatten)]
    contexts: WhereArgs,
    #[command(flatten)]
    by: ByArgs,
    /// Only allocations from this moment on, such as `1.5s` or `300ms` after the start.
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<u64>,
    /// Only allocations before this moment.
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<u64>,
    /// Only memory that was still live at this moment: the end of the capture, with --since or --until.
    #[arg(long, value_name = "TIME", value_parser = time)]
    live_at: Option<u64>,
}

/// Frames that are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FoldArg {
    /// The standard library, async runtimes and web frameworks.
    Runtime,
    /// Every package that is not the service's own.
    Packages,
    /// Everything that is not the service's own code.
    Others,
}

impl From<FoldArg> for Fold {
    fn from(fold: FoldArg) -> Fold {
        match fold {
            FoldArg::Runtime => Fold::Runtime,
            FoldArg::Packages => Fold::Packages,
            FoldArg::Others => Fold::AllButOwn,
        }
    }
}

/// `--full-names`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct NamesArgs {
    /// Show the full names of functions, with generic arguments. Without this option names are short, and call sites that
    /// differ only in type parameters are joined.
    #[arg(long)]
    full_names: bool,
}

impl NamesArgs {
    /// Returns the requested names in the page's spelling, or nothing if the page opens with them by itself.
    pub(crate) fn opens_at(self) -> Option<&'static str> {
        self.full_names.then_some("names=full")
    }

    /// Gives `report` the full names if they are requested. The capture's events still fit it.
    pub(crate) fn spell_out(self, report: &mut Report) {
        if self.full_names {
            self.apply(report);
        }
    }

    /// Gives `report` the requested names.
    pub(crate) fn apply(self, report: &mut Report) {
        let names = if self.full_names {
            Names::Full
        } else {
            Names::Plain
        };
        if let Some(renamed) = named(report, names) {
            *report = renamed;
        }
    }

    /// Does what [`apply`](Self::apply) does, for reports that are compared.
    pub(crate) fn apply_to_all(self, reports: &mut [Report]) {
        if !self.full_names {
            agree_on_names(reports);
        }
        for report in reports {
            self.apply(report);
        }
    }
}

/// `--inverted`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct OrderArgs {
    /// Reverse call stacks: leaves first, with their callers below.
    #[arg(long)]
    pub(crate) inverted: bool,
}

/// `--by-count`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct UnitArgs {
    /// Order by the number of blocks instead of bytes.
    #[arg(long)]
    by_count: bool,
}

impl UnitArgs {
    pub(crate) fn unit(self) -> Unit {
        if self.by_count {
            Unit::Count
        } else {
            Unit::Bytes
        }
    }
}

/// `--format-version`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct VersionArgs {
    /// The version of memray's format, 13 for memray 1.20 and 12 for memray 1.19.
    #[arg(long, value_name = "N", default_value_t = 13, value_parser = clap::value_parser!(i32).range(12..=13))]
    format_version: i32,
}

impl VersionArgs {
    pub(crate) fn version(self) -> Version {
        Version::from_number(self.format_version).unwrap_or_default()
    }
}

impl PartArgs {
    /// Reads the capture at `path`, and reduces it to the requested part. Full names are as `names` says; plain ones are
    /// left to the caller, which may want both.
    pub(crate) fn read(
        &self,
        path: &Path,
        side: &SideArgs,
        names: NamesArgs,
        context: &mut Context,
    ) -> Result<Capture, Failure> {
        let mut capture = Capture::read(path, self.passes(side), context)?;
        names.spell_out(&mut capture.report);
        self.apply(&mut capture, side, context)?;
        Ok(capture)
    }

    /// Returns how often the capture must be read for the request.
    pub(crate) fn passes(&self, side: &SideArgs) -> Passes {
        if self.is_timed() || side.threshold().is_some() {
            Passes::Two
        } else {
            Passes::One
        }
    }

    fn is_timed(&self) -> bool {
        self.since.is_some() || self.until.is_some() || self.live_at.is_some()
    }

    /// Reduces the capture's report to the requested part.
    ///
    /// For a time range it is known what was allocated in it and what was still live, but not what was temporary.
    pub(crate) fn apply(
        &self,
        capture: &mut Capture,
        side: &SideArgs,
        context: &mut Context,
    ) -> Result<(), Failure> {
        if self.is_timed() && side.measure() == Measure::Temporary {
            return Err(Failure::Usage(
                "temporary allocations are counted over the whole capture: not with --since, --until or --live-at".into(),
            ));
        }
        if let Some(threshold) = side.threshold() {
            count_temporary(capture, threshold, context)?;
        }
        if self.is_timed() {
            self.cut_time(capture, context)?;
        }
        let filter = Filter {
            threads: self.thread.clone(),
            allocators: self.allocator.clone(),
            packages: self.package.clone(),
            text: self.matching.clone(),
            contexts: Vec::new(),
        };
        self.contexts.check(&capture.report, &capture.name)?;
        self.by.check(&capture.report, &capture.name)?;
        let report = &mut capture.report;
        self.contexts.apply(report);
        if !filter.is_empty() {
            *report = filtered(report, &filter);
        }
        if let Some(fold) = self.fold {
            *report = folded(report, fold.into());
        }
        if self.readable {
            *report = readable(report);
        }
        self.by.apply(report);
        Ok(())
    }

    fn cut_time(&self, capture: &mut Capture, context: &mut Context) -> Result<(), Failure> {
        let Some(mut events) = capture.events(context)? else {
            return Err(no_events(capture, "--since, --until and --live-at"));
        };
        let report = &capture.report;
        let live_at = self.live_at.unwrap_or(u64::MAX);
        let part = if self.since.is_none() && self.until.is_none() {
            at_moment(report, &mut events, live_at, context.memory_limit())
        } else {
            let since = self.since.unwrap_or(0);
            in_range(
                report,
                &mut events,
                since,
                self.until.unwrap_or(u64::MAX),
                live_at,
                context.memory_limit(),
            )
        };
        capture.report = part.map_err(|error| capture.failed(error))?;
        capture.followed(&events, context);
        Ok(())
    }
}

impl OrderArgs {
    pub(crate) fn apply(self, report: Report) -> Report {
        if self.inverted {
            inverted(&report)
        } else {
            report
        }
    }
}

fn count_temporary(
    capture: &mut Capture,
    threshold: usize,
    context: &mut Context,
) -> Result<(), Failure> {
    let Some(mut events) = capture.events(context)? else {
        return Err(no_events(capture, "--temporary-allocation-threshold"));
    };
    let counted = temporary(&capture.report, &mut events, threshold);
    capture.report = counted.map_err(|error| capture.failed(error))?;
    capture.followed(&events, context);
    Ok(())
}

fn no_events(capture: &Capture, option: &str) -> Failure {
    Failure::Usage(format!(
        "{}: an aggregated capture has sums, but no single events, which {option} needs",
        capture.name
    ))
}

/// Reads `KEY=VALUE`.
fn allocator(name: &str) -> Result<Allocator, String> {
    let gets = || Allocator::ALL.into_iter().filter(|a| !a.is_free());
    gets()
        .find(|a| a.name().eq_ignore_ascii_case(name))
        .ok_or_else(|| {
            let names: Vec<String> = gets().map(|a| a.name().to_lowercase()).collect();
            format!("there are {}", names.join(", "))
        })
}

/// Parses `250ms`, `1.5s`, `3m` or `2h` to milliseconds; a bare number means seconds.
fn time(text: &str) -> Result<u64, String> {
    let wrong = || "a time is a number followed by ms, s, m or h, such as 1.5s".to_owned();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 1.0,
        "s" | "" => 1e3,
        "m" => 60e3,
        "h" => 3600e3,
        _ => return Err(wrong()),
    };
    let number: f64 = digits.parse().map_err(|_| wrong())?;
    let ms = number * unit;
    // The negated form also refuses NaN.
    if !(0.0..=1e15).contains(&ms) {
        return Err(wrong());
    }
    Ok(ms.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_every_unit_and_nonsense_is_refused() {
        for (text, ms) in [
            ("250ms", 250),
            ("1.5s", 1500),
            ("2", 2000),
            ("3m", 180_000),
            ("1h", 3_600_000),
        ] {
            assert_eq!(time(text), Ok(ms));
        }
        for text in ["", "s", "-1s", "NaN", "inf", "1 day", "1e300s", "é"] {
            assert!(time(text).is_err(), "{text}");
        }
    }
}
