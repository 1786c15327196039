//! `heapray summary`

use std::path::PathBuf;

use heapray_report::formats::{Format, Options as FormatOptions};
use heapray_report::texts::{self, SortColumn};

use crate::context::Context;
use crate::failure::Failure;
use crate::input::Capture;
use crate::output::OutputArgs;
use crate::selection::{PartArgs, SideArgs, UnitArgs};

/// Print what each function allocated, by itself and with all that it called.
///
/// With --json: heapray's own JSON of the whole report.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// The column that orders it: 1 total, 2 total %, 3 own, 4 own %, 5 allocations.
    #[arg(long, short, value_name = "COLUMN", default_value = "1")]
    sort_column: SortColumn,
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
            sort_column: self.sort_column,
            max_rows: self.max_rows,
            ..context.text_options(&out)
        };
        out.write(context, |mut out| {
            texts::summary(report, &options, &mut out)
        })
    }
}
