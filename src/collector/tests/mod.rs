//! Tests of all tables together against a naive model.

mod model;
mod retire;
mod samples;
mod threads;

use std::collections::{BTreeMap, HashSet};
use std::fs::File;

use super::entries::Bounds;
use super::recording::Recording;
use super::snapshot::{ModuleId, RawNode, RawSite};
use super::threads::Threads;
use super::{Clock, Counters, Export, LogEntry, LogReader, LogWriter, Tables};
use crate::capture::event::{Event, Kind, NodeId};
use heapray_report::model::Tally;
use model::{Model, name_of, sorted};
use proptest::prelude::*;

const PAGE: u64 = 4096;
const TICKS_PER_MS: u64 = 1000;
const CLOCK: Clock = Clock {
    start_stamp: 5_000,
    ticks_per_ms: TICKS_PER_MS as f64,
};

/// Replays the log with a heap of its own.
fn replay(export: Export) -> (Model, Vec<(u64, u64)>) {
    let log = export.log.expect("the log was not given up");
    let log = log.wait().unwrap();
    let (mut model, mut readings) = (Model::default(), Vec::new());
    let entries: Vec<LogEntry> = LogReader::new(log.clone())
        .collect::<Result<_, _>>()
        .unwrap();
    assert_eq!(entries.len() as u64, log.events);
    for entry in entries {
        let (thread, kind, address, size, node) = match entry {
            LogEntry::Allocation {
                thread,
                kind,
                address,
                size,
                node,
                ..
            } => (thread, kind, address, size, node),
            LogEntry::Deallocation {
                thread,
                kind,
                address,
                size,
            } => (thread, kind, address, size, NodeId::ROOT),
            LogEntry::Memory { at_ms, rss } => {
                readings.push((at_ms, rss));
                continue;
            }
        };
        let before = model.freed;
        let event = Event {
            stamp: CLOCK.start_stamp,
            thread,
            kind,
            address,
            size,
            node,
        };
        model.apply(&event, &[]);
        let freed = model.freed != before;
        assert_eq!(
            freed,
            !kind.is_allocation(),
            "{entry:?} frees what it names and nothing else"
        );
    }
    assert_eq!(model.unknown_frees, 0);
    (model, readings)
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        6 => Just(Kind::Malloc),
        1 => Just(Kind::Calloc),
        1 => Just(Kind::Pvalloc),
        3 => Just(Kind::Realloc),
        9 => Just(Kind::Free),
        3 => Just(Kind::Mmap),
        3 => Just(Kind::Munmap),
        3 => Just(Kind::ReallocFree),
        2 => Just(Kind::ReallocFailed),
        1 => Just(Kind::ThreadName),
        1 => Just(Kind::ThreadStart),
        2 => Just(Kind::Context),
        1 => Just(Kind::RunEnd),
    ]
}

fn size() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..5,
        6 => 10u64..3000,
        1 => (64u64 << 20)..(66 << 20),
        1 => (1u64 << 32)..(1 << 36),
    ]
}

/// Events in any order on few addresses: frees are lost, come twice and from other threads, reallocs overlap.
fn event() -> impl Strategy<Value = Event> {
    let gap = prop_oneof![0u64..3, 0..9 * TICKS_PER_MS];
    let thread = prop_oneof![2 => 1u32..4, 1 => 4u32..12];
    (gap, thread, kind(), 1u64..14, size(), 0u32..4).prop_map(
        |(stamp, thread, kind, place, size, node)| {
            let ranged = matches!(kind, Kind::Mmap | Kind::Munmap);
            Event {
                stamp,
                thread,
                kind,
                address: match kind {
                    Kind::Context | Kind::RunEnd => place % 4,
                    _ if ranged => place * PAGE,
                    _ => place * 16,
                },
                size: match kind {
                    Kind::Free | Kind::ReallocFree | Kind::ReallocFailed | Kind::RunEnd => 0,
                    Kind::ThreadStart => tid_of(thread),
                    Kind::Context => size % 4,
                    _ if ranged => (size % 6 + 1) * PAGE,
                    _ => size,
                },
                node: if kind.is_allocation() || kind == Kind::RunEnd {
                    NodeId(node)
                } else {
                    NodeId::ROOT
                },
            }
        },
    )
}

fn tid_of(thread: u32) -> u64 {
    1000 + u64::from(thread)
}

