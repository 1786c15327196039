//! `heapray`: reports from heap captures, heapray's own and memray's.
//!
//! The command line is thin: it opens files, asks `heapray_report` to compute, and writes what comes out, safely.
//! `cli` holds what can be asked for, `commands` one file a subcommand; the rest is what they share.
//! Nothing here computes a figure.
#![forbid(unsafe_code)]

mod cli;
mod commands;
mod context;
mod failure;
mod input;
mod json;
mod output;
mod plot;
mod remote;
mod selection;
mod server;
mod text;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use cli::Cli;
use context::Context;
use failure::{Failure, USAGE};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version count as errors in clap; where they cannot be printed nobody is there to be told.
            let _ = error.print();
            return match error.kind() {
                ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => ExitCode::SUCCESS,
                _ => ExitCode::from(USAGE),
            };
        }
    };
    let mut context = Context::new(&cli.global);
    match commands::run(cli.command, &mut context) {
        Ok(()) => context.exit_code(),
        Err(Failure::NobodyReads) => ExitCode::SUCCESS,
        Err(failure) => {
            context.fail(&failure);
            ExitCode::from(failure.exit_code())
        }
    }
}
