//! `benchmarks.md` and `benchmarks.svg`, made from the measurements.

mod always_on;
mod figures;
mod plot;
mod scale;
mod tables;

use std::fmt::Write as _;
use std::path::Path;

use heapray_bench_workloads::Result;

use crate::runs::{Part, Runs};

/// Notes about the figures.
const NOTES: &str = include_str!("notes.md");

/// Writes both files. If a case was measured in several benchmarks, the latest counts.
pub(crate) fn write(benchmarks: Vec<Runs>, folder: &Path) -> Result<()> {
    let mut benchmarks = benchmarks.into_iter();
    let mut runs = benchmarks.next().ok_or("a page of nothing")?;
    let mut parts = vec![runs.part()];
    for later in benchmarks {
        let anew = later.part();
        for part in &mut parts {
            part.workloads.retain(|name| !anew.workloads.contains(name));
        }
        parts.push(anew);
        runs.replace(later);
    }
    std::fs::create_dir_all(folder)?;
    let page = folder.join("benchmarks.md");
    std::fs::write(&page, text(&runs, &parts))?;
    std::fs::write(folder.join("benchmarks.svg"), plot::svg(&runs))?;
    println!("{}", page.display());
    Ok(())
}

fn text(runs: &Runs, parts: &[Part]) -> String {
    let mut out = String::from(
        "<!-- Made by `cargo run --release -p heapray-bench`: see bench/README.md. Changes by hand are lost. -->\n\n# Benchmarks\n\n",
    );
    for part in parts.iter().filter(|part| !part.workloads.is_empty()) {
        if parts.len() > 1 {
            let names: Vec<_> = part
                .workloads
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            let _ = write!(out, "{}: ", names.join(", "));
        }
        put_part(part, &mut out);
    }
    out.push_str("![The main figures as bars](benchmarks.svg)\n\n");
    tables::all(runs, &mut out);
    out.push_str(NOTES);
    out
}

/// Writes what was measured, where and when.
fn put_part(part: &Part, out: &mut String) {
    let machine = &part.machine;
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
        if part.quick {
            " A quick run: few rounds, small workloads."
        } else {
            ""
        },
    );
}
