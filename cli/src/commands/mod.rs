//! The subcommands, a file each: options, and a few lines that read, compute and write.

pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod diff;
pub(crate) mod fetch;
pub(crate) mod flamegraph;
pub(crate) mod fleet;
pub(crate) mod info;
pub(crate) mod leaks;
pub(crate) mod man;
pub(crate) mod memory;
pub(crate) mod merge;
pub(crate) mod recover;
pub(crate) mod serve;
pub(crate) mod stats;
pub(crate) mod summary;
pub(crate) mod symbolize;
pub(crate) mod table;
pub(crate) mod tree;
pub(crate) mod upload_symbols;

use crate::cli::Command;
use crate::context::Context;
use crate::failure::Failure;

/// Runs a command.
pub(crate) fn run(command: Command, context: &mut Context) -> Result<(), Failure> {
    match command {
        Command::Flamegraph(args) => args.run(context),
        Command::Stats(args) => args.run(context),
        Command::Leaks(args) => args.run(context),
        Command::Table(args) => args.run(context),
        Command::Tree(args) => args.run(context),
        Command::Summary(args) => args.run(context),
        Command::Diff(args) => args.run(context),
        Command::Merge(args) => args.run(context),
        Command::Convert(args) => args.run(context),
        Command::Info(args) => args.run(context),
        Command::Recover(args) => args.run(context),
        Command::Symbolize(args) => args.run(context),
        Command::UploadSymbols(args) => args.run(context),
        Command::Memory(args) => args.run(context),
        Command::Fetch(args) => args.run(context),
        Command::Serve(args) => args.run(context),
        Command::Fleet(args) => args.run(context),
        Command::Completions(args) => args.run(context),
        Command::Man(args) => args.run(context),
    }
}
