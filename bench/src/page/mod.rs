//! `benchmarks.md` and `benchmarks.svg`, made of what was measured.

mod figures;
mod plot;
mod tables;

use std::fmt::Write as _;
use std::path::Path;

use heapray_bench_workloads::Result;

use crate::runs::Runs;

/// What is to be known about the figures, whatever they are.
const NOTES: &str = include_str!("notes.md");

/// Writes both files.
pub(crate) fn write(runs: &Runs, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let page = folder.join("benchmarks.md");
    std::fs::write(&page, text(runs))?;
    std::fs::write(folder.join("benchmarks.svg"), plot::svg(runs))?;
    println!("{}", page.display());
    Ok(())
}

fn text(runs: &Runs) -> String {
    let machine = &runs.machine;
    let mut out = String::from(
        "<!-- Made by `cargo run --release -p heapray-bench`: see bench/README.md. Changes by hand are lost. -->\n\n# Benchmarks\n\n",
    );
    let _ = writeln!(
        out,
        "heapray {} on {}: {}, {} cores, {} GiB of memory, Linux {}, glibc {}, {}. Load average {:.1} when it began, {:.1} at its end{}.{}\n",
        machine.heapray,
        machine.date,
        machine.processor,
        machine.cores,
        (machine.memory_mib + 512) >> 10,
        machine.kernel,
        machine.libc,
        machine.rustc,
        machine.load[0],
        machine.load[1],
        if machine.load[0] > 0.5 {
            ": **other work shared the machine**, figures of time are rough"
        } else {
            ""
        },
        if runs.quick {
            " A quick run: few rounds, small workloads."
        } else {
            ""
        },
    );
    out.push_str("![The main figures as bars](benchmarks.svg)\n\n");
    tables::all(runs, &mut out);
    out.push_str(NOTES);
    out
}
