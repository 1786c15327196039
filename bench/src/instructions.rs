//! Instructions of a pair, counted by callgrind: a figure that no other load on the machine moves.

use std::process::Command;

use crate::child::Measured;
use crate::measure::Result;
use crate::mode::Mode;

/// Prints the table, if there is a valgrind.
pub(crate) fn section() -> Result<()> {
    println!("\n## Instructions of a malloc+free pair, same stack\n");
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("(valgrind is not installed: not counted; apt-get install valgrind)");
        return Ok(());
    }
    println!("| | instructions |");
    println!("|---|---|");
    for mode in [Mode::Off, Mode::Recording] {
        println!("| {} | {:.0} |", mode.name(), counted(mode)?);
    }
    Ok(())
}

/// Two runs that differ in the number of pairs only: what else they execute cancels out.
fn counted(mode: Mode) -> Result<f64> {
    let (few, many) = (20_000, 60_000);
    Ok((run(mode, many)? - run(mode, few)?) / (many - few) as f64)
}

fn run(mode: Mode, pairs: u64) -> Result<f64> {
    let file = std::env::temp_dir().join(format!("heapray-bench-callgrind-{}", std::process::id()));
    let out = format!("--callgrind-out-file={}", file.display());
    // Only what the thread that makes the pairs does, not the collector.
    let wrapper = [
        "valgrind",
        "--quiet",
        "--tool=callgrind",
        "--toggle-collect=heapray_bench::pairs::still",
        &out,
    ];
    Measured::start(&wrapper, "count", mode, &[pairs.to_string()])?.finish()?;
    let text = std::fs::read_to_string(&file);
    drop(std::fs::remove_file(&file));
    let total = text?.lines().find_map(|line| {
        line.strip_prefix("totals: ")
            .or(line.strip_prefix("summary: "))?
            .trim()
            .parse()
            .ok()
    });
    total.ok_or_else(|| "callgrind told no sum".into())
}

/// What is counted.
pub(crate) fn child(mode: Mode, rest: &[String]) -> Result<()> {
    let _profiler = mode.enter()?;
    let pairs = rest.first().ok_or("how many pairs?")?.parse()?;
    crate::pairs::still(pairs);
    Ok(())
}