/// Returns the events with stamps from their gaps, each thread's start before its first event, and threads out of a run before
/// it ends.
fn in_time(events: Vec<Event>) -> Vec<Event> {
    let (mut now, mut started, mut all) = (CLOCK.start_stamp, HashSet::new(), Vec::new());
    let mut contexts: BTreeMap<u32, Event> = BTreeMap::new();
    for event in events {
        now += event.stamp;
        if event.kind == Kind::Context {
            contexts.insert(event.thread, event);
        }
        if event.kind == Kind::RunEnd {
            let inside = contexts.values_mut();
            for context in inside.filter(|context| context.run() == event.run()) {
                (context.stamp, context.address) = (now, 0);
                all.push(*context);
            }
        }
        if started.insert(event.thread) {
            all.push(Event {
                stamp: now,
                kind: Kind::ThreadStart,
                size: tid_of(event.thread),
                node: NodeId::ROOT,
                ..event
            });
        }
        all.push(Event {
            stamp: now,
            ..event
        });
    }
    all
}

fn spool() -> File {
    crate::collector::log::spool()
}

fn with_log() -> Tables {
    Tables::new(CLOCK).with_log(LogWriter::new(spool(), u64::MAX, 1 << 20))
}

fn check(tables: &mut Tables, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(tables.counters(), model.counters());
    let export = tables.export();
    prop_assert_eq!(sorted(export.stacks.sites.clone()), model.sites());
    let runs = export.stacks.runs.iter().map(|(&context, runs)| {
        let allocated = Tally {
            count: runs.allocated_blocks.sum(),
            bytes: runs.allocated_bytes.sum(),
        };
        let (most, held) = (runs.most_bytes.sum(), runs.held_bytes.sum());
        let sums = (
            runs.count(),
            allocated,
            most,
            held,
            runs.freed_of_others.bytes,
        );
        (context, sums)
    });
    prop_assert_eq!(runs.collect::<BTreeMap<_, _>>(), model.run_sums());
    let mut aged = vec![Tally::default(); export.stacks.sites.len()];
    for survivor in &export.survivors.list {
        aged[survivor.site as usize] += survivor.live;
    }
    let live: Vec<_> = export.stacks.sites.iter().map(|site| site.live).collect();
    prop_assert_eq!(aged, live);
    prop_assert_eq!(export.totals.high_water_ms, CLOCK.at_ms(model.peak().0));
    let mut sizes: BTreeMap<u64, u64> = BTreeMap::new();
    for born in &model.born {
        *sizes.entry(born.size).or_default() += 1;
    }
    let counted: Vec<_> = export
        .totals
        .sizes
        .iter()
        .map(|size| (size.size, size.count))
        .collect();
    prop_assert_eq!(counted, sizes.into_iter().collect::<Vec<_>>());
    if let Some(folding) = &model.folding {
        let threads = export.stacks.threads.iter();
        let listed: BTreeMap<_, _> = threads
            .map(|thread| (thread.number, (thread.name.clone(), thread.threads)))
            .collect();
        prop_assert_eq!(listed.len(), export.stacks.threads.len());
        prop_assert_eq!(listed, folding.list());
    }
    if export.log.is_none() {
        return Ok(());
    }
    let (replayed, _) = replay(export);
    let expected = Counters {
        events: replayed.events,
        unknown_frees: 0,
        ..model.counters()
    };
    prop_assert_eq!(replayed.counters(), expected);
    // The log does not have ages, nor the threads of blocks among threads that are counted together.
    // Nor does it have contexts.
    let untimed = |sites: Vec<RawSite>| {
        let mut sums: BTreeMap<_, [Tally; 4]> = BTreeMap::new();
        for site in sites {
            let sum = sums.entry((site.thread, site.node, site.kind)).or_default();
            let is_shared = site.thread > u32::MAX / 2;
            let temporary = site.temporary;
            let temporary = if is_shared {
                Tally::default()
            } else {
                temporary
            };
            let tallies = [site.allocated, site.high_water, site.live, temporary];
            for (sum, tally) in sum.iter_mut().zip(tallies) {
                *sum += tally;
            }
        }
        sums
    };
    prop_assert_eq!(untimed(replayed.sites()), untimed(model.sites()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tables_and_log_say_what_the_naive_model_says(
        events in prop::collection::vec(event(), 0..160).prop_map(in_time),
        views in prop::collection::vec(0usize..160, 0..3),
        batch in any::<bool>(),
        apart in prop_oneof![Just(2), Just(5), Just(20)],
    ) {
        let bounds = Bounds { apart, names: 1, late: 20 };
        let (mut tables, mut model) = (with_log(), Model::bounded(bounds));
        tables = tables.with_threads(Threads::new(bounds, name_of));
        let mut rest = events.as_slice();
        let mut done = 0;
        for at in views.into_iter().collect::<std::collections::BTreeSet<_>>() {
            let (now, later) = rest.split_at((at - done).min(rest.len()));
            feed(&mut tables, &mut model, now, batch);
            // An export in between does not change what follows.
            check(&mut tables, &model)?;
            (rest, done) = (later, at);
        }
        feed(&mut tables, &mut model, rest, batch);
        check(&mut tables, &model)?;
    }
}

fn feed(tables: &mut Tables, model: &mut Model, events: &[Event], batch: bool) {
    if batch {
        tables.apply_batch(events);
    } else {
        events.iter().for_each(|event| tables.apply(event));
    }
    for (at, event) in events.iter().enumerate() {
        let later = if batch { &events[at + 1..] } else { &[] };
        model.apply(event, later);
    }
}

fn event_of(thread: u32, kind: Kind, address: u64, size: u64) -> Event {
    Event {
        stamp: CLOCK.start_stamp,
        thread,
        kind,
        address,
        size,
        node: NodeId::ROOT,
    }
}

fn tally(count: u64, bytes: u64) -> Tally {
    Tally { count, bytes }
}

#[test]
fn a_failed_realloc_leaves_no_trace() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 100));
    let before = tables.export();
    tables.apply(&event_of(1, Kind::ReallocFree, 64, 0));
    assert_eq!(tables.counters().live, tally(1, 100));
    tables.apply(&event_of(2, Kind::Malloc, 128, 7));
    tables.apply(&event_of(2, Kind::Free, 128, 0));
    tables.apply(&event_of(1, Kind::ReallocFailed, 64, 0));
    let after = tables.export();
    assert_eq!(after.totals.high_water, tally(2, 107));
    assert_eq!(after.stacks.sites[0].live, before.stacks.sites[0].live);
    assert_eq!(after.totals.events, 3);
    assert_eq!(after.log.unwrap().wait().unwrap().events, 3);
}

