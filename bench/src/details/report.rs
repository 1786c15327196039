//! Time and memory of `stop` and of the first flame graph.

use std::hint::black_box;
use std::time::Instant;

use heapray_bench_workloads::{
    Result, children_cpu, largest_child, process_cpu, reset_most, resident, stacks, watched,
};

use super::{measured, mib, recording};

const EVENTS: usize = 10_000_000;
const LIVE: usize = 1_000_000;
/// Number of call stacks of the events, as a power of two.
const PATHS: u32 = 11;

/// Prints the figures.
pub(crate) fn section() -> Result<()> {
    println!(
        "\n## Stop and flame graph: {EVENTS} events, {LIVE} live blocks, {} call stacks\n",
        1 << PATHS
    );
    let values = measured(&["report"])?;
    println!("| | time | CPU of the service | memory of the service besides, at the most |");
    println!("|---|---|---|---|");
    let rows = [
        (
            "running",
            "flame graph while recording: snapshot, symbols and page",
        ),
        ("stop", "stop, report on disk"),
        ("first", "first flame graph after that"),
        ("later", "later ones"),
    ];
    for (what, title) in rows {
        let get = |name: &str| values.get(&format!("{what}_{name}"));
        println!(
            "| {title} | {:.0} ms | {:.0} ms | {} |",
            get("ms"),
            get("cpu_ms"),
            mib(get("memory") as u64)
        );
    }
    println!(
        "\nThe helper processes of all of them: {:.0} ms of CPU, at the most {} besides files",
        values.get("helper_cpu_ms"),
        mib(values.whole("helper_memory"))
    );
    println!(
        "\nreport {}, page {}, lost events {}",
        mib(values.whole("report_bytes")),
        mib(values.whole("page_bytes")),
        values.whole("lost")
    );
    Ok(())
}

/// Measures in this process.
pub(crate) fn child() -> Result<()> {
    let profiler = recording()?;
    let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(LIVE);
    for path in 0..1 << PATHS {
        stacks::along(path, PATHS, &mut || {
            for number in 0..LIVE >> PATHS {
                blocks.push(stacks::block(16 + number % 200));
            }
            for number in 0..((EVENTS - LIVE) / 2) >> PATHS {
                stacks::pair(16 + number % 1000);
            }
        });
    }
    let ((), memory) = watched(largest_child, || {
        timed("running", || profiler.flamegraph())?;
        let status = timed("stop", || profiler.stop())?;
        println!("events={}\nlost={}", status.events, status.lost_events);
        println!(
            "report_bytes={}",
            status.report.map_or(0, |report| report.bytes)
        );
        let page = timed("first", || profiler.flamegraph())?;
        println!("page_bytes={}", page.len());
        timed("later", || profiler.flamegraph())?;
        profiler.shutdown()?;
        Ok(())
    })?;
    println!("helper_cpu_ms={}", children_cpu().as_secs_f64() * 1e3);
    println!("helper_memory={memory}");
    black_box(blocks);
    Ok(())
}

fn timed<T, E>(what: &str, call: impl FnOnce() -> std::result::Result<T, E>) -> Result<T>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let process = std::process::id();
    reset_most(process)?;
    let memory = resident(process)?.now;
    let (cpu, start) = (process_cpu(), Instant::now());
    let result = call()?;
    println!("{what}_ms={}", start.elapsed().as_secs_f64() * 1e3);
    println!(
        "{what}_cpu_ms={}",
        (process_cpu() - cpu).as_secs_f64() * 1e3
    );
    println!(
        "{what}_memory={}",
        resident(process)?.most.saturating_sub(memory)
    );
    Ok(result)
}
