//! The head of the page's data: process, time, conditions, and the length of each table.

use serde::Serialize;

use super::contexts::{Labels, UsedContexts};
use super::known::KnownMemory;
use super::ranking::Ranked;
use super::{Page, generations};
use crate::model::{Allocator, ProcessMemory, Runs, Tally};
use crate::stats::Estimates;
use crate::views::{Origins, fragmentation};

/// Head of the page's data. Numbers stay exact in the browser up to 2^53, nine petabytes.
#[derive(Serialize)]
pub(super) struct Head<'a> {
    producer: &'a str,
    command_line: &'a str,
    pid: u32,
    start_ms: i64,
    end_ms: i64,
    events: u64,
    threads: Vec<Thread<'a>>,
    totals: Totals,
    by_allocator: Vec<(&'a str, Pair)>,
    allocators: Vec<(u8, &'static str)>,
    conditions: Conditions<'a>,
    packages: Vec<(&'a str, u8)>,
    /// Labels of each context from number 1, each a key and a value.
    contexts: Vec<&'a Labels>,
    /// Runs of the same contexts.
    runs: Vec<&'a Runs>,
    marks: Vec<Mark<'a>>,
    generations: &'a [u64],
    generation_allocated: Vec<u64>,
    leaks: Ranked<'a>,
    known: KnownMemory,
    slots: Option<&'a [u64]>,
    has_log: bool,
    memory: Option<Memory<'a>>,
    fragmentation: Option<String>,
    source: Source<'a>,
    counts: Counts,
}

/// Where the service's own sources are.
#[derive(Serialize)]
pub(super) struct Source<'a> {
    /// Directory to which `{file}` is relative.
    pub(super) root: &'a str,
    /// Template of addresses; empty if unknown.
    pub(super) url: &'a str,
    /// Frames, each with the number of the first of these lines.
    pub(super) excerpts: Vec<(u32, u32, &'a [String])>,
}

/// Blocks and bytes.
type Pair = (u64, u64);

#[derive(Serialize)]
struct Thread<'a> {
    name: &'a str,
    tid: u64,
    threads: u32,
}

#[derive(Serialize)]
struct Totals {
    allocated: Pair,
    freed: Pair,
    live: Pair,
    high_water: Pair,
    high_water_ms: Option<u64>,
    sizes_rounded: bool,
}

#[derive(Serialize)]
struct Conditions<'a> {
    still_recording: bool,
    hooks: &'a str,
    lost_events: u64,
    lost_since_ms: Option<u64>,
    stacks_cut: u64,
    stacks_incomplete: u64,
    unknown_frees: u64,
    log_given_up: Option<&'a str>,
    sampling: Option<Estimates>,
    notes: &'a [String],
    own_bytes: u64,
    collector_cpu_ns: u64,
    log_bytes: u64,
}

#[derive(Serialize)]
struct Mark<'a> {
    name: &'a str,
    at_ms: u64,
    live: Pair,
}

/// `model::ProcessMemory` with the same field names.
#[derive(Serialize)]
struct Memory<'a> {
    rss: u64,
    anonymous: Option<u64>,
    files: Option<u64>,
    shared: Option<u64>,
    swapped: Option<u64>,
    stacks: Option<u64>,
    stack_count: u32,
    own_mapped: u64,
    own_heap: u64,
    allocators: Vec<(&'a str, u64, u64)>,
    cgroup: Option<u64>,
    cgroup_limit: Option<u64>,
}

/// Number of rows of each table.
#[derive(Serialize)]
pub(super) struct Counts {
    pub(super) strings: usize,
    pub(super) frames: usize,
    pub(super) nodes: usize,
    pub(super) rows: usize,
    pub(super) survivors: usize,
    pub(super) intervals: usize,
    pub(super) sizes: usize,
    pub(super) moments: usize,
}

fn pair(tally: Tally) -> Pair {
    (tally.count, tally.bytes)
}

impl<'a> Head<'a> {
    pub(super) fn of(
        page: &Page<'a>,
        origins: &'a Origins,
        contexts: &UsedContexts<'a>,
        leaks: Ranked<'a>,
        known: KnownMemory,
        source: Source<'a>,
        counts: Counts,
    ) -> Head<'a> {
        let report = page.report;
        let (about, totals) = (&report.about, &report.totals);
        Head {
            producer: &about.producer,
            command_line: &about.command_line,
            pid: about.pid,
            start_ms: about.start_ms,
            end_ms: about.end_ms,
            events: about.events,
            threads: report
                .threads
                .iter()
                .map(|thread| Thread {
                    name: report.strings.get(thread.name),
                    tid: thread.tid,
                    threads: thread.threads,
                })
                .collect(),
            totals: Totals {
                allocated: pair(totals.allocated),
                freed: pair(totals.freed),
                live: pair(totals.live),
                high_water: pair(totals.high_water),
                high_water_ms: totals.high_water_ms,
                sizes_rounded: totals.sizes_rounded,
            },
            by_allocator: totals
                .by_allocator
                .iter()
                .map(|&(allocator, tally)| (allocator.name(), pair(tally)))
                .collect(),
            allocators: Allocator::ALL.map(|kind| (kind.id(), kind.name())).to_vec(),
            conditions: Conditions::of(page),
            packages: origins
                .packages()
                .iter()
                .map(|package| (package.name.as_str(), package.kind as u8))
                .collect(),
            contexts: contexts.labels(),
            runs: contexts.runs(),
            marks: report
                .marks
                .iter()
                .map(|mark| Mark {
                    name: &mark.name,
                    at_ms: mark.at_ms,
                    live: pair(mark.live),
                })
                .collect(),
            generations: &report.survivors.starts_ms,
            generation_allocated: generations::allocated(report),
            leaks,
            known,
            slots: page
                .intervals
                .map(|intervals| intervals.starts_ms.as_slice()),
            has_log: page.has_log,
            memory: report.process_memory.as_ref().map(Memory::of),
            fragmentation: fragmentation(report).map(|found| found.advice()),
            source,
            counts,
        }
    }
}

impl<'a> Conditions<'a> {
    fn of(page: &Page<'a>) -> Conditions<'a> {
        let conditions = &page.report.conditions;
        Conditions {
            still_recording: conditions.still_recording,
            hooks: &conditions.hooks,
            lost_events: conditions.lost_events,
            lost_since_ms: conditions.lost_since_ms,
            stacks_cut: conditions.stacks_cut,
            stacks_incomplete: conditions.stacks_incomplete,
            unknown_frees: conditions.unknown_frees,
            log_given_up: conditions.log_given_up.as_deref(),
            sampling: conditions.sampling.as_ref().map(Estimates::of),
            notes: &conditions.notes,
            own_bytes: conditions.overhead.memory_bytes,
            collector_cpu_ns: conditions.overhead.collector_cpu_ns,
            log_bytes: conditions.overhead.log_bytes,
        }
    }
}

impl<'a> Memory<'a> {
    fn of(memory: &'a ProcessMemory) -> Memory<'a> {
        Memory {
            rss: memory.rss,
            anonymous: memory.anonymous,
            files: memory.files,
            shared: memory.shared,
            swapped: memory.swapped,
            stacks: memory.stacks,
            stack_count: memory.stack_count,
            own_mapped: memory.own_mapped,
            own_heap: memory.own_heap,
            allocators: memory
                .allocators
                .iter()
                .map(|allocator| (allocator.name.as_str(), allocator.in_use, allocator.kept))
                .collect(),
            cgroup: memory.cgroup,
            cgroup_limit: memory.cgroup_limit,
        }
    }
}
