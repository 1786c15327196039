//! The cost of the collector's tables, which get events of several kinds of program directly: no hook, no ring, no thread.
//!
//! Times are CPU time. Instructions are counted by callgrind, in this section run again under it: other load on the machine
//! does not change them.

use std::fs::File;
use std::time::Duration;

use heapray::capture::event::{Event, Kind, NodeId};
use heapray::collector::snapshot::EventLog;
use heapray::collector::{Clock, LogReader, LogWriter, Tables};

use heapray_bench_workloads::{Result, thread_cpu};

use super::mib;
use crate::callgrind;
use crate::runs::median;

const CLOCK: Clock = Clock {
    start_stamp: 0,
    ticks_per_ms: 3_000_000.0,
};
/// Events passed at once, as in the merge.
const BATCH: usize = 2048;
/// Events made at once, between two readings of the clock: few enough for the second-level cache.
const MADE: usize = 8 * BATCH;
const EVENTS: usize = 8_000_000;
const ROUNDS: usize = 5;
/// Events for counting instructions: callgrind is slow.
const COUNTED: usize = 1_000_000;

/// Variable that tells this section only to feed events: the program, `log` or `plain`, how many.
const COUNT: &str = "HEAPRAY_BENCH_COLLECTOR";

/// Function that begins a program.
type Make = fn() -> Program;

/// Each kind of program, by name.
const PROGRAMS: [(&str, Make); 4] = [
    ("pairs", Program::pairs),
    ("service", Program::service),
    ("grow", Program::grow),
    ("replace", Program::replace),
];

/// Prints the table.
pub(crate) fn section() -> Result<()> {
    if let Ok(what) = std::env::var(COUNT) {
        return count(&what);
    }
    println!("\n## The collector's tables alone, an event\n");
    println!(
        "Medians of {ROUNDS} rounds of {EVENTS} events, CPU time; instructions by callgrind.\n"
    );
    let missing = callgrind::missing();
    if let Some(missing) = &missing {
        println!("({missing})");
    }
    println!(
        "| | without the log | | with it | | writing the log | bytes in it | tables | reading it |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (name, make) in PROGRAMS {
        let (mut plain, mut logged) = (Vec::new(), Vec::new());
        let (mut written, mut read) = (Vec::new(), Vec::new());
        let (mut log_bytes, mut memory) = (0.0, 0);
        for _ in 0..ROUNDS {
            plain.push(each(run(make(), EVENTS, false)?.time));
            let mut run = run(make(), EVENTS, true)?;
            logged.push(each(run.time));
            let log = run.log()?;
            written.push(each(run.writing()));
            log_bytes = log.bytes as f64 / EVENTS as f64;
            memory = run.tables.memory_bytes();
            let start = thread_cpu();
            let good = LogReader::new(log).filter(std::result::Result::is_ok);
            std::hint::black_box(good.count());
            read.push(each(thread_cpu() - start));
        }
        let instructions = |log| {
            if missing.is_none() {
                instructions(name, log).map(|each| format!("{each:.0} instructions"))
            } else {
                Ok(String::new())
            }
        };
        println!(
            "| {name} | {:.1} ns | {} | {:.1} ns | {} | {:.1} ns | {log_bytes:.2} | {} | {:.1} ns |",
            median(plain),
            instructions("plain")?,
            median(logged),
            instructions("log")?,
            median(written),
            mib(memory),
            median(read),
        );
    }
    println!(
        "\n- pairs: one thread, malloc and free in turn, 1,000 call sites in runs of 8, 16 to 1,024 bytes"
    );
    println!(
        "- service: 8 threads, 155 call sites each, nine of ten blocks freed within a request, 50,000 live"
    );
    println!(
        "- grow: one thread, 200 call sites, every tenth block freed at once, the others stay"
    );
    println!(
        "- replace: a million live blocks of 100,000 call sites and 32 threads, replaced one by one at random"
    );
    Ok(())
}

fn each(time: Duration) -> f64 {
    time.as_nanos() as f64 / EVENTS as f64
}

/// Tables that events were fed to.
struct Run {
    /// CPU time of the tables for the events, and that of the log's thread before them.
    time: Duration,
    writing_before: Duration,
    tables: Tables,
}

impl Run {
    /// Returns the log, when all of it is in its file.
    fn log(&mut self) -> Result<EventLog> {
        let log = self.tables.pending_log().ok_or("there is no log")?;
        Ok(log.wait()?)
    }

    /// Returns the CPU time in which the log's thread has compressed and written it.
    fn writing(&self) -> Duration {
        writing(&self.tables) - self.writing_before
    }
}

fn writing(tables: &Tables) -> Duration {
    Duration::from_nanos(tables.log().map_or(0, LogWriter::cpu_ns))
}

/// Feeds so many events to tables.
fn run(mut program: Program, events: usize, log: bool) -> Result<Run> {
    let mut tables = Tables::new(CLOCK);
    if log {
        tables = tables.with_log(LogWriter::new(spool()?, u64::MAX, 8 << 20));
    }
    for _ in 0..program.before.div_ceil(MADE) {
        feed(&mut tables, program.make());
    }
    if let Some(log) = tables.pending_log() {
        log.wait()?;
    }
    let writing_before = writing(&tables);
    let mut time = Duration::ZERO;
    for _ in 0..events.div_ceil(MADE) {
        let made = program.make();
        let start = thread_cpu();
        measured(&mut tables, made);
        time += thread_cpu() - start;
    }
    Ok(Run {
        time,
        writing_before,
        tables,
    })
}

