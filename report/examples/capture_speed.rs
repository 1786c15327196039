//! Prints the speed of writing and reading captures: `cargo run --release -p heapray-report --example capture_speed
//! [EVENTS]`.
//!
//! The events are like those of a service: 31 frames deep, runs of allocations that share most of their stack, short-lived
//! blocks, four threads that take turns, and sometimes a leak. Prints CPU time (Linux), size and the memory used so far.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};

use heapray_report::memray::{Version, events, read, write_aggregated, write_all};
use heapray_report::model::{
    About, Allocator, ContextId, Event, Frame, FrameId, StackId, Thread, ThreadId,
};
use heapray_report::{Report, stats};

const DEPTH: u32 = 31;
const LEAVES: u32 = 2000;

/// Returns the call tree: one trunk per thread, and leaves that branch from it at various heights.
fn report() -> (Report, Vec<StackId>) {
    let mut report = Report {
        about: About {
            producer: "heapray".into(),
            python_allocator: 3,
            ..About::default()
        },
        ..Report::default()
    };
    let frame = |report: &mut Report, n: u32| {
        let function = report
            .strings
            .intern(&format!("service::module_{}::function_{n}", n % 97));
        let file = report.strings.intern(&format!("src/module_{}.rs", n % 97));
        report.frames.push(Frame {
            function,
            file,
            line: n,
        });
        FrameId(report.frames.len() as u32 - 1)
    };
    let trunk: Vec<FrameId> = (0..DEPTH).map(|n| frame(&mut report, n)).collect();
    let twigs: Vec<FrameId> = (0..3000).map(|n| frame(&mut report, 1000 + n)).collect();
    let leaves = (0..LEAVES)
        .map(|leaf| {
            let parts = DEPTH - 1 - leaf % 7;
            let stack = trunk[..parts as usize]
                .iter()
                .fold(StackId::EMPTY, |at, &frame| report.stacks.child(at, frame));
            (parts..DEPTH).fold(stack, |at, level| {
                let twig = twigs[((leaf * 13 + level * 7) % 3000) as usize];
                report.stacks.child(at, twig)
            })
        })
        .collect();
    for tid in 1..=4 {
        let name = report.strings.intern(&format!("worker-{tid}"));
        report.threads.push(Thread {
            tid,
            name,
            threads: 1,
        });
    }
    (report, leaves)
}

/// Returns `count` events, each made when it is taken.
fn service(leaves: Vec<StackId>, count: u64) -> impl Iterator<Item = std::io::Result<Event>> {
    let mut random = 1u64;
    let mut live: Vec<u64> = Vec::new();
    let mut free: Vec<u64> = Vec::new();
    let mut address = 0x7f00_0000_0000u64;
    let (mut thread, mut leaf) = (ThreadId(0), 0usize);
    (0..count).map(move |n| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        if n % 100_000 == 0 {
            return Ok(Event::Memory {
                at_ms: n / 10_000,
                rss: 1 << 30,
            });
        }
        if random.is_multiple_of(20) {
            thread = ThreadId((random >> 20) as u32 % 4);
        }
        if (random >> 8).is_multiple_of(3) {
            leaf = (random >> 32) as usize % leaves.len();
        }
        if live.len() > 2000 || !live.is_empty() && random >> 63 == 0 {
            // Mostly one of the last blocks.
            let back = (random >> 40) as usize % live.len().min(4);
            let address = live.swap_remove(live.len() - 1 - back);
            free.push(address);
            return Ok(Event::Deallocation {
                thread,
                allocator: Allocator::Free,
                address,
                size: 0,
            });
        }
        let size = 16 + (random >> 16) % 1024;
        let at = free.pop().unwrap_or_else(|| {
            address += 1056;
            address
        });
        if !(random >> 24).is_multiple_of(1000) {
            live.push(at);
        }
        Ok(Event::Allocation {
            context: ContextId::NONE,
            thread,
            allocator: Allocator::Malloc,
            address: at,
            size,
            stack: leaves[leaf],
        })
    })
}

/// Returns the CPU time of this thread: on a busy machine wall time means little.
fn cpu_ns() -> u64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|n| n.parse().ok()).unwrap_or(0)
}

fn memory(field: &str) -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with(field));
    line.unwrap_or("?")
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}

fn main() {
    let count: u64 = std::env::args()
        .nth(1)
        .map_or(10_000_000, |n| n.parse().unwrap());
    let path = std::env::args().nth(2).map_or_else(
        || std::env::temp_dir().join("heapray-speed.bin"),
        Into::into,
    );
    let time = |what: &str, work: &mut dyn FnMut()| {
        let start = cpu_ns();
        work();
        let ms = (cpu_ns() - start) as f64 / 1e6;
        println!("{what:<34} {ms:>6.0} ms   {}", memory("VmHWM"));
    };
    let (report, leaves) = report();
    println!("{count} events, {} stacks", report.stacks.len());
    let mut sum = 0u64;
    time("making the events", &mut || {
        sum = service(leaves.clone(), count)
            .map(|e| matches!(e, Ok(Event::Allocation { .. })) as u64)
            .sum();
    });
    println!("{sum} allocations");
    time("write_all, events made included", &mut || {
        let out = BufWriter::new(File::create(&path).unwrap());
        write_all(&report, service(leaves.clone(), count), Version::V13, out).unwrap();
    });
    println!("{} bytes on disk", fs::metadata(&path).unwrap().len());
    time("events, one by one", &mut || {
        let input = BufReader::new(File::open(&path).unwrap());
        sum = events(input).unwrap().map(|e| u64::from(e.is_ok())).sum();
    });
    println!("{sum} events came back");
    let mut capture = None;
    time("read", &mut || {
        // The report was empty, so its sums come from the events, as when a file of memray is read.
        capture = Some(read(BufReader::new(File::open(&path).unwrap())).unwrap());
    });
    let capture = capture.unwrap();
    time("stats", &mut || {
        sum = stats::text(&capture.report).len() as u64
    });
    time("write_aggregated", &mut || {
        write_aggregated(&capture.report, Version::V13, std::io::sink()).unwrap();
    });
}
