//! `heapray recover`

use std::path::PathBuf;

use heapray::{RecoverError, ReportOptions, ThreadMode};

use crate::context::Context;
use crate::failure::Failure;
use crate::output::OutputArgs;
use crate::selection::VersionArgs;

/// Make the capture of a service that was killed or crashed before it could write one.
///
/// While it records, a service writes each event to a log in MEMRAY_PROFILER_DIR (heapray-PID-….spool), at least once a
/// second. The log is removed with the session; if the process ends before that, the log stays. Functions are named from the
/// program and the libraries at their present paths, so recover on the machine, or in the image, that the service ran in.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The event log.
    #[arg(value_name = "SPOOL")]
    spool: PathBuf,
    /// Keep threads of the same name apart.
    #[arg(long)]
    split_threads: bool,
    /// Keep the leaf frames of Rust's own library.
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    version: VersionArgs,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    pub(crate) fn run(&self, context: &mut Context) -> Result<(), Failure> {
        let out = self
            .output
            .or_beside(&self.spool, "recovered", "bin")?
            .for_binary()?;
        let threads = if self.split_threads {
            ThreadMode::Each
        } else {
            ThreadMode::ByName
        };
        let options = ReportOptions::new().full(self.full).threads(threads);
        let recovered =
            heapray::recover(&self.spool, &options).map_err(|error| self.refused(error))?;
        out.write(context, |out| recovered.write(self.version.version(), out))
    }

    fn refused(&self, error: RecoverError) -> Failure {
        let name = self.spool.display().to_string();
        match error {
            RecoverError::Io(error) => Failure::io(format!("cannot read {name}"), error),
            RecoverError::NoLog(why) => Failure::Capture {
                name,
                problem: format!("this is not a heapray event log: {why}"),
            },
            error => Failure::Capture {
                name,
                problem: error.to_string(),
            },
        }
    }
}
