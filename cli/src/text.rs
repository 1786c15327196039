//! Common parts of `table`, `tree` and `summary`: the capture, the selection, and the output.

use std::io::{self, Write};
use std::path::PathBuf;

use heapray_report::Report;
use heapray_report::formats::{Format, Options as FormatOptions};
use heapray_report::texts;

use crate::context::Context;
use crate::failure::Failure;
use crate::output::OutputArgs;
use crate::selection::{NamesArgs, PartArgs, SideArgs, UnitArgs};

#[derive(Debug, clap::Args)]
pub(crate) struct TextArgs {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    #[command(flatten)]
    unit: UnitArgs,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    side: SideArgs,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    part: PartArgs,
}

impl TextArgs {
    /// Reads the capture, turns its report with `order`, and writes the result of `text` with the options of `choose`, or
    /// JSON if that is requested.
    pub(crate) fn write(
        &self,
        context: &mut Context,
        order: impl FnOnce(Report) -> Report,
        choose: impl FnOnce(&mut texts::Options),
        text: impl FnOnce(&Report, &texts::Options, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        let out = self.output.or_stdout()?;
        let capture = self
            .part
            .read(&self.capture, &self.side, self.names, context);
        let mut capture = capture?;
        self.names.apply(&mut capture.report);
        let report = order(capture.report);
        if context.json() {
            let options = FormatOptions::default();
            return out.write(context, |mut out| {
                Format::Json.write(&report, &options, &mut out)
            });
        }
        let mut options = texts::Options {
            measure: self.side.measure(),
            unit: self.unit.unit(),
            ..context.text_options(&out)
        };
        choose(&mut options);
        out.write(context, |out| text(&report, &options, out))
    }
}