#[test]
fn an_address_that_a_realloc_gave_up_may_be_allocated_again_before_its_end_is_recorded() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 100));
    tables.apply(&event_of(1, Kind::ReallocFree, 64, 0));
    tables.apply(&event_of(2, Kind::Malloc, 64, 30));
    tables.apply(&event_of(1, Kind::Realloc, 128, 200));
    assert_eq!(tables.counters().live, tally(2, 230));
    assert_eq!(tables.counters().freed, tally(1, 100));
    assert_eq!(tables.counters().events, 4);
    tables.apply(&event_of(2, Kind::Free, 64, 0));
    assert_eq!(tables.counters().live, tally(1, 200));
}

#[test]
fn a_block_whose_free_was_lost_gives_way_to_the_next_one_there() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 100));
    tables.apply(&event_of(2, Kind::Malloc, 64, 30));
    let counters = tables.counters();
    assert_eq!(
        (counters.live, counters.freed),
        (tally(1, 30), tally(1, 100))
    );
    assert_eq!(counters.high_water, tally(1, 100));
    assert_eq!(counters.events, 2);
}

#[test]
fn the_high_water_mark_is_the_last_moment_of_the_largest_heap() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 100));
    tables.apply(&event_of(1, Kind::Free, 64, 0));
    tables.apply(&event_of(2, Kind::Malloc, 128, 100));
    // As in memray 1.20: an empty block does not change the heap, but its events move the mark.
    tables.apply(&event_of(3, Kind::Malloc, 256, 0));
    tables.apply(&event_of(3, Kind::Free, 256, 0));
    let sites = sorted(tables.export().stacks.sites);
    let at_mark: Vec<_> = sites.iter().map(|site| site.high_water).collect();
    assert_eq!(at_mark, [tally(0, 0), tally(1, 100), tally(0, 0)]);
}

