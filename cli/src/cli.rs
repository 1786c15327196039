//! The commands, their help, and the exit codes in the help.

use clap::{Parser, Subcommand};

use crate::commands::{
    completions, convert, diff, fetch, flamegraph, fleet, info, leaks, man, memory, merge, recover,
    serve, stats, summary, symbolize, table, tree, upload_symbols,
};
use crate::context::Global;

/// Text after every help text.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0   done
  1   something else failed: a file that is not there or would be overwritten, the disk, the network,
      the memory limit
  2   a capture is damaged, cut short, of a version that is not read, or none at all; of one that is cut short,
      what could be read is reported all the same
  64  the command line makes no sense
`memory run` exits with the code of the program that it runs.";

/// Reports from heap captures: those of heapray in Rust services, and those of memray in Python ones.
///
/// A capture is a file such as memray-report.bin, of format version 12 or 13; `-` reads it from standard input.
#[derive(Debug, Parser)]
#[command(name = "heapray", version, max_term_width = 120, after_help = EXIT_CODES)]
#[command(arg_required_else_help = true, subcommand_required = true)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Flamegraph(flamegraph::Args),
    Stats(stats::Args),
    Leaks(leaks::Args),
    Table(table::Args),
    Tree(tree::Args),
    Summary(summary::Args),
    Diff(diff::Args),
    Merge(merge::Args),
    #[command(visible_alias = "transform")]
    Convert(convert::Args),
    Info(info::Args),
    Recover(recover::Args),
    Symbolize(symbolize::Args),
    UploadSymbols(upload_symbols::Args),
    Memory(memory::Args),
    Fetch(fetch::Args),
    Serve(serve::Args),
    Fleet(fleet::Args),
    Completions(completions::Args),
    Man(man::Args),
}
