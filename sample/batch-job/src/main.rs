//! A batch job: it loads measurements, sums them up in parallel, has a peak of memory, and runs a child process.
//!
//! `docs/batch-job.md` explains what heapray reports about each part. The first argument names the part.

#![allow(clippy::print_stdout)] // the job's output

mod child;
mod grow;
mod load;
mod parts;
mod stations;

use std::error::Error;
use std::process::ExitCode;

const HELP: &str = "\
usage: batch-job [PART]

  all        load, compute, peak, and a child process (default)
  heap       what loading allocates and keeps, line by line and by call site
  scope      a report of the peak alone, in batch-report/
  cpu        where the CPU time of loading goes, and load.pstats
  parallel   which worker did what when, in batch-job.html
  grow       takes memory until there is none";

fn main() -> ExitCode {
    // The first line: from here on every allocation is recorded, and the memory log is written, if the environment says so.
    let profiler = heapray::init();
    let done = run(std::env::args().nth(1).as_deref());
    let ended = profiler.shutdown();
    match done.and(ended.map(drop).map_err(Into::into)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("batch-job: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprintln!("  because: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(part: Option<&str>) -> Result<(), Box<dyn Error>> {
    match part {
        None | Some("all") => parts::all(),
        Some("heap") => parts::heap(),
        Some("scope") => parts::scope(),
        Some("cpu") => parts::cpu(),
        Some("parallel") => parts::parallel(),
        Some("grow") => grow::without_end(),
        Some("child") => {
            child::work();
            Ok(())
        }
        Some("--help" | "-h") => {
            println!("{HELP}");
            Ok(())
        }
        Some(other) => Err(format!("there is no part {other:?}\n{HELP}").into()),
    }
}
