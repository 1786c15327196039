//! The benchmark's workloads, and the steps of each measured process: begin, work, report, finish.
//!
//! Nothing here depends on heapray or any other profiler. A measured program is a `main` of three lines that passes its
//! profiler to [`main`], so all of them run the same code.
//!
//! ```text
//! program WORKLOAD name=value…        prints name=value lines; with finish=FOLDER it writes its report there
//! ```
#![allow(clippy::print_stdout)] // the measured process prints its values

mod cpp;
mod live;
mod measure;
mod options;
mod pairs;
mod profiler;
mod random;
mod scale;
mod server;
pub mod stacks;
mod threads;

use std::any::Any;
use std::process::ExitCode;
use std::time::Instant;

pub use measure::{
    Resident, Result, children_cpu, largest_child, largest_child_of, largest_child_with_files,
    process_cpu, reset_most, resident, thread_cpu, watched,
};
pub use options::Options;
pub use profiler::{Folded, Profiler, Unprofiled, Written};
pub use server::REQUEST;

/// Runs the workload of the arguments with the profiler that `begin` starts, and ends the process.
pub fn main<P: Profiler>(begin: impl FnOnce() -> Result<P>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments, begin) {
        // Without destructors: the profiler's work at its end is timed above, or not wanted.
        Ok(()) => std::process::exit(0),
        Err(error) => {
            let causes = std::iter::successors(error.source(), |cause| cause.source());
            let causes: String = causes.map(|cause| format!(": {cause}")).collect();
            eprintln!("error: {error}{causes}");
            ExitCode::FAILURE
        }
    }
}

/// Runs one workload in this process.
///
/// # Errors
///
/// An unknown workload, or an error in it.
pub fn run<P: Profiler>(arguments: &[String], begin: impl FnOnce() -> Result<P>) -> Result<()> {
    let (workload, rest) = arguments.split_first().ok_or("which workload?")?;
    let options = Options::parse(rest)?;
    let mut profiler = begin()?;
    println!("pid={}", std::process::id());
    // Live blocks stay live until the report is written.
    let kept: Box<dyn Any> = match workload.as_str() {
        "pairs" | "crowd" => Box::new(pairs::run(&options, &mut profiler)?),
        "blocks" => Box::new(scale::blocks(&options, &mut profiler)?),
        "sites" => Box::new(scale::sites(&options, &mut profiler)?),
        "live" => Box::new(live::run(&options, &mut profiler)?),
        "server" => Box::new(server::run(&mut profiler)?),
        "threads" => Box::new(threads::run(&options, &mut profiler)?),
        "cpp" => Box::new(cpp::run(&options, &mut profiler)?),
        _ => return Err(format!("{workload} is not a workload").into()),
    };
    for (name, value) in profiler.facts() {
        println!("{name}={value}");
    }
    if let Some(folder) = options.text("finish") {
        let is_watched = options.number("watch", 0)? == 1;
        let pid = std::process::id();
        let (cpu, start) = (process_cpu(), Instant::now());
        let written = if is_watched {
            reset_most(pid)?;
            let before = resident(pid)?.now;
            let (written, helper) = watched(largest_child, || profiler.finish(folder.as_ref()))?;
            let own = resident(pid)?.most.saturating_sub(before);
            println!("finish_memory={}", own + helper);
            written
        } else {
            profiler.finish(folder.as_ref())?
        };
        println!("finish_ns={}", start.elapsed().as_nanos());
        println!("finish_cpu_ns={}", (process_cpu() - cpu).as_nanos());
        written.tell();
        if options.number("check", 0)? == 1
            && let Some(folded) = profiler.folded()?
        {
            folded.tell();
        }
    }
    println!("process_cpu_ns={}", process_cpu().as_nanos());
    drop(kept);
    Ok(())
}