#[test]
fn a_block_is_temporary_with_one_allocation_in_between_but_not_with_two() {
    for (between, temporary) in [(0, 1), (1, 1), (2, 0)] {
        let mut tables = with_log();
        tables.apply(&event_of(1, Kind::Malloc, 64, 10));
        for number in 0..between {
            tables.apply(&event_of(1, Kind::Calloc, 128 + number * 64, 10));
            tables.apply(&event_of(2, Kind::Calloc, 1280 + number * 64, 10));
        }
        tables.apply(&event_of(1, Kind::Free, 64, 0));
        let site = sorted(tables.export().stacks.sites)[0];
        assert_eq!(site.temporary.count, temporary, "{between} in between");
    }
}

#[test]
fn a_free_by_another_thread_is_not_of_a_temporary_block() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 10));
    tables.apply(&event_of(2, Kind::Free, 64, 0));
    assert_eq!(tables.export().stacks.sites[0].temporary, tally(0, 0));
}

#[test]
fn threads_have_numbers_and_names() {
    let mut tables = Tables::new(CLOCK);
    let word = |text: &[u8; 8]| u64::from_le_bytes(*text);
    tables.apply(&Event::thread_start(CLOCK.start_stamp, 2, 4711));
    tables.apply(&event_of(
        2,
        Kind::ThreadName,
        word(b"tokio-ru"),
        word(b"ntime\0\0\0"),
    ));
    tables.apply(&event_of(
        66,
        Kind::ThreadName,
        word(b"0123456\xFF"),
        word(b"89abcdef"),
    ));
    tables.apply(&event_of(2, Kind::Malloc, 64, 1));
    let threads = tables.export().stacks.threads;
    assert_eq!(
        (threads[0].number, threads[0].tid, threads[0].name.as_str()),
        (2, 4711, "tokio-runtime")
    );
    assert_eq!(
        (threads[1].number, threads[1].name.as_str()),
        (66, "0123456\u{FFFD}89abcdef")
    );
    assert_eq!(threads.len(), 2);
}

#[test]
fn readings_reach_the_timeline_and_the_log() {
    let mut tables = with_log();
    let stamp = |ms: u64| CLOCK.start_stamp + ms * TICKS_PER_MS;
    tables.apply(&event_of(1, Kind::Malloc, 64, 500));
    for ms in [3, 7, 12] {
        tables.reading(stamp(ms), 1000 * ms, 9);
    }
    let export = tables.export();
    let rows: Vec<_> = export
        .timeline
        .iter()
        .map(|row| (row.at_ms, row.rss, row.heap, row.own))
        .collect();
    assert_eq!(rows, [(3, 7000, 500, 9), (12, 12000, 500, 9)]);
    assert_eq!(replay(export).1, [(3, 3000), (12, 12000)]);
}

#[test]
fn what_sites_hold_is_noted_while_the_session_grows() {
    let mut tables = Tables::new(CLOCK);
    let stamp = |ms: u64| CLOCK.start_stamp + ms * TICKS_PER_MS;
    for ms in 1..=1000u64 {
        // One block of three is kept.
        tables.apply(&event_of(1, Kind::Malloc, 64 * ms, 100));
        if !ms.is_multiple_of(3) {
            tables.apply(&event_of(1, Kind::Free, 64 * ms, 0));
        }
        tables.reading(stamp(ms), 0, 0);
    }
    let export = tables.export();
    let moments = &export.history.moments;
    assert!((16..=32).contains(&moments.len()), "{moments:?}");
    assert_eq!(export.history.list.len(), moments.len());
    for (held, moment) in export.history.list.iter().zip(moments) {
        assert_eq!(held.live, moment.at_ms / 3 * 100);
        assert_eq!(held.allocated, moment.at_ms * 100);
        assert_eq!(moment.allocated.count, moment.at_ms);
        assert!(export.survivors.starts_ms.contains(&moment.at_ms));
    }
}

#[test]
fn the_call_tree_is_exported_with_the_sites() {
    let mut tables = Tables::new(CLOCK);
    let node = tables
        .call_tree_mut()
        .child(NodeId::ROOT, 0x1234, ModuleId(3));
    let event = Event {
        node,
        ..event_of(1, Kind::Malloc, 64, 1)
    };
    tables.apply(&event);
    let export = tables.export();
    assert_eq!(
        export.stacks.nodes[export.stacks.sites[0].node.0 as usize].address,
        0x1234
    );
}

