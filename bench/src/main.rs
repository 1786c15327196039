//! Measures the cost of heapray and of its peers, and writes `docs/benchmarks.md`: see bench/README.md.
//!
//! ```text
//! main ─▶ plan: cases and rounds ─▶ driver ─▶ process: one measured program ─▶ target/bench/runs.json ─▶ page
//!            contenders: profilers, and       (bench/subject, bench/peers:
//!            how each is switched on           the code of bench/workloads)
//! ```
#![allow(clippy::print_stdout)] // printing is what it is for

mod after;
mod always_on;
mod callgrind;
mod check;
mod contenders;
mod details;
mod driver;
mod instructions;
mod load;
mod machine;
mod page;
mod plan;
mod process;
mod programs;
mod runs;
mod server;
mod sink;
mod times;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use heapray_bench_workloads::Result;

const USAGE: &str = "\
heapray-bench [--quick] [--rounds N] [--workloads A,B] [--contenders A,B] [--runs FILE] [--page FOLDER]
    measures all, writes target/bench/runs.json and the page made of it (target/bench/benchmarks.md and .svg)
heapray-bench page FILE... FOLDER
    makes the page again, of the runs in FILE; with more than one, each stands for what it measured anew
heapray-bench list
    says what is measured, and what is missing here
heapray-bench collector | contexts | hours | report | sites | size
    figures of heapray alone: the collector's tables, contexts, a week of sampling, reports, call sites in memory, cost of building it in
heapray-bench symbols FILE
    looking up addresses in the debug information of a program, beside addr2line and llvm-symbolizer
heapray-bench agreement COUNT FILE...
    compares the functions, inlined calls and lines of random addresses with those of llvm-symbolizer";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match command(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut source = error.source();
            while let Some(error) = source {
                eprintln!("  because: {error}");
                source = error.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn command(arguments: &[String]) -> Result<()> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["help" | "--help" | "-h", ..] => {
            println!("{USAGE}");
            Ok(())
        }
        ["collector"] => details::collector::section(),
        ["contexts"] => details::contexts::section(),
        ["hours"] => details::hours::section(),
        ["report"] => details::report::section(),
        ["sites"] => details::sites::section(),
        ["size"] => details::size::section(),
        ["symbols", path] => details::symbols::section(path),
        ["agreement", count, files @ ..] => details::agreement::section(count, files),
        ["child", "symbols", who, path, count] => details::symbols::child(who, path, count),
        ["child", "contexts", mode] => details::contexts::child(mode),
        ["child", "contexts", mode, layer, count] => details::contexts::counted(mode, layer, count),
        ["child", "hours"] => details::hours::child(),
        ["child", "report"] => details::report::child(),
        ["child", "sites", what] => details::sites::child(what),
        ["list"] => list(),
        ["page", files @ .., folder] if !files.is_empty() => {
            let read = files.iter().map(|file| runs::Runs::read(Path::new(file)));
            page::write(read.collect::<Result<_>>()?, Path::new(folder))
        }
        _ => measure(&Options::parse(arguments)?),
    }
}

/// Choice of measurements, and their thoroughness.
#[derive(Debug, Default)]
struct Options {
    quick: bool,
    rounds: Option<u32>,
    workloads: Option<Vec<String>>,
    contenders: Option<Vec<String>>,
    runs: Option<PathBuf>,
    page: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Options> {
        let mut options = Options::default();
        let mut rest = arguments.iter();
        while let Some(option) = rest.next() {
            if option == "--quick" {
                options.quick = true;
                continue;
            }
            let value = rest.next().ok_or(USAGE)?;
            let names = || Some(value.split(',').map(str::to_owned).collect());
            match option.as_str() {
                "--rounds" => options.rounds = Some(value.parse()?),
                "--workloads" => options.workloads = names(),
                "--contenders" => options.contenders = names(),
                "--runs" => options.runs = Some(value.into()),
                "--page" => options.page = Some(value.into()),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(options)
    }
}

fn measure(options: &Options) -> Result<()> {
    let folder = programs::target_folder()?.join("bench");
    std::fs::create_dir_all(&folder)?;
    let programs = programs::build()?;
    let (contenders, missing) = contenders::all(&programs)?;
    let wanted = |chosen: &Option<Vec<String>>, name: &str| {
        chosen
            .as_ref()
            .is_none_or(|chosen| chosen.iter().any(|one| one == name))
    };
    let mut plan = plan::Plan::new(options.quick);
    if let Some(rounds) = options.rounds {
        plan.rounds = rounds;
    }
    plan.cases
        .retain(|case| wanted(&options.workloads, case.workload));
    if !wanted(&options.workloads, "instructions") {
        plan.instructions = &[];
    }
    plan.check &= wanted(&options.workloads, "check");
    let chosen: Vec<_> = contenders
        .iter()
        .filter(|contender| {
            // The base of comparison of a contender is measured, too.
            contenders.iter().any(|one| {
                wanted(&options.contenders, one.id)
                    && (one.id == contender.id || one.against == contender.id)
            })
        })
        .cloned()
        .collect();
    let mut runs = runs::Runs::new(&chosen, missing, options.quick)?;
    let file = options
        .runs
        .clone()
        .unwrap_or_else(|| folder.join("runs.json"));
    driver::drive(&plan, &chosen, &programs, &mut runs, &file)?;
    println!("{}", file.display());
    page::write(vec![runs], options.page.as_deref().unwrap_or(&folder))
}

fn list() -> Result<()> {
    let (contenders, missing) = contenders::all(&programs::build()?)?;
    for contender in contenders {
        println!("{:20} {}", contender.id, contender.title);
    }
    for missing in missing {
        println!("missing: {missing}");
    }
    for case in plan::Plan::new(false).cases {
        println!("{}", case.key());
    }
    Ok(())
}
