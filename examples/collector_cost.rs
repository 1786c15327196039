//! What the collector's tables cost: nanoseconds an event, bytes a live block, time of a snapshot, size and speed of the log.
//!
//! `cargo run --release --example collector_cost [events of a run] [service|large] [plain]`; under `valgrind --tool=callgrind` with few events the
//! instructions an event. Times are CPU time (`/proc/self/schedstat`) and the best of three runs, since the machine may
//! have other things to do.
#![allow(clippy::print_stdout)] // its figures are what it is for

use std::collections::HashMap;
use std::fs::File;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::time::Duration;

use heapray::capture::event::{Event, Kind, NodeId};
use heapray::collector::{Clock, LogReader, LogWriter, Tables};

const CLOCK: Clock = Clock {
    start_stamp: 0,
    ticks_per_ms: 3_000_000.0,
};
const BATCH: usize = 1024;
const RUNS: usize = 3;

/// xorshift: the same events in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }
}

/// A heap with size classes and last-in-first-out reuse, as allocators have.
#[derive(Default)]
struct Addresses {
    free: Vec<Vec<u64>>,
    end: u64,
}

impl Addresses {
    fn take(&mut self, size: u64) -> u64 {
        let class = (size / 16) as usize;
        self.free
            .resize_with(self.free.len().max(class + 1), Vec::new);
        self.free[class].pop().unwrap_or_else(|| {
            self.end += (class as u64 + 1) * 16;
            0x7f12_3400_0000 + self.end
        })
    }

    fn give(&mut self, address: u64, size: u64) {
        self.free[(size / 16) as usize].push(address);
    }
}

fn sizes(random: &mut Random) -> u64 {
    let shift = random.below(8);
    8 + random.below(16 << shift)
}

/// Requests on 8 threads at a time, each about 155 allocations at sites of its own; nine of ten blocks are freed within the
/// request, the others live on for a while.
fn service(events: usize) -> Vec<Event> {
    let (mut random, mut heap) = (Random(88_172_645_463_325_252), Addresses::default());
    let mut list = Vec::with_capacity(events);
    let mut kept: Vec<(u64, u64)> = Vec::new();
    let mut open: Vec<Vec<(u64, u64)>> = vec![Vec::new(); 8];
    let mut step = [0u32; 8];
    let fixed: Vec<u64> = (0..155).map(|_| sizes(&mut random)).collect();
    let mut thread = 0;
    while list.len() < events {
        // A run of a few events of one thread, as the merge of two busy cores gives.
        if random.below(6) == 0 {
            thread = random.below(8) as usize;
        }
        let stamp = list.len() as u64 * 100;
        let mut push = |kind, address, size, node| {
            list.push(Event {
                stamp,
                thread: thread as u32 + 1,
                kind,
                address,
                size,
                node: NodeId(node),
            });
        };
        let blocks = &mut open[thread];
        if random.below(2) == 0 || blocks.is_empty() {
            step[thread] = (step[thread] + 1) % 155;
            let site = step[thread];
            let size = if site % 4 == 0 {
                sizes(&mut random)
            } else {
                fixed[site as usize]
            };
            let address = heap.take(size);
            push(Kind::Malloc, address, size, 10 + site);
            blocks.push((address, size));
        } else {
            let last = blocks.len() as u64 - 1;
            let at = last - random.below(last.min(4) + 1);
            let (mut address, mut size) = blocks.remove(at as usize);
            if random.below(10) == 0 {
                kept.push((address, size));
                if kept.len() < 50_000 {
                    continue;
                }
                let old = random.below(kept.len() as u64) as usize;
                (address, size) = kept.swap_remove(old);
            }
            push(Kind::Free, address, 0, 0);
            heap.give(address, size);
        }
    }
    list
}

