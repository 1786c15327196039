//! `heapray summary`

use heapray_report::texts::{self, SortColumn};

use crate::context::Context;
use crate::failure::Failure;
use crate::text::TextArgs;

/// Print the allocations of each function, by itself and with its callees.
///
/// With --json: heapray's own JSON of the whole report.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The column that orders the rows: 1 total, 2 total %, 3 own, 4 own %, 5 allocations.
    #[arg(long, short, value_name = "COLUMN", default_value = "1")]
    sort_column: SortColumn,
    /// Number of rows that are shown; the others are counted.
    #[arg(long, short = 'r', value_name = "N")]
    max_rows: Option<usize>,
    #[command(flatten)]
    text: TextArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let choose = |options: &mut texts::Options| {
            options.sort_column = self.sort_column;
            options.max_rows = self.max_rows;
        };
        self.text.write(
            context,
            |report| report,
            choose,
            |report, options, mut out| texts::summary(report, options, &mut out),
        )
    }
}
