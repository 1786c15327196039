//! Prints the CPU time of the memory log's sampler: `cargo run --release --example memory_log_cost -- SECONDS`.
//!
//! For each metric, without children and with five, it runs the sampler's thread for so many seconds at 0.1 s per reading.
//! It also prints the cost of a mark of a function, with and without a log.
#![allow(clippy::print_stdout)]

use std::process::{Child, Command};
use std::time::{Duration, Instant};

use heapray::{MemoryChildren, MemoryMetric};

fn main() {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok());
    let seconds = seconds.unwrap_or(20);
    let dir = std::env::temp_dir().join(format!("memory-log-cost-{}", std::process::id()));
    // The process must have some size, because the cost of `smaps_rollup` depends on its pages.
    let ballast = std::hint::black_box(vec![1_u8; 256 << 20]);
    println!("a mark without a log: {:.1} ns", mark());
    for metric in [MemoryMetric::Rss, MemoryMetric::Pss, MemoryMetric::Uss] {
        for count in [0, 5] {
            let children: Vec<Child> = (0..count)
                .map(|_| Command::new("sleep").arg("100000").spawn())
                .collect::<Result<_, _>>()
                .expect("there is a sleep");
            let log = heapray::builder()
                .ignore_environment()
                .memory_log(true)
                .memory_dir(&dir)
                .memory_metric(metric)
                .memory_children(MemoryChildren::Both);
            let log = log.build().expect("the settings are right");
            let before = cpu_ns();
            std::thread::sleep(Duration::from_secs(seconds));
            let spent = (cpu_ns() - before) as f64 / 1e9;
            let mark = (metric == MemoryMetric::Rss).then(mark);
            println!(
                "{metric:?}, {count} children: {:.2} s of CPU an hour{}",
                spent * 3600.0 / seconds as f64,
                mark.map_or(String::new(), |ns| format!("; a mark {ns:.0} ns"))
            );
            // No report: there is no session.
            let _ = log.shutdown();
            for mut child in children {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
    let _ = std::fs::remove_dir_all(dir);
    drop(ballast);
}

/// Returns the CPU time of the sampler's thread, in nanoseconds.
fn cpu_ns() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten();
    let sampler = tasks.flatten().find(|task| {
        let name = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        name.trim() == "heapray-memory"
    });
    let stat = sampler.and_then(|task| std::fs::read_to_string(task.path().join("schedstat")).ok());
    let first = stat.as_deref().and_then(|stat| stat.split(' ').next());
    first.and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

/// Returns the nanoseconds of a mark.
fn mark() -> f64 {
    const MARKS: u32 = 20_000;
    let begun = Instant::now();
    for _ in 0..MARKS {
        drop(std::hint::black_box(heapray::memory_span("mark")));
    }
    begun.elapsed().as_nanos() as f64 / f64::from(MARKS)
}
