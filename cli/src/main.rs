//! `heapray`: reports from heap captures, heapray's own and memray's.
//!
//! The command line is thin: it opens files, calls `heapray_report` to compute, and writes the results safely. `cli` has the
//! commands and their help, `commands` one file per subcommand; the other modules are shared by the commands. Nothing here
//! computes a figure.
#![forbid(unsafe_code)]

mod access;
mod browser;
mod cli;
mod commands;
mod context;
mod contexts;
mod debuginfod;
mod failure;
mod fleet;
mod http;
mod input;
mod json;
mod leftovers;
mod limit;
mod name_cache;
mod output;
mod parquet;
mod plot;
mod remote;
mod selection;
mod serve;
mod stores;
mod symbols;
mod text;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;
use heapray_report::memray::in_one_line;

use cli::Cli;
use context::Context;
use failure::{Failure, USAGE};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap treats help and version as errors. If they cannot be printed, nobody reads them.
            print_cleaned(&error);
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(USAGE),
            };
        }
    };
    let mut context = Context::new(&cli.global);
    limit::watch(context.memory_limit(), &context);
    match commands::run(cli.command, &mut context) {
        Ok(()) => context.exit_code(),
        Err(Failure::NobodyReads) => ExitCode::SUCCESS,
        Err(failure) => {
            context.fail(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}

/// Prints an error as clap does, but without control characters, which an argument such as a file's name may have.
fn print_cleaned(error: &clap::Error) {
    let text = error.render().to_string();
    let is_clean = text.lines().all(|line| in_one_line(line) == line);
    if is_clean {
        let _ = error.print();
        return;
    }
    let lines = text.lines().map(|line| format!("{}\n", in_one_line(line)));
    let _ = io::stderr().write_all(lines.collect::<String>().as_bytes());
}
