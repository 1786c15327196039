//! `heapray convert`

use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use heapray_report::formats::pprof::{self, Labels};
use heapray_report::formats::{Format, Options};
use heapray_report::memray::write_aggregated;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::OutputArgs;
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
    /// pprof: label each sample with its thread, with the function that allocated, or with both: `thread,allocator`. Without
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

/// Name of a format, as in the list of formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FormatArg(Format);

impl ValueEnum for FormatArg {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: std::sync::LazyLock<Vec<FormatArg>> =
            std::sync::LazyLock::new(|| Format::ALL.iter().copied().map(FormatArg).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.name()).help(self.0.description()))
    }
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let FormatArg(format) = self.format;
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
        if format != Format::Memray {
            self.names.apply(&mut capture.report);
        }
        // The writer of pictures reverses them by itself, and titles them so.
        let report = match format {
            Format::Svg => capture.report,
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
            Format::Memray => write_aggregated(&report, self.version.version(), out),
            format => format.write(&report, &options, &mut out),
        })
    }
}
