//! A week of continuous sampling in accelerated time: the collector's tables get the samples of a busy service, and a clock
//! that runs as fast as they can be made. Memory and reports must not grow with the time.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use heapray::capture::event::{Event, Kind, NodeId};
use heapray::collector::snapshot::{Hooks, Module, ModuleId, Snapshot};
use heapray::collector::{Clock, Export, Tables};
use heapray::symbolize::{ReportOptions, report};
use heapray_bench_workloads::{Result, thread_cpu};
use heapray_report::memray::{Version, write_aggregated};

use super::collector::Random;
use super::{measured, mib, symbols};

/// Hours after which figures are printed.
const HOURS: [u64; 6] = [1, 6, 24, 72, 120, 168];
const TICKS_PER_MS: u64 = 1_000;
/// Bytes between two samples, which is the default, and samples a second: a service that allocates 100 MiB a second.
const MEAN: u64 = 512 << 10;
const SAMPLES: u64 = 200;
/// Sampled blocks that are live at one time, each replaced at random.
const LIVE: usize = 2_000;
const STACKS: usize = 5_000;
/// Threads that live for the whole week, and those that a pool has at one time.
const WORKERS: usize = 8;
const POOLED: usize = 8;
/// Milliseconds after which a thread of the pool has ended and another one has taken its place.
const LIFE_MS: u64 = 10 * 60 * 1000;
/// Stacks that the pool's threads share: the last ones.
const OF_POOL: usize = 200;

/// Prints the figures.
pub(crate) fn section() -> Result<()> {
    let values = measured(&["hours"])?;
    println!("\n## A week of continuous sampling, in accelerated time\n");
    println!(
        "{SAMPLES} samples a second, {LIVE} sampled blocks live, {STACKS} call stacks, {WORKERS} threads that live for all of it, \
         and {POOLED} at one time that live for ten minutes.\n"
    );
    println!(
        "| hours | samples | CPU a sample | tables | rows of the timeline | snapshot | report | file |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|");
    for hours in HOURS {
        let get = |name: &str| values.get(&format!("{name}_{hours}"));
        println!(
            "| {hours} | {} | {:.0} ns | {} | {} | {:.1} ms | {:.0} ms | {} |",
            get("samples"),
            get("sample_ns"),
            mib(get("memory") as u64),
            get("rows"),
            get("export_ms"),
            get("report_ms"),
            mib(get("file") as u64),
        );
    }
    Ok(())
}

/// Measures in this process.
pub(crate) fn child() -> Result<()> {
    let mut service = Service::new()?;
    let mut samples = 0;
    for until in HOURS {
        let (spent, more) = service.run_to(until * 3600 * 1000);
        samples += more;
        let tell = |name: &str, value: f64| println!("{name}_{until}={value}");
        tell("samples", samples as f64);
        tell("sample_ns", spent.as_nanos() as f64 / more as f64);
        tell("memory", service.tables.memory_bytes() as f64);
        let start = Instant::now();
        let export = service.tables.export();
        tell("export_ms", start.elapsed().as_secs_f64() * 1e3);
        tell("rows", export.timeline.len() as f64);
        let snapshot = service.snapshot(export);
        let start = Instant::now();
        let made = report(&snapshot, &ReportOptions::default());
        let mut file = Vec::new();
        write_aggregated(&made.report, Version::default(), &mut file)?;
        tell("report_ms", start.elapsed().as_secs_f64() * 1e3);
        tell("file", file.len() as f64);
        black_box(file);
    }
    Ok(())
}

/// Service that allocates and frees for a week.
struct Service {
    tables: Tables,
    now: u64,
    random: Random,
    nodes: Vec<NodeId>,
    live: Vec<u64>,
    /// The threads that live, and how many ever began.
    threads: Vec<u32>,
    begun: u32,
    next_thread: u64,
    next_reading: u64,
    events: Vec<Event>,
    modules: Arc<Vec<Module>>,
}

