//! `heapray merge`

use std::path::PathBuf;

use heapray_report::memray::{Version, write_aggregated};
use heapray_report::views::{agree_on_names, merged};

use crate::context::Context;
use crate::contexts::{ByArgs, WhereArgs};
use crate::failure::Failure;
use crate::input::{Capture, Passes};
use crate::output::OutputArgs;

/// Add up captures of several processes, such as the replicas of one job, into one aggregated capture.
///
/// Call sites are the same if thread name, function and call stack are. The result opens in every command here, and in
/// memray's.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The captures, two or more.
    #[arg(value_name = "FILE", required = true, num_args = 2..)]
    captures: Vec<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    contexts: WhereArgs,
    #[command(flatten)]
    by: ByArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self
            .output
            .or_beside(&self.captures[0], "merged", "bin")?
            .for_binary()?;
        let mut reports = Vec::with_capacity(self.captures.len());
        for path in &self.captures {
            reports.push(Capture::read(path, Passes::One, context)?.report);
        }
        agree_on_names(&mut reports);
        let mut merged = merged(&reports);
        let name = "the captures together";
        self.contexts.check(&merged, name)?;
        self.by.check(&merged, name)?;
        self.contexts.apply(&mut merged);
        self.by.apply(&mut merged);
        out.write(context, |out| write_aggregated(&merged, Version::V13, out))
    }
}
