//! Helpers: random captures, and a naive model that sums them up.
#![allow(dead_code, unreachable_pub, unused_macros, clippy::unwrap_used)] // each test file uses its part

#[macro_use]
pub mod real_memray;

use std::collections::BTreeMap;
use std::io::Read;

use heapray_report::Report;
use heapray_report::known::Known;
use heapray_report::model::{
    About, Allocator, AllocatorMemory, Conditions, Context, ContextId, Event, Frame, FrameId, Held,
    HistoryMoment, Mark, Module, Moment, Overhead, Place, ProcessMemory, Sampling, SamplingRate,
    Site, SizeCount, StackId, StrId, Survivor, Tally, Thread, ThreadId, Totals,
};
use proptest::prelude::*;

/// A report with the events that it sums up.
#[derive(Debug, Clone)]
pub struct Program {
    pub report: Report,
    pub events: Vec<Event>,
}

/// Mappings and the parts that are unmapped have whole pages.
pub const PAGE: u64 = 0x1000;

const ALLOCATORS: [Allocator; 8] = [
    Allocator::Malloc,
    Allocator::Realloc,
    Allocator::Calloc,
    Allocator::PosixMemalign,
    Allocator::AlignedAlloc,
    Allocator::Memalign,
    Allocator::Valloc,
    Allocator::Pvalloc,
];

/// Makes a report with `threads` threads and a small call tree, without events.
pub fn skeleton(threads: u32) -> Report {
    let mut report = Report {
        about: About {
            command_line: "leaky --serve".into(),
            pid: 4242,
            start_ms: 1_700_000_000_000,
            end_ms: 1_700_000_001_000,
            library_dir: "/rustc/0123/library".into(),
            package_dirs: vec!["/home/dev/.cargo/registry/src/index".into()],
            source_dirs: vec!["src".into()],
            own_crates: vec!["shop_*".into()],
            known: vec![Known {
                function: "shop::prices::*".into(),
                file: "prices.rs".into(),
                reason: "bounded".into(),
            }],
            replicas: vec!["shop-1".into(), "shop-2".into()],
            producer: "heapray 0.1.0".into(),
            python_allocator: 3,
            ..About::default()
        },
        ..Report::default()
    };
    for n in 0..threads {
        let name = report.strings.intern(&match n {
            0 => "main".to_owned(),
            n => format!("wörker-{n}"),
        });
        report.threads.push(Thread {
            tid: 100 + u64::from(n),
            name,
            threads: 1 + n,
        });
    }
    let places = [
        ("leaky::main", "src/main.rs", 21),
        ("leaky::run::<[u8; 4]>", "src/main.rs", 14),
        ("leaky::get|data", "src/worker.rs", 7),
        (
            "bytes::BytesMut::reserve",
            "/home/dev/.cargo/registry/src/index/bytes-1.7.2/src/lib.rs",
            667,
        ),
        (
            "alloc::vec::Vec<u8>::with_capacity",
            "/rustc/0123/library/alloc/src/vec/mod.rs",
            482,
        ),
        ("", "", 0),
        ("libc.so.6+0x1234", "/usr/lib/libc.so.6", 0),
        ("far::away", "src/far.rs", 4_000_000_000),
    ];
    for (function, file, line) in places {
        let frame = Frame {
            function: report.strings.intern(function),
            file: report.strings.intern(file),
            line,
        };
        report.frames.push(frame);
    }
    report
}

/// Returns random frames of a stack, root first, as indices into [`skeleton`]'s frames.
fn path() -> impl Strategy<Value = Vec<u32>> {
    prop_oneof![
        9 => prop::collection::vec(0u32..8, 0..6),
        1 => (0usize..40).prop_map(|depth| vec![1; depth]),
    ]
}

pub fn stack(report: &mut Report, path: &[u32]) -> StackId {
    path.iter().fold(StackId::EMPTY, |parent, &frame| {
        report.stacks.child(parent, FrameId(frame))
    })
}

