//! Memory that heapray uses itself: for live blocks, for call sites, for threads. And what a scrape of its metrics costs then.

use std::hint::black_box;
use std::thread;
use std::time::Instant;

use heapray_bench_workloads::{Result, stacks};

use super::{measured, mib, recording};

const BLOCKS: usize = 2_000_000;
const SITES: u32 = 100_000;
const THREADS: u32 = 32;
const SCRAPES: usize = 1_000;

/// Prints the figures.
pub(crate) fn section() -> Result<()> {
    println!("\n## Memory of heapray's own\n");
    let blocks = measured(&["sites", "blocks"])?;
    let each = (blocks.get("after") - blocks.get("before")) / blocks.get("live");
    println!(
        "- {each:.1} bytes a live block, at {} live blocks",
        blocks.whole("live")
    );
    let sites = measured(&["sites", "sites"])?;
    println!(
        "- {} for {SITES} call sites of {THREADS} threads",
        mib(sites.whole("after"))
    );
    println!(
        "- {:.0} us of wall time for the metrics text then: the median of {SCRAPES}; the slowest {:.1} ms",
        sites.get("scrape_us"),
        sites.get("slowest_us") / 1e3
    );
    println!(
        "- {} at the start of a capture",
        mib(blocks.whole("before"))
    );
    Ok(())
}

/// Measures in this process.
pub(crate) fn child(what: &str) -> Result<()> {
    let profiler = recording()?;
    println!("before={}", profiler.status().overhead.memory_bytes);
    match what {
        "blocks" => {
            let mut blocks: Vec<Vec<u8>> = Vec::with_capacity(BLOCKS);
            blocks.extend((0..BLOCKS).map(|number| stacks::block(16 + number % 200)));
            let status = profiler.status();
            println!(
                "after={}\nlive={}",
                status.overhead.memory_bytes, status.live.count
            );
            black_box(blocks);
        }
        _ => {
            let threads: Vec<_> = (0..THREADS)
                .map(|thread| {
                    thread::spawn(move || paths(SITES / THREADS * thread, SITES / THREADS))
                })
                .collect();
            for thread in threads {
                thread.join().map_err(|_| "a thread panicked")?;
            }
            println!("after={}", profiler.status().overhead.memory_bytes);
            let mut took: Vec<u128> = (0..SCRAPES)
                .map(|_| {
                    let began = Instant::now();
                    black_box(profiler.metrics_text());
                    began.elapsed().as_micros()
                })
                .collect();
            took.sort_unstable();
            println!(
                "scrape_us={}\nslowest_us={}",
                took[SCRAPES / 2],
                took[SCRAPES - 1]
            );
        }
    }
    Ok(())
}

/// Makes a pair from each of `count` call stacks.
fn paths(first: u32, count: u32) {
    for path in first..first + count {
        stacks::along(path, 17, &mut || stacks::pair(64));
    }
}