/// Applies events. A separate function, so that callgrind finds it by name.
#[inline(never)]
fn measured(tables: &mut Tables, events: &[Event]) {
    feed(tables, events);
}

fn feed(tables: &mut Tables, events: &[Event]) {
    for batch in events.chunks(BATCH) {
        tables.apply_batch(batch);
    }
}

fn spool() -> Result<File> {
    let name = format!("heapray-bench-collector-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let file = File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn instructions(program: &str, log: &str) -> Result<f64> {
    let what = (COUNT, format!("{program} {log}"));
    let sum = callgrind::of_this_program("*collector::measured*", &["collector"], &[what])?;
    let whole = COUNTED.div_ceil(MADE) * MADE;
    Ok(sum / whole as f64)
}

/// Runs the part that is counted.
fn count(what: &str) -> Result<()> {
    let (name, log) = what.split_once(' ').ok_or("PROGRAM plain|log")?;
    let (_, make) = PROGRAMS
        .into_iter()
        .find(|(known, _)| *known == name)
        .ok_or("an unknown program")?;
    run(make(), COUNTED, log == "log")?;
    Ok(())
}

/// Random numbers by xorshift: the same events in each run.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new() -> Random {
        Random(88_172_645_463_325_252)
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((u128::from(self.0) * u128::from(bound)) >> 64) as u64
    }

    fn size(&mut self) -> u64 {
        let shift = self.below(8);
        8 + self.below(16 << shift)
    }
}

/// Heap with size classes and last-in-first-out reuse, as in allocators.
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

    fn give(&mut self, block: Block) {
        self.free[(block.size / 16) as usize].push(block.address);
    }
}

#[derive(Clone, Copy)]
struct Block {
    address: u64,
    size: u64,
}

/// Endless program: its next actions, and its blocks.
struct Program {
    random: Random,
    heap: Addresses,
    events: Vec<Event>,
    stamp: u64,
    thread: u32,
    kept: Vec<Block>,
    open: Vec<Vec<Block>>,
    sites: Vec<u64>,
    turn: Vec<usize>,
    /// Events before it reaches its full size.
    before: usize,
    step: fn(&mut Program),
}

impl Program {
    fn new(before: usize, step: fn(&mut Program)) -> Program {
        let mut random = Random::new();
        Program {
            heap: Addresses::default(),
            events: Vec::with_capacity(MADE),
            stamp: 0,
            thread: 1,
            kept: Vec::new(),
            open: vec![Vec::new(); 8],
            sites: (0..155).map(|_| random.size()).collect(),
            turn: vec![0; 8],
            before,
            step,
            random,
        }
    }

    /// Returns the next [`MADE`] events.
    fn make(&mut self) -> &[Event] {
        self.events.clear();
        while self.events.len() < MADE {
            (self.step)(self);
        }
        self.events.truncate(MADE);
        &self.events
    }

    fn push(&mut self, kind: Kind, block: Block, node: u64) {
        self.stamp += 100;
        self.events.push(Event {
            stamp: self.stamp,
            thread: self.thread,
            kind,
            address: block.address,
            size: block.size,
            node: NodeId(node as u32),
        });
    }

    fn allocate(&mut self, size: u64, node: u64) -> Block {
        let address = self.heap.take(size);
        let block = Block { address, size };
        self.push(Kind::Malloc, block, node);
        block
    }

    fn free(&mut self, block: Block) {
        self.push(Kind::Free, Block { size: 0, ..block }, 0);
        self.heap.give(block);
    }

    fn pairs() -> Program {
        Program::new(0, |this| {
            let node = 1 + this.random.below(1000);
            for _ in 0..8 {
                let size = 16 + this.random.below(1009);
                let block = this.allocate(size, node);
                this.free(block);
            }
        })
    }

    fn service() -> Program {
        Program::new(1_000_000, |this| {
            // A run of a few events of one thread, as in the merge of two busy cores.
            if this.random.below(6) == 0 {
                this.thread = 1 + this.random.below(8) as u32;
            }
            let thread = this.thread as usize - 1;
            if this.random.below(2) == 0 || this.open[thread].is_empty() {
                let site = (this.turn[thread] + 1) % this.sites.len();
                this.turn[thread] = site;
                let size = if site % 4 == 0 {
                    this.random.size()
                } else {
                    this.sites[site]
                };
                let block = this.allocate(size, 10 + site as u64);
                this.open[thread].push(block);
                return;
            }
            let last = this.open[thread].len() as u64 - 1;
            let at = last - this.random.below(last.min(4) + 1);
            let mut block = this.open[thread].remove(at as usize);
            if this.random.below(10) == 0 {
                this.kept.push(block);
                if this.kept.len() < 50_000 {
                    return;
                }
                let old = this.random.below(this.kept.len() as u64) as usize;
                block = this.kept.swap_remove(old);
            }
            this.free(block);
        })
    }

    fn grow() -> Program {
        Program::new(0, |this| {
            let node = 1 + this.random.below(200);
            let size = this.random.size();
            let block = this.allocate(size, node);
            if this.random.below(10) == 0 {
                this.free(block);
            }
        })
    }

    fn replace() -> Program {
        Program::new(1_000_000, |this| {
            if this.kept.len() >= 1_000_000 {
                this.thread = 1 + this.random.below(32) as u32;
                let at = this.random.below(this.kept.len() as u64) as usize;
                let old = this.kept.swap_remove(at);
                this.free(old);
            }
            let node = this.random.below(100_000);
            this.thread = 1 + (node % 32) as u32;
            let size = this.random.size();
            let block = this.allocate(size, node);
            this.kept.push(block);
        })
    }
}