/// One step of a random program: thread, action, address, size, call stack.
type Step = (u32, u8, u64, u64, Vec<u32>);

fn step(threads: u32) -> impl Strategy<Value = Step> {
    let size = prop_oneof![0u64..5, 0u64..5000, 4000u64..10_000_000];
    (0..threads, 0u8..24, 0u64..24, size, path())
}

/// Makes a random program whose report is summed up by the model. Addresses come from a small pool and need not be aligned.
/// Some addresses are returned twice, some frees are of unknown blocks, and ranges overlap and are split.
pub fn program() -> impl Strategy<Value = Program> {
    (1u32..5).prop_flat_map(|threads| {
        prop::collection::vec(step(threads), 0..120)
            .prop_map(move |steps| interpret(threads, &steps))
    })
}

/// Does what [`program`] does, with allocations in contexts in half of the cases.
pub fn program_in_contexts() -> impl Strategy<Value = Program> {
    (program(), any::<bool>()).prop_map(|(program, contexts)| {
        if contexts {
            in_contexts(program)
        } else {
            program
        }
    })
}

/// Returns `program` with allocations in contexts.
fn in_contexts(mut program: Program) -> Program {
    let report = &mut program.report;
    set_contexts(report, &mut program.events);
    sum_up(report, &program.events);
    let now = report.timeline.last().map_or(0, |moment| moment.at_ms);
    fill_marks_and_memory(report, now);
    program
}

/// Gives `report` three contexts, and each allocation one of them.
pub fn set_contexts(report: &mut Report, events: &mut [Event]) {
    report.contexts = ["", "GET /a", "GET /b"]
        .map(|route| Context {
            labels: match route {
                "" => Vec::new(),
                route => vec![("route".to_owned(), route.to_owned())],
            },
            ..Context::default()
        })
        .to_vec();
    for event in events {
        if let Event::Allocation {
            context, address, ..
        } = event
        {
            *context = ContextId((*address >> 12) as u32 % 3);
        }
    }
}

/// Fills in data that events do not have, with all kinds of numbers, and with missing ones.
fn fill_marks_and_memory(report: &mut Report, now: u64) {
    report.marks = vec![Mark {
        name: "a mark; of żółć".into(),
        at_ms: now / 2,
        live: report.totals.live,
    }];
    report.survivors.starts_ms = vec![0, now / 2];
    report.survivors.list = (0..)
        .zip(&report.sites)
        .filter(|(_, site)| site.live.count > 0)
        .map(|(number, site)| Survivor {
            site: number,
            generation: number % 2,
            live: site.live,
        })
        .collect();
    report.history.moments = [now / 3, now / 2]
        .map(|at_ms| HistoryMoment {
            at_ms,
            allocated: report.totals.live,
        })
        .to_vec();
    report.history.list = (0..)
        .zip(&report.sites)
        .flat_map(|(number, site)| [(number, 0, site), (number, 1, site)])
        .filter(|(number, moment, _)| (number + moment) % 3 > 0)
        .map(|(number, moment, site)| Held {
            site: number,
            moment,
            live: site.live.bytes >> moment,
            allocated: site.allocated.bytes,
        })
        .collect();
    report.modules = vec![Module {
        path: "/srv/leaky".into(),
        build_id: "0a1b".into(),
        start: 0x5555_0000_1000,
        limit: 0x5555_0001_0000,
        offset: 0x1000,
        address: 0x2000,
        hash: "9f".into(),
    }];
    report.places = (0..report.frames.len() as u64)
        .map(|frame| Place {
            module: (frame % 3 > 0).then_some(0),
            address: 0x5555_0001_0000 - frame * 16,
            inlined: frame % 2 == 1,
        })
        .collect();
    report.process_memory = Some(ProcessMemory {
        rss: 9_000_000,
        anonymous: Some(0),
        stacks: Some(77),
        stack_count: 3,
        own_heap: 5,
        allocators: vec![AllocatorMemory::new("glibc", 1, u64::MAX)],
        cgroup_limit: Some(1 << 30),
        ..ProcessMemory::default()
    });
}