#[test]
fn many_sites_and_blocks_stay_within_the_memory_budget() {
    let mut tables = Tables::new(CLOCK);
    for number in 0..300_000u64 {
        tables.apply(&Event {
            node: NodeId((number % 50_000) as u32),
            ..event_of(
                1 + (number % 32) as u32,
                Kind::Malloc,
                0x7f00_0000_0000 + number * 64,
                48,
            )
        });
    }
    let sites = tables.export().stacks.sites.len() as u64;
    let bytes = tables.memory_bytes();
    let bound = 300_000 * 40 + sites * 110 + (1 << 20);
    assert!(bytes <= bound, "{bytes} bytes for {sites} sites");
}

#[test]
fn a_realloc_whose_outcome_was_lost_is_through_when_its_thread_ends() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 100));
    tables.apply(&event_of(1, Kind::ReallocFree, 64, 0));
    tables.apply(&event_of(1, Kind::ThreadName, 0, 0));
    assert_eq!(tables.counters().freed, tally(1, 100));
}

#[test]
fn blocks_that_are_freed_at_once_move_the_mark_when_they_reach_it_again() {
    let block = |stamp: u64, node: u32, size: u64| {
        let malloc = Event {
            stamp,
            thread: 1,
            kind: Kind::Malloc,
            address: 0x1000,
            size,
            node: NodeId(node),
        };
        let free = Event {
            stamp: stamp + 1,
            kind: Kind::Free,
            size: 0,
            node: NodeId::ROOT,
            ..malloc
        };
        [malloc, free]
    };
    let mut tables = Tables::new(CLOCK);
    let addresses = [0x10, 0x20, 0x30].map(|address| {
        let module = crate::capture::modules::module_of(address);
        tables
            .call_tree_mut()
            .child(NodeId::ROOT, address, module)
            .0
    });
    let [a, b, c] = addresses;
    // The second block of 100 bytes leaves the heap at its mark, so the mark moves to its event. Events below the mark do
    // not move it.
    let events = [
        block(1, a, 100),
        block(3, c, 99),
        block(5, b, 100),
        block(7, c, 99),
    ];
    tables.apply_batch(events.as_flattened());
    assert_eq!(tables.counters().events, 8);
    let at_mark: Vec<_> = tables
        .export()
        .stacks
        .sites
        .iter()
        .filter(|site| site.high_water.count > 0)
        .map(|site| (site.node.0, site.high_water.bytes))
        .collect();
    assert_eq!(at_mark, [(b, 100)]);
}

#[test]
fn sites_without_room_are_summed_up_and_every_sum_stays_exact() {
    const NODES: u64 = 200;
    let mut recording = Recording::new(Tables::new(CLOCK));
    let nodes: Vec<NodeId> = (0..NODES)
        .map(|number| {
            let tree = recording.call_tree_mut();
            tree.child(NodeId::ROOT, 0x10_000 + number, ModuleId::NONE)
        })
        .collect();
    // Room for a part of them. Half of the blocks are freed again later.
    let block = |number: u64| 0x1000 + number * 64;
    for number in 0..10_000_u64 {
        if number == 50 {
            recording.set_room(0, 20);
        }
        let mut event = Event {
            stamp: CLOCK.start_stamp + number,
            thread: 1 + (number % 3) as u32,
            kind: Kind::Malloc,
            address: block(number),
            size: number % 1000,
            node: nodes[(number * 7 % NODES) as usize],
        };
        if number % 5 == 0 {
            event.kind = Kind::Calloc;
        }
        recording.apply_batch(&[event]);
        if number % 2 == 1 {
            event.kind = Kind::Free;
            event.address = block(number / 2);
            event.node = NodeId::ROOT;
            recording.apply_batch(&[event]);
        }
    }
    assert!(recording.has_cut());
    let export = recording.session_mut().export();
    let sum = |of: fn(&RawSite) -> Tally| {
        let mut sum = Tally::default();
        export.stacks.sites.iter().for_each(|site| sum += of(site));
        sum
    };
    let totals = &export.totals;
    assert_eq!(totals.allocated.count, 10_000);
    assert_eq!(sum(|site| site.allocated), totals.allocated);
    assert_eq!(sum(|site| site.live), totals.live);
    assert_eq!(sum(|site| site.high_water), totals.high_water);
    // Each thread and function has one site for all others, besides those that had room.
    let others =
        |site: &&RawSite| export.stacks.nodes[site.node.0 as usize].address == RawNode::OTHER;
    assert_eq!(export.stacks.sites.iter().filter(others).count(), 6);
    assert_eq!(export.stacks.sites.len(), 50 + 20 + 6);
}
