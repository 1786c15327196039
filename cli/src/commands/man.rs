//! `heapray man`

use std::path::PathBuf;

use clap::{Command, CommandFactory};
use clap_mangen::Man;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::Failure;
use crate::output::Destination;

/// Print the manual page, or write it and those of all subcommands into a directory.
///
/// To read it: `heapray man | man -l -`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Write `heapray.1`, `heapray-stats.1`, … into this directory instead.
    #[arg(long, value_name = "FOLDER")]
    all: Option<PathBuf>,
    /// Overwrite existing files.
    #[arg(long, short, requires = "all")]
    force: bool,
}

impl Args {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        let mut command = Cli::command();
        let Some(folder) = &self.all else {
            return context.print(&String::from_utf8_lossy(&page(command)?));
        };
        // Fills in what subcommands inherit, including their full names.
        command.build();
        let subcommands: Vec<Command> = command.get_subcommands().cloned().collect();
        for command in std::iter::once(command).chain(subcommands) {
            let name = command.get_display_name().unwrap_or("heapray").to_owned();
            let file = Destination::new(&folder.join(format!("{name}.1")), self.force)?;
            let page = page(command)?;
            file.write(context, |out| out.write_all(&page))?;
        }
        Ok(())
    }
}

fn page(command: Command) -> Result<Vec<u8>, Failure> {
    let mut page = Vec::new();
    Man::new(command)
        .render(&mut page)
        .map_err(|error| Failure::io("cannot write the manual page", error))?;
    Ok(page)
}