fn interpret(threads: u32, steps: &[Step]) -> Program {
    let mut report = skeleton(threads);
    let mut events = Vec::new();
    let mut now = 0;
    for (thread, what, place, size, path) in steps {
        let thread = ThreadId(*thread);
        let address = 0x7f00_0000_1000 + place * 0x1000 + place % 3;
        events.push(match what {
            0..10 => Event::Allocation {
                context: ContextId::NONE,
                thread,
                allocator: ALLOCATORS[usize::from(*what) % ALLOCATORS.len()],
                address,
                size: *size,
                stack: stack(&mut report, path),
            },
            10..17 => Event::Deallocation {
                thread,
                allocator: Allocator::Free,
                address,
                size: 0,
            },
            17..20 => Event::Allocation {
                context: ContextId::NONE,
                thread,
                allocator: Allocator::Mmap,
                address: 0x7e00_0000_0000 + place * PAGE,
                size: size % 64 * PAGE,
                stack: stack(&mut report, path),
            },
            20..22 => Event::Deallocation {
                thread,
                allocator: Allocator::Munmap,
                address: 0x7e00_0000_0000 + place * PAGE,
                size: size % 64 * PAGE,
            },
            _ => {
                now += size % 50;
                Event::Memory {
                    at_ms: now,
                    rss: 1_000_000 + size,
                }
            }
        });
    }
    report.about.end_ms = report.about.start_ms + now as i64;
    sum_up(&mut report, &events);
    fill_marks_and_memory(&mut report, now);
    report.conditions = Conditions {
        still_recording: true,
        hooks: "got".into(),
        lost_events: 3,
        lost_since_ms: Some(1_500),
        stacks_cut: 2,
        stacks_incomplete: 1,
        unknown_frees: report.conditions.unknown_frees,
        log_given_up: None,
        notes: vec!["a note; żółć".into()],
        overhead: Overhead {
            memory_bytes: 5 << 20,
            collector_cpu_ns: 123_456_789,
            log_bytes: 777,
        },
        sampling: events.len().is_multiple_of(2).then(|| Sampling {
            rates: vec![SamplingRate {
                at_ms: 0,
                mean_bytes: 1 << 19,
            }],
            samples: 17,
            asked: Tally {
                count: 1 << 40,
                bytes: 1 << 50,
            },
            allocated: Tally { count: 1, bytes: 2 },
            live: Tally { count: 3, bytes: 4 },
            high_water: Tally { count: 5, bytes: 6 },
        }),
    };
    Program { report, events }
}

/// The model's live memory: simple blocks by address, and every range of a mapping.
#[derive(Debug, Clone, Default)]
struct Live {
    blocks: BTreeMap<u64, (usize, u64, u64)>,
    runs: Vec<(u64, u64, usize, u64)>,
}

impl Live {
    fn tallies(&self, sites: usize) -> Vec<Tally> {
        let mut tallies = vec![Tally::default(); sites];
        for &(site, bytes, _) in self.blocks.values() {
            tallies[site] += Tally { count: 1, bytes };
        }
        for &(start, end, site, _) in &self.runs {
            tallies[site] += Tally {
                count: 1,
                bytes: end - start,
            };
        }
        tallies
    }

    fn total(&self) -> Tally {
        let blocks = self.blocks.values().map(|block| block.1);
        let runs = self.runs.iter().map(|run| run.1 - run.0);
        let mut total = Tally::default();
        for bytes in blocks.chain(runs) {
            total += Tally { count: 1, bytes };
        }
        total
    }
}

