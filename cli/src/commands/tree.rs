//! `heapray tree`

use std::path::PathBuf;

use heapray_report::formats::{Format, Options as FormatOptions};
use heapray_report::texts;

use crate::context::Context;
use crate::failure::Failure;
use crate::input::Capture;
use crate::output::OutputArgs;
use crate::selection::{OrderArgs, PartArgs, SideArgs, UnitArgs};

/// Print the tree of calls that allocated, the largest branch first.
///
/// With --json: heapray's own JSON of the whole report.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// How many of the biggest call sites are shown; the rest is summed up.
    #[arg(long, short, value_name = "N", default_value_t = 200)]
    biggest_allocs: usize,
    /// Give every frame a line, those with nothing beside them too.
    #[arg(long)]
    all_frames: bool,
    #[command(flatten)]
    unit: UnitArgs,
    #[command(flatten)]
    order: OrderArgs,
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
        let report = self.order.apply(capture.report);
        if context.json() {
            let options = FormatOptions::default();
            return out.write(context, |mut out| {
                Format::Json.write(&report, &options, &mut out)
            });
        }
        let options = texts::Options {
            measure: self.side.measure(),
            unit: self.unit.unit(),
            biggest_allocs: self.biggest_allocs,
            fold_runs: !self.all_frames,
            ..context.text_options(&out)
        };
        out.write(context, |mut out| texts::tree(&report, &options, &mut out))
    }
}
