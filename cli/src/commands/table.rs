//! `heapray table`

use heapray_report::texts;

use crate::context::Context;
use crate::failure::Failure;
use crate::text::TextArgs;

/// Print the call sites, the largest first.
///
/// `-o FILE` writes the same table to a file. The page of `heapray flamegraph` has the table too, with sorting and search;
/// `heapray convert csv` writes CSV. With --json: heapray's own JSON of the whole report.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep threads apart, with a column for them.
    #[arg(long)]
    split_threads: bool,
    /// Number of rows that are shown; the rest is summed up.
    #[arg(long, short = 'r', value_name = "N")]
    max_rows: Option<usize>,
    #[command(flatten)]
    text: TextArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let choose = |options: &mut texts::Options| {
            options.by_thread = self.split_threads;
            options.max_rows = self.max_rows;
        };
        self.text.write(
            context,
            |report| report,
            choose,
            |report, options, mut out| texts::table(report, options, &mut out),
        )
    }
}