/// Fills in sites, totals, timeline and counts of `report` in the naive way.
pub fn sum_up(report: &mut Report, events: &[Event]) {
    let mut keys: Vec<(ThreadId, StackId, Allocator, ContextId)> = Vec::new();
    let mut allocated: Vec<Tally> = Vec::new();
    let mut temporary: Vec<Tally> = Vec::new();
    let mut live = Live::default();
    let mut peak = (Tally::default(), Live::default(), 0);
    let mut windows: BTreeMap<ThreadId, Vec<(u64, u64, usize)>> = BTreeMap::new();
    let mut totals = Totals::default();
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    let (mut now, mut seen, mut unknown, mut freed_blocks) = (0, 0, 0, 0);
    report.timeline.clear();
    for event in events {
        match *event {
            Event::Memory { at_ms, rss } => {
                now = at_ms;
                report.timeline.push(Moment {
                    at_ms,
                    rss,
                    heap: live.total().bytes,
                    own: 0,
                });
                continue;
            }
            Event::Allocation {
                thread,
                context,
                allocator,
                address,
                size,
                stack,
            } => {
                let key = (thread, stack, allocator, context);
                let site = keys.iter().position(|&k| k == key).unwrap_or_else(|| {
                    keys.push(key);
                    allocated.push(Tally::default());
                    temporary.push(Tally::default());
                    keys.len() - 1
                });
                let one = Tally {
                    count: 1,
                    bytes: size,
                };
                allocated[site] += one;
                totals.allocated += one;
                *sizes.entry(size).or_default() += 1;
                match totals.by_allocator.iter_mut().find(|a| a.0 == allocator) {
                    Some(entry) => entry.1 += one,
                    None => totals.by_allocator.push((allocator, one)),
                }
                let window = windows.entry(thread).or_default();
                window.insert(0, (address, size, site));
                window.truncate(2);
                if allocator == Allocator::Mmap {
                    if size > 0 {
                        live.runs.push((address, address + size, site, now));
                    }
                } else if let Some((_, bytes, _)) = live.blocks.insert(address, (site, size, now)) {
                    totals.freed.bytes += bytes;
                    freed_blocks += 1;
                }
            }
            Event::Deallocation {
                thread,
                allocator,
                address,
                size,
            } => {
                let ranged = allocator == Allocator::Munmap;
                let window = windows.entry(thread).or_default();
                if let Some(hit) = window
                    .iter()
                    .find(|w| w.0 == address && (!ranged || w.1 == size))
                {
                    temporary[hit.2] += Tally {
                        count: 1,
                        bytes: hit.1,
                    };
                }
                if ranged {
                    let end = address + size;
                    let before = live.total();
                    let gone = |run: &&(u64, u64, usize, u64)| {
                        size > 0 && run.0 >= address && run.1 <= end
                    };
                    freed_blocks += live.runs.iter().filter(gone).count() as u64;
                    live.runs = live
                        .runs
                        .iter()
                        .flat_map(|&(from, to, site, born)| {
                            if size == 0 || to <= address || from >= end {
                                return vec![(from, to, site, born)];
                            }
                            [(from, address.min(to)), (end.max(from), to)]
                                .into_iter()
                                .filter(|(a, b)| a < b)
                                .map(|(a, b)| (a, b, site, born))
                                .collect()
                        })
                        .collect();
                    let bytes = before.bytes - live.total().bytes;
                    totals.freed.bytes += bytes;
                    unknown += u64::from(bytes == 0);
                } else if let Some((_, bytes, _)) = live.blocks.remove(&address) {
                    totals.freed.bytes += bytes;
                    freed_blocks += 1;
                } else {
                    unknown += 1;
                }
            }
        }
        seen += 1;
        let total = live.total();
        if total.bytes >= peak.0.bytes {
            peak = (total, live.clone(), now);
        }
    }
    let at_end = live.tallies(keys.len());
    let at_peak = peak.1.tallies(keys.len());
    let oldest = |site: usize| {
        let blocks = live.blocks.values().filter(|b| b.0 == site).map(|b| b.2);
        let runs = live.runs.iter().filter(|r| r.2 == site).map(|r| r.3);
        blocks.chain(runs).min()
    };
    report.sites = (0..keys.len())
        .map(|site| Site {
            context: keys[site].3,
            thread: keys[site].0,
            stack: keys[site].1,
            allocator: keys[site].2,
            allocated: allocated[site],
            high_water: at_peak[site],
            live: at_end[site],
            temporary: temporary[site],
            oldest_live_ms: oldest(site),
        })
        .collect();
    totals.freed.count = freed_blocks;
    totals.live = live.total();
    totals.high_water = peak.0;
    totals.high_water_ms = (!report.timeline.is_empty()).then_some(peak.2);
    totals.sizes = sizes
        .into_iter()
        .map(|(size, count)| SizeCount { size, count })
        .collect();
    report.totals = totals;
    report.about.events = seen;
    report.conditions.unknown_frees = unknown;
}

