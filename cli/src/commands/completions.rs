//! `heapray completions`

use clap::CommandFactory;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::context::Context;
use crate::failure::Failure;

/// Print the completion script of a shell.
///
/// For bash: `heapray completions bash > ~/.local/share/bash-completion/completions/heapray`
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

impl Args {
    pub(crate) fn run(&self, context: &Context) -> Result<(), Failure> {
        // Into memory first: clap_complete panics if it cannot write.
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Cli::command(), "heapray", &mut script);
        context.print(&String::from_utf8_lossy(&script))
    }
}
