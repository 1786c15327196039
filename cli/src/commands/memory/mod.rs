//! `heapray memory`: memory over time, of any program, in mprof's files.

mod plot;
mod run;

use clap::Subcommand;

use crate::context::Context;
use crate::failure::Failure;

/// Memory over time, of any program: records and draws it, in the files of `mprof` (memory_profiler).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Run(run::Args),
    Plot(plot::Args),
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        match &self.command {
            Command::Run(args) => args.run(context),
            Command::Plot(args) => args.run(context),
        }
    }
}
