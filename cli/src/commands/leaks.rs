//! `heapray leaks`

use std::path::PathBuf;

use heapray_report::formats::json;
use heapray_report::texts;

use crate::context::Context;
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::output::OutputArgs;
use crate::selection::NamesArgs;

/// Number of leaks in a text.
const SHOWN: usize = 5;

/// Name the lines that probably leak, the likeliest first, with the reasons for and against.
///
/// A line leaks if it keeps more the more the program does. The capture must have times: a capture of heapray, or one of
/// memray that has every event. `--leaks` of other commands is another thing: all memory that is still live at the end.
///
/// With --json: an object whose list `candidates` is empty if nothing leaks. It has the key `unknown` if that cannot be told.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// Number of lines that are shown; the others are counted. The default is 5, and all with --json.
    #[arg(long, short, value_name = "N")]
    num_largest: Option<usize>,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self.output.or_stdout()?;
        let mut capture = Capture::read(&self.capture, Passes::One, context)?;
        self.names.apply(&mut capture.report);
        if context.json() {
            return out.write(context, |mut out| {
                json::leaks(&capture.report, self.num_largest, &mut out)?;
                out.write_all(b"\n")
            });
        }
        let options = texts::Options {
            max_rows: Some(self.num_largest.unwrap_or(SHOWN)),
            ..context.text_options(&out)
        };
        out.write(context, |mut out| {
            texts::leaks(&capture.report, &options, &mut out)
        })
    }
}
