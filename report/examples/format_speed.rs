//! Prints the cost of each format and text for a made-up report: CPU time, bytes written, the process's peak memory, and how
//! far it rose while writing. Each runs in its own process, since a peak never falls.
//!
//! `format_speed NODES` for all, `format_speed NODES WRITER [OUT]` for one, written to `OUT` if that is given;
//! `format_speed FILE WRITER [OUT]` takes the report from a capture file.

#![allow(clippy::print_stdout)]

#[allow(dead_code)] // the page's example needs more of it
#[path = "sample_page/report.rs"]
mod report;

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::process::Command;

use heapray_report::formats::{self, Format};
use heapray_report::stats::{self, JsonOptions};
use heapray_report::{Report, memray, texts};

const TEXTS: [&str; 5] = ["stats-json", "stats", "table", "tree", "summary"];

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let input = arguments.first().map_or("100000", String::as_str);
    if let Some(writer) = arguments.get(1) {
        return one(input, writer, arguments.get(2));
    }
    let formats = Format::ALL.iter().map(|format| format.name());
    for writer in formats.chain(TEXTS) {
        let program = std::env::current_exe()?;
        let status = Command::new(program).args([input, writer]).status()?;
        if !status.success() {
            return Err(io::Error::other(format!("{writer}: {status}")));
        }
    }
    Ok(())
}

fn one(input: &str, writer: &str, out: Option<&String>) -> io::Result<()> {
    let report = match input.parse() {
        Ok(nodes) => report::sample(nodes),
        Err(_) => {
            let file = BufReader::new(File::open(input)?);
            memray::read(file).map_err(io::Error::other)?.report
        }
    };
    let (cpu, memory) = (cpu_ns(), peak_kib());
    let bytes = match out {
        Some(out) => write(&report, writer, File::create(out)?)?,
        None => write(&report, writer, io::sink())?,
    };
    println!(
        "{writer:<10} {:>7.1} ms CPU {:>9.1} MB written {:>7.1} MB of memory, {:>5.1} MB of it to write   ({} call sites)",
        (cpu_ns() - cpu) as f64 / 1e6,
        bytes as f64 / 1e6,
        peak_kib() as f64 * 1.024 / 1e3,
        (peak_kib() - memory) as f64 * 1.024 / 1e3,
        report.sites.len(),
    );
    Ok(())
}

/// Writes `report`, and returns the number of written bytes.
fn write(report: &Report, writer: &str, out: impl Write) -> io::Result<u64> {
    let mut out = Counted {
        out: BufWriter::new(out),
        bytes: 0,
    };
    let options = texts::Options {
        width: 140,
        ..texts::Options::default()
    };
    match writer {
        "table" => texts::table(report, &options, &mut out)?,
        "tree" => texts::tree(report, &options, &mut out)?,
        "summary" => texts::summary(report, &options, &mut out)?,
        "stats" => out.write_all(stats::text(report).as_bytes())?,
        "stats-json" => stats::json(report, &JsonOptions::default(), &mut out)?,
        format => {
            let format: Format = format.parse().map_err(io::Error::other)?;
            format.write(report, &formats::Options::default(), &mut out)?;
        }
    }
    out.flush()?;
    Ok(out.bytes)
}

struct Counted<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let taken = self.out.write(data)?;
        self.bytes += taken as u64;
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the CPU time of this thread: on a busy machine wall time means little.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Returns the highest resident size so far, or 0 without `/proc`.
fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number.and_then(|number| number.parse().ok()).unwrap_or(0)
}
