//! `heapray stats`

use std::path::PathBuf;

use heapray_report::stats::{self, JsonOptions};
use heapray_report::texts;

use crate::context::Context;
use crate::contexts::{WhereArgs, check_key};
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::output::OutputArgs;
use crate::selection::NamesArgs;

/// Print the statistics of a capture: those of `memray stats`, then the live memory.
///
/// With --json: the keys and values of `memray stats --json`, and the additional key `heapray`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The capture.
    #[arg(value_name = "FILE")]
    capture: PathBuf,
    /// Number of places, threads and modules in each list.
    #[arg(long, short, value_name = "N", default_value_t = 5)]
    num_largest: usize,
    /// Print what each value of this key holds, such as each `route` or `tenant`, instead.
    #[arg(long, value_name = "KEY")]
    by: Option<String>,
    #[command(flatten)]
    contexts: WhereArgs,
    #[command(flatten)]
    names: NamesArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self.output.or_stdout()?;
        let context_is_json = context.json();
        let mut capture = Capture::read(&self.capture, Passes::One, context)?;
        self.contexts.check(&capture.report, &capture.name)?;
        self.contexts.apply(&mut capture.report);
        if let Some(key) = &self.by {
            check_key(&capture.report, &capture.name, key)?;
            let report = &capture.report;
            return out.write(context, |mut out| match context_is_json {
                true => texts::contexts_json(report, key, &mut out),
                false => texts::contexts(report, key, &mut out),
            });
        }
        self.names.apply(&mut capture.report);
        if context.json() {
            let options = JsonOptions {
                num_largest: self.num_largest,
                facts: Some(capture.facts),
            };
            return out.write(context, |mut out| {
                stats::json(&capture.report, &options, &mut out)?;
                out.write_all(b"\n")
            });
        }
        let text = stats::text_of_largest(&capture.report, self.num_largest);
        out.write(context, |out| out.write_all(text.as_bytes()))
    }
}
