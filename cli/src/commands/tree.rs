//! `heapray tree`

use heapray_report::texts;

use crate::context::Context;
use crate::failure::Failure;
use crate::selection::OrderArgs;
use crate::text::TextArgs;

/// Print the tree of calls that allocated, the largest branch first.
///
/// With --json: heapray's own JSON of the whole report.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Number of the biggest call sites that are shown; the rest is summed up.
    #[arg(long, short, value_name = "N", default_value_t = 200)]
    biggest_allocs: usize,
    /// Give every frame its own line, also frames without siblings.
    #[arg(long)]
    all_frames: bool,
    #[command(flatten)]
    order: OrderArgs,
    #[command(flatten)]
    text: TextArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let choose = |options: &mut texts::Options| {
            options.biggest_allocs = self.biggest_allocs;
            options.fold_runs = !self.all_frames;
        };
        self.text.write(
            context,
            |report| self.order.apply(report),
            choose,
            |report, options, mut out| texts::tree(report, options, &mut out),
        )
    }
}
