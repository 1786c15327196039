//! Figures of heapray alone, each in a process of its own: this binary again.

pub(crate) mod collector;
pub(crate) mod report;
pub(crate) mod sites;
pub(crate) mod size;

use std::collections::BTreeMap;
use std::process::Command;

use heapray::Profiler;
use heapray_bench_workloads::Result;

/// A profiler that records, in this process.
fn recording() -> Result<Profiler> {
    let directory = directory(std::process::id());
    let builder = heapray::builder().ignore_environment().enabled(true);
    Ok(builder.dir(directory).try_init()?)
}

/// Where the profiler of child `process` writes.
fn directory(process: u32) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("heapray-bench-{process}"))
}

/// What a child has told.
#[derive(Debug)]
struct Told(BTreeMap<String, f64>);

impl Told {
    /// Not a number where the child did not tell.
    fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(f64::NAN)
    }

    fn whole(&self, name: &str) -> u64 {
        self.get(name) as u64
    }
}

/// Runs this binary as a child that measures.
fn measured(arguments: &[&str]) -> Result<Told> {
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
    Ok(Told(pairs.collect()))
}

/// `12.3 MiB`.
pub(crate) fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
