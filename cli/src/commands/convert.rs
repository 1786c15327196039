//! `heapray convert`

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use heapray_report::Report;
use heapray_report::formats::pprof::{self, Labels};
use heapray_report::formats::{Format, Options};
use heapray_report::memray::write_aggregated;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::OutputArgs;
use crate::parquet::{self, Place};
use crate::selection::{NamesArgs, OrderArgs, PartArgs, SideArgs, UnitArgs, VersionArgs};

/// Write a capture in the format of another tool.
///
/// Text goes to standard output with `-o -`. Otherwise the file is named as `memray transform` names it,
/// `memray-FORMAT-NAME`, beside the capture.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The format.
    #[arg(value_enum)]
    format: FormatArg,
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// Keep threads apart if the format can.
    #[arg(long)]
    split_threads: bool,
    /// Collapsed stacks and SVG: name file and line of each frame.
    #[arg(long)]
    lines: bool,
    /// SVG: the root at the top.
    #[arg(long)]
    icicle: bool,
    /// pprof: label each sample with its thread, the function that allocated, the labels of its context, or all:
    /// `thread,allocator,context`. A capture of `heapray fleet --merge` has a label `replica` beside that of the thread. Without
    /// labels, call sites with the same call stack are one sample.
    #[arg(
        long,
        value_name = "LABELS",
        default_value = "",
        hide_default_value = true
    )]
    labels: Labels,
    /// pprof: at most N samples, and at most 4 MiB before compression; smaller samples are summed up by root. 0 writes
    /// everything. Pyroscope takes 16000.
    #[arg(long, value_name = "N", default_value_t = 0)]
    limit: u32,
    /// SVG and speedscope: the title.
    #[arg(long)]
    title: Option<String>,
    /// Parquet: the service in each row. The default is the program's name.
    #[arg(long, value_name = "NAME")]
    service: Option<String>,
    /// Parquet: the replica in each row. The default is that of the thread in a capture of `heapray fleet --merge`, or else the
    /// process's number.
    #[arg(long, value_name = "NAME")]
    replica: Option<String>,
    /// Parquet: a label in each row, such as `region=eu`. May be given several times.
    #[arg(long = "row-label", value_name = "KEY=VALUE", value_parser = label)]
    row_labels: Vec<(String, String)>,
    #[command(flatten)]
    version: VersionArgs,
    #[command(flatten)]
    unit: UnitArgs,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    side: SideArgs,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    part: PartArgs,
}

/// A format of the report's, or one of the command's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FormatArg {
    Of(Format),
    Parquet,
}

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: std::sync::LazyLock<Vec<FormatArg>> = std::sync::LazyLock::new(|| {
            let of_reports = Format::ALL.iter().copied().map(FormatArg::Of);
            of_reports.chain([FormatArg::Parquet]).collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()).help(self.description()))
    }
}

impl FormatArg {
    fn name(self) -> &'static str {
        match self {
            FormatArg::Of(format) => format.name(),
            FormatArg::Parquet => "parquet",
        }
    }

    fn description(self) -> &'static str {
        match self {
            FormatArg::Of(format) => format.description(),
            FormatArg::Parquet => "a row for each call site, for DuckDB, Spark and other databases",
        }
    }

    fn extension(self) -> &'static str {
        match self {
            FormatArg::Of(format) => format.extension(),
            FormatArg::Parquet => "parquet",
        }
    }

    fn is_text(self) -> bool {
        matches!(self, FormatArg::Of(format) if format.is_text())
    }
}

/// Reads `KEY=VALUE`.
fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("a label is written KEY=VALUE".to_owned()),
    }
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let format = self.format;
        let extension = format.extension();
        let mut out = self
            .output
            .or_beside(&self.capture, format.name(), extension)?;
        if !format.is_text() {
            out = out.for_binary()?;
        }
        let capture = self
            .part
            .read(&self.capture, &self.side, self.names, context);
        let mut capture = capture?;
        // A capture has both.
        if format != FormatArg::Of(Format::Memray) {
            self.names.apply(&mut capture.report);
        }
        // The writer of pictures reverses them by itself, and titles them so.
        let report = match format {
            FormatArg::Of(Format::Svg) => capture.report,
            _ => self.order.apply(capture.report),
        };
        let options = Options {
            measure: self.side.measure(),
            unit: self.unit.unit(),
            by_thread: self.split_threads,
            lines: self.lines,
            title: self.title.clone(),
            inverted: self.icicle,
            reversed: self.order.inverted,
            pprof: pprof::Options {
                labels: self.labels,
                limit: self.limit,
                ..pprof::Options::default()
            },
        };
        out.write(context, |mut out| match format {
            FormatArg::Parquet => parquet::write(&report, &self.place(&report), out),
            FormatArg::Of(Format::Memray) => write_aggregated(&report, self.version.version(), out),
            FormatArg::Of(format) => format.write(&report, &options, &mut out),
        })
    }

    /// Returns what is the same in all rows of a table.
    fn place(&self, report: &Report) -> Place {
        let program = || report.about.program().to_owned();
        Place {
            service: self.service.clone().unwrap_or_else(program),
            replica: self.replica.clone(),
            labels: self.row_labels.clone(),
        }
    }
}
