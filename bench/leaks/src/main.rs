//! Executes a program of known truth as a real process, for a heap profiler to look at.
#![allow(clippy::print_stdout, reason = "a command line prints")]

mod process;
mod schedule;

use leak_programs::{Program, Site};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "usage: heapray-leak-programs list
       heapray-leak-programs run NAME [--seconds 8]";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["list"] => {
            list();
            Ok(())
        }
        ["run", name] => run(name, "8"),
        ["run", name, "--seconds", seconds] => run(name, seconds),
        _ => Err(USAGE.to_owned()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

/// Prints each program and the function that leaks, or `-`.
fn list() {
    for program in Program::all() {
        println!(
            "{:<42} {}",
            program.name,
            program.leaks().map_or("-", Site::name)
        );
    }
}

fn run(name: &str, seconds: &str) -> Result<(), String> {
    let program = Program::named(name)
        .ok_or_else(|| format!("no program has the name {name}: `list` prints all names"))?;
    let real = seconds
        .parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("--seconds takes a number of seconds, and {seconds} is not one"))?;
    process::run(&program, real);
    Ok(())
}