impl Service {
    fn new() -> Result<Service> {
        let clock = Clock {
            start_stamp: 0,
            ticks_per_ms: TICKS_PER_MS as f64,
        };
        let mut tables = Tables::new(clock).with_samples(MEAN, 1);
        let program = std::env::current_exe()?;
        let program = program.to_str().ok_or("the path is not UTF-8")?;
        // Stacks of three frames: code of this program, of which the outer ones are shared.
        let addresses = symbols::addresses(program, STACKS)?;
        let tree = tables.call_tree_mut();
        let nodes = (0..STACKS).map(|at| {
            let frames = [addresses[0], addresses[at / 100], addresses[at]];
            frames.into_iter().fold(NodeId::ROOT, |node, address| {
                tree.child(node, address + 1, ModuleId(0))
            })
        });
        let mut service = Service {
            nodes: nodes.collect(),
            tables,
            now: 0,
            random: Random::new(),
            live: vec![0; LIVE],
            threads: vec![0; WORKERS + POOLED],
            begun: 0,
            next_thread: 0,
            next_reading: 0,
            events: Vec::new(),
            modules: symbols::table(program, &[])?.modules,
        };
        for at in 0..service.threads.len() {
            service.begin_thread(at);
        }
        Ok(service)
    }

    /// Goes on until `end_ms`. Returns the time that the tables took, and the number of samples.
    fn run_to(&mut self, end_ms: u64) -> (Duration, u64) {
        let mut samples = 0;
        let (mut time, end) = (Duration::ZERO, end_ms * TICKS_PER_MS);
        while self.now < end {
            let until = end.min(self.now + 1000 * TICKS_PER_MS);
            while self.now < until {
                self.now += 1000 * TICKS_PER_MS / SAMPLES;
                self.sample();
                samples += 1;
            }
            let start = thread_cpu();
            for batch in self.events.chunks(2048) {
                self.tables.apply_batch(batch);
            }
            if self.now >= self.next_reading {
                self.tables.reading(self.now, 100 << 20, 5 << 20);
                self.next_reading = self.now + self.tables.reading_step_ms() * TICKS_PER_MS;
            }
            time += thread_cpu() - start;
            self.events.clear();
        }
        (time, samples)
    }

    /// Replaces a block at random, on a thread at random.
    fn sample(&mut self) {
        if self.now >= self.next_thread {
            self.next_thread = self.now + LIFE_MS / POOLED as u64 * TICKS_PER_MS;
            let at = WORKERS + self.begun as usize % POOLED;
            let name = *b"blocking";
            self.push(
                self.threads[at],
                Kind::ThreadName,
                u64::from_le_bytes(name),
                0,
                NodeId::ROOT,
            );
            self.begin_thread(at);
        }
        let of_thread = self.random.below((WORKERS + POOLED) as u64) as usize;
        let thread = self.threads[of_thread];
        let at = self.random.below(LIVE as u64) as usize;
        let address = 0x7f00_0000_0000 + at as u64 * 4096 + self.random.below(128) * 16;
        let old = std::mem::replace(&mut self.live[at], address);
        if old != 0 {
            self.push(thread, Kind::Free, old, 0, NodeId::ROOT);
        }
        let (first, stacks) = match of_thread < WORKERS {
            true => (0, STACKS),
            false => (STACKS - OF_POOL, OF_POOL),
        };
        // Most samples are of the first stacks, as in a service that has a few hot places.
        let last = self.random.below(stacks as u64) + 1;
        let node = self.nodes[first + self.random.below(last) as usize];
        let size = 64 << self.random.below(12);
        self.push(thread, Kind::Malloc, address, size, node);
    }

    /// Begins a thread in the place `at` of another one.
    fn begin_thread(&mut self, at: usize) {
        self.begun += 1;
        let thread = self.begun;
        self.threads[at] = thread;
        self.push(
            thread,
            Kind::ThreadStart,
            0,
            u64::from(thread),
            NodeId::ROOT,
        );
        self.push(thread, Kind::Sampling, 0, MEAN, NodeId::ROOT);
    }

    fn push(&mut self, thread: u32, kind: Kind, address: u64, size: u64, node: NodeId) {
        self.events.push(Event {
            stamp: self.now,
            thread,
            kind,
            address,
            size,
            node,
        });
    }

    fn snapshot(&self, export: Export) -> Snapshot {
        let mut stacks = export.stacks;
        stacks.modules = Arc::clone(&self.modules);
        Snapshot {
            started: SystemTime::UNIX_EPOCH,
            taken: SystemTime::UNIX_EPOCH + Duration::from_millis(self.now / TICKS_PER_MS),
            still_recording: true,
            stacks,
            survivors: export.survivors,
            history: export.history,
            timeline: export.timeline,
            process_memory: None,
            marks: export.marks,
            totals: export.totals,
            log: None,
            log_given_up: None,
            stacks_bounded: None,
            sampling: None,
            lost_events: 0,
            lost_since_ms: None,
            stacks_cut: 0,
            stacks_incomplete: 0,
            own_bytes: 0,
            collector_cpu_ns: 0,
            hooks: Hooks::Got,
            notes: export.notes,
        }
    }
}