/// Returns a call stack by names, root first.
pub fn names(report: &Report, stack: StackId) -> Vec<(String, String, u32)> {
    let mut names: Vec<_> = report
        .stacks
        .leaf_to_root(stack)
        .map(|frame| {
            let frame = report.frames[frame.0 as usize];
            let text = |id: StrId| report.strings.get(id).to_owned();
            (text(frame.function), text(frame.file), frame.line)
        })
        .collect();
    names.reverse();
    names
}

/// Returns the sites as texts, without handles of the report.
pub fn spelled(report: &Report) -> Vec<String> {
    report
        .sites
        .iter()
        .map(|site| {
            let thread = report.threads[site.thread.0 as usize];
            format!(
                "{} {:?} {:?} {:?} {:?} {:?} {:?} {:?}",
                report.strings.get(thread.name),
                site.allocator,
                names(report, site.stack),
                site.allocated,
                site.high_water,
                site.live,
                site.temporary,
                site.oldest_live_ms
            )
        })
        .collect()
}

/// Returns an event as text, without handles of the report.
pub fn spelled_event(report: &Report, event: &Event) -> String {
    match *event {
        Event::Allocation {
            thread,
            context,
            allocator,
            address,
            size,
            stack,
        } => format!(
            "{thread:?} {context:?} {allocator:?} {address:#x} {size} {:?}",
            names(report, stack)
        ),
        other => format!("{other:?}"),
    }
}

/// Unpacks an LZ4 frame.
pub fn unpacked(packed: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut frames = lz4_flex::frame::FrameDecoder::new(packed);
    for _ in ["memray's records", "what heapray adds"] {
        frames.read_to_end(&mut bytes).unwrap();
    }
    bytes
}

/// Returns a bare capture without heapray's extension after memray's end mark.
pub fn without_extension(packed: &[u8]) -> Vec<u8> {
    let mut bytes = unpacked(packed);
    let at = (0..bytes.len() - 8)
        .rev()
        .find(|&at| bytes[at..].starts_with(b"heapray\0\x0d\0\0\0"))
        .unwrap();
    bytes.truncate(at);
    bytes
}

/// Returns `program` without allocations at addresses that are still in use.
pub fn without_reuse(program: Program) -> Program {
    let Program { mut report, events } = program;
    let mut used = std::collections::HashSet::new();
    let events: Vec<Event> = events
        .into_iter()
        .filter(|event| match *event {
            Event::Allocation {
                allocator, address, ..
            } => allocator == Allocator::Mmap || used.insert(address),
            Event::Deallocation {
                allocator, address, ..
            } => {
                if allocator != Allocator::Munmap {
                    used.remove(&address);
                }
                true
            }
            Event::Memory { .. } => true,
        })
        .collect();
    sum_up(&mut report, &events);
    // These belong to the former sites.
    report.survivors = heapray_report::model::Survivors::default();
    report.history = heapray_report::model::History::default();
    Program { report, events }
}
