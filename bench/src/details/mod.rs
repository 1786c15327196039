//! Figures of heapray alone, each in its own process, which runs this binary again.

pub(crate) mod agreement;
pub(crate) mod collector;
pub(crate) mod contexts;
pub(crate) mod hours;
pub(crate) mod report;
pub(crate) mod sites;
pub(crate) mod size;
pub(crate) mod symbols;

use std::collections::BTreeMap;
use std::process::Command;

use heapray::Profiler;
use heapray_bench_workloads::Result;

/// Starts a profiler that records in this process.
fn recording() -> Result<Profiler> {
    let directory = directory(std::process::id());
    let builder = heapray::builder().ignore_environment().enabled(true);
    Ok(builder.dir(directory).try_init()?)
}

/// Returns the directory of child `process`.
fn directory(process: u32) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("heapray-bench-{process}"))
}

/// Values that a child has printed.
#[derive(Debug)]
struct Values(BTreeMap<String, f64>);

impl Values {
    /// Returns a value, or NaN if the child did not print it.
    fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    fn whole(&self, name: &str) -> u64 {
        self.get(name) as u64
    }
}

/// Runs this binary as a child that measures.
fn measured(arguments: &[&str]) -> Result<Values> {
    let child = Command::new(std::env::current_exe()?)
        .arg("child")
        .args(arguments)
        .stdout(std::process::Stdio::piped())
        .spawn()?;
    let process = child.id();
    let output = child.wait_with_output()?;
    drop(std::fs::remove_dir_all(directory(process)));
    if !output.status.success() {
        return Err(format!("a measured process failed: {}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let pairs = pairs.filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    Ok(Values(pairs.collect()))
}

/// Returns `12.3 MiB`.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
