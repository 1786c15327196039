//! `heapray table`

use std::path::PathBuf;

use heapray_report::formats::{Format, Options as FormatOptions};
use heapray_report::texts;

use crate::context::Context;
use crate::failure::Failure;
use crate::input::Capture;
use crate::output::OutputArgs;
use crate::selection::{PartArgs, SideArgs, UnitArgs};

/// Print the places that allocated, the largest first.
///
/// `-o FILE` writes the same table to a file. The page of `heapray flamegraph` has it too, to sort and search; CSV comes
/// from `heapray convert csv`. With --json: heapray's own JSON of the whole report.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// Keep threads apart, with a column for them.
    #[arg(long)]
    split_threads: bool,
    /// How many rows are shown; the rest is summed up.
    #[arg(long, short = 'r', value_name = "N")]
    max_rows: Option<usize>,
    #[command(flatten)]
    unit: UnitArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    side: SideArgs,
    #[command(flatten)]
    part: PartArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self.output.or_stdout()?;
        let passes = self.part.passes(&self.side);
        let mut capture = Capture::read(&self.capture, passes, context)?;
        self.part.apply(&mut capture, &self.side, context)?;
        let report = &capture.report;
        if context.json() {
            let options = FormatOptions::default();
            return out.write(context, |mut out| {
                Format::Json.write(report, &options, &mut out)
            });
        }
        let options = texts::Options {
            measure: self.side.measure(),
            unit: self.unit.unit(),
            by_thread: self.split_threads,
            max_rows: self.max_rows,
            ..context.text_options(&out)
        };
        out.write(context, |mut out| texts::table(report, &options, &mut out))
    }
}
