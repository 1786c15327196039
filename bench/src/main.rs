//! Measures what heapray costs and prints it beside a peer: `cargo run --release -p heapray-bench`.
//!
//! Every figure is taken in a child process (this binary again, with `child` as its first argument), so that what one
//! measurement leaves behind does not reach the next, and a peer can be preloaded into the very same code.
//!
//! ```text
//! main ─▶ a section a file: runs children, takes medians, prints a table
//!           └▶ child: pairs | live | report | serve, prints `name=value` lines
//! ```
#![allow(clippy::print_stdout)] // printing is what it is for

mod child;
mod collector;
mod deep;
mod instructions;
mod live;
mod load;
mod measure;
mod mode;
mod pairs;
mod report;
mod service;
mod size;
mod work;

use std::process::ExitCode;

/// Prints a part of the output.
type Section = fn() -> measure::Result<()>;

/// Each part, by the name it is chosen with.
const SECTIONS: [(&str, Section); 7] = [
    ("pairs", pairs::section),
    ("instructions", instructions::section),
    ("live", live::section),
    ("collector", collector::section),
    ("report", report::section),
    ("service", service::section),
    ("size", size::section),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == "child" => child::run(rest),
        _ => sections(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn sections(wanted: &[String]) -> measure::Result<()> {
    if let Some(unknown) = wanted
        .iter()
        .find(|name| SECTIONS.iter().all(|(known, _)| known != name))
    {
        let known = SECTIONS.map(|(name, _)| name).join(" ");
        return Err(format!("{unknown} is no section; there are: {known}").into());
    }
    for (name, section) in SECTIONS {
        if wanted.is_empty() || wanted.iter().any(|chosen| chosen == name) {
            section()?;
        }
    }
    Ok(())
}