/// A million live blocks of 100,000 sites, replaced one by one at random: no cache holds any of it.
fn large(events: usize) -> Vec<Event> {
    let (mut random, mut heap) = (Random(7), Addresses::default());
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut list = Vec::with_capacity(events);
    while list.len() < events {
        let stamp = list.len() as u64 * 100;
        let thread = 1 + random.below(32) as u32;
        let full = live.len() >= 1_000_000;
        if full {
            let at = random.below(live.len() as u64) as usize;
            let (address, size) = live.swap_remove(at);
            heap.give(address, size);
            list.push(Event {
                stamp,
                thread,
                kind: Kind::Free,
                address,
                size: 0,
                node: NodeId::ROOT,
            });
        }
        let size = sizes(&mut random);
        let address = heap.take(size);
        live.push((address, size));
        let node = random.below(100_000) as u32;
        list.push(Event {
            stamp,
            thread: 1 + node % 32,
            kind: Kind::Malloc,
            address,
            size,
            node: NodeId(node),
        });
    }
    list
}

/// CPU time of this thread up to now.
fn cpu() -> io::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let ns = text.split(' ').next().and_then(|ns| ns.parse().ok());
    Ok(Duration::from_nanos(
        ns.ok_or_else(|| io::Error::other("no time in schedstat"))?,
    ))
}

fn spool() -> io::Result<File> {
    let path = std::env::temp_dir().join(format!("collector-cost-{}", std::process::id()));
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn run(events: &[Event], log: bool) -> io::Result<(Duration, Tables)> {
    let mut tables = Tables::new(CLOCK);
    if log {
        tables = tables.with_log(LogWriter::new(spool()?, u64::MAX));
    }
    let start = cpu()?;
    for batch in events.chunks(BATCH) {
        tables.apply_batch(batch);
    }
    Ok((cpu()? - start, tables))
}

fn best(events: &[Event], log: bool) -> io::Result<(Duration, Tables)> {
    let mut best = run(events, log)?;
    for _ in 1..RUNS {
        let next = run(events, log)?;
        if next.0 < best.0 {
            best = next;
        }
    }
    Ok(best)
}

/// The least that any collector does: a standard map from address to two words, with a fast hash.
#[derive(Default)]
struct Multiply(u64);

impl Hasher for Multiply {
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, _: &[u8]) {}

    fn write_u64(&mut self, value: u64) {
        self.0 = value.wrapping_mul(0xF135_7AEA_2E62_A9C5);
    }
}

fn map_alone(events: &[Event]) -> io::Result<Duration> {
    let mut map: HashMap<u64, [u64; 2], BuildHasherDefault<Multiply>> = HashMap::default();
    let start = cpu()?;
    for event in events {
        if event.kind == Kind::Free {
            map.remove(&event.address);
        } else {
            map.insert(event.address, [event.size, u64::from(event.node.0)]);
        }
    }
    std::hint::black_box(map.len());
    Ok(cpu()? - start)
}

fn main() -> io::Result<()> {
    let count = std::env::args()
        .nth(1)
        .and_then(|count| count.parse().ok())
        .unwrap_or(10_000_000);
    let each = |time: Duration| time.as_nanos() as f64 / count as f64;
    let only = std::env::args().nth(2);
    for (name, make) in [("service", service as fn(usize) -> _), ("large", large)] {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        let events = make(count);
        let map = map_alone(&events)?.min(map_alone(&events)?);
        println!(
            "{name}: {:.1} ns an event for a standard map alone",
            each(map)
        );
        let (plain, mut tables) = best(&events, false)?;
        println!("{name}: {:.1} ns an event", each(plain));
        let live = tables.counters().live.count;
        let bytes = tables.memory_bytes();
        let start = cpu()?;
        let export = tables.export();
        println!(
            "{name}: snapshot of {live} blocks and {} sites in {:.1} ms; tables {bytes} bytes",
            export.sites.len(),
            (cpu()? - start).as_secs_f64() * 1e3
        );
        if std::env::args().nth(3).is_some_and(|log| log == "plain") {
            continue;
        }
        let (logged, mut tables) = best(&events, true)?;
        let log = tables
            .export()
            .log
            .ok_or_else(|| io::Error::other("the log was given up"))?;
        println!(
            "{name}: {:.1} ns an event with the log, {:.2} bytes an event",
            each(logged),
            log.bytes as f64 / count as f64
        );
        let start = cpu()?;
        let read = LogReader::new(log.file, log.bytes)
            .filter(Result::is_ok)
            .count();
        println!(
            "{name}: {read} events read in {:.0} ms, {:.1} ns each",
            (cpu()? - start).as_secs_f64() * 1e3,
            each(cpu()? - start)
        );
    }
    Ok(())
}
