//! All tables together against a naive model: it keeps everything that ever happened and computes each answer from that.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::sync::Arc;

use super::snapshot::{ModuleId, RawSite};
use super::{Clock, Counters, Export, LogEntry, LogReader, LogWriter, Tables};
use crate::capture::event::{Event, Kind, NodeId};
use heapray_report::model::Tally;
use proptest::prelude::*;

const PAGE: u64 = 4096;
const TICKS_PER_MS: u64 = 1000;
const CLOCK: Clock = Clock {
    start_stamp: 5_000,
    ticks_per_ms: TICKS_PER_MS as f64,
};

type Key = (u32, NodeId, Kind);

/// One allocation: its number is its position in the history.
#[derive(Debug, Clone)]
struct Born {
    key: Key,
    at_ms: u64,
    size: u64,
    temporary: bool,
}

/// A naive heap: blocks by address, ranges page by page.
#[derive(Debug, Default, Clone)]
struct Heap {
    /// (number, size)
    blocks: HashMap<u64, (usize, u64)>,
    /// Page → (number, part): a part is what a split made of one block.
    pages: BTreeMap<u64, (usize, u64)>,
    parts: u64,
}

impl Heap {
    /// Unmaps: which (number, part) are gone whole.
    fn unmap(&mut self, address: u64, size: u64) -> Vec<(usize, u64)> {
        let pages = address / PAGE..(address + size) / PAGE;
        let mut gone: Vec<_> = pages
            .clone()
            .filter_map(|page| self.pages.remove(&page))
            .collect();
        gone.dedup();
        gone.retain(|part| !self.pages.values().any(|left| left == part));
        // What lies beyond the hole of the block that it cuts is a block of its own now.
        self.parts += 1;
        let mut page = pages.end;
        if let Some(beyond) = self.pages.get(&page).copied() {
            while self.pages.get(&page) == Some(&beyond) {
                self.pages.insert(page, (beyond.0, self.parts));
                page += 1;
            }
        }
        gone
    }

    fn map(&mut self, number: usize, address: u64, size: u64) {
        self.parts += 1;
        for page in address / PAGE..(address + size) / PAGE {
            self.pages.insert(page, (number, self.parts));
        }
    }

    /// (number, tally) of everything live.
    fn live(&self) -> Vec<(usize, Tally)> {
        let blocks = self
            .blocks
            .values()
            .map(|&(number, bytes)| (number, Tally { count: 1, bytes }));
        let mut all: Vec<_> = blocks.collect();
        let mut seen = HashSet::new();
        for &part in self.pages.values() {
            let count = u64::from(seen.insert(part));
            all.push((part.0, Tally { count, bytes: PAGE }));
        }
        all
    }
}

fn sum(tallies: impl Iterator<Item = Tally>) -> Tally {
    tallies.fold(Tally::default(), |mut sum, tally| {
        sum += tally;
        sum
    })
}

#[derive(Debug, Default)]
struct Model {
    born: Vec<Born>,
    heap: Heap,
    /// Stamp of the event that is taken in.
    now: u64,
    /// The heap after each change: its bytes, the moment, all of it.
    history: Vec<(u64, u64, Heap)>,
    by_thread: HashMap<u32, Vec<u64>>,
    reallocs: Vec<(u32, u64, bool)>,
    events: u64,
    freed: Tally,
    unknown_frees: u64,
}

impl Model {
    fn apply(&mut self, event: &Event) {
        self.now = event.stamp;
        if !matches!(event.kind, Kind::ThreadStart | Kind::ThreadName)
            && let Some(at) = self.reallocs.iter().position(|one| one.0 == event.thread)
        {
            let (thread, address, known) = self.reallocs.remove(at);
            if event.kind == Kind::ReallocFailed && event.address == address {
                return;
            }
            self.events += 1;
            if known {
                self.free(thread, address);
            } else {
                self.unknown_frees += 1;
            }
        }
        match event.kind {
            Kind::Free => {
                self.events += 1;
                for one in self
                    .reallocs
                    .iter_mut()
                    .filter(|one| one.1 == event.address)
                {
                    one.2 = false;
                }
                self.free(event.thread, event.address);
            }
            Kind::Mmap => {
                self.unmap(event);
                let number = self.bear(event);
                self.heap.map(number, event.address, event.size);
                self.remember();
            }
            Kind::Munmap => {
                self.events += 1;
                if !self.unmap(event) {
                    self.unknown_frees += 1;
                }
            }
            Kind::ReallocFree => {
                let known = self.heap.blocks.contains_key(&event.address);
                self.reallocs.push((event.thread, event.address, known));
            }
            Kind::ReallocFailed | Kind::ThreadStart | Kind::ThreadName => {}
            _ => {
                if self.heap.blocks.contains_key(&event.address) {
                    let mut thread = event.thread;
                    if let Some(at) = self
                        .reallocs
                        .iter()
                        .position(|one| one.1 == event.address && one.2)
                    {
                        thread = self.reallocs.remove(at).0;
                        self.events += 1;
                    }
                    self.free(thread, event.address);
                }
                let number = self.bear(event);
                self.heap.blocks.insert(event.address, (number, event.size));
                self.remember();
            }
        }
    }

    fn bear(&mut self, event: &Event) -> usize {
        self.events += 1;
        self.by_thread
            .entry(event.thread)
            .or_default()
            .push(event.address);
        self.born.push(Born {
            key: (event.thread, event.node, event.kind),
            at_ms: (event.stamp - CLOCK.start_stamp) / TICKS_PER_MS,
            size: event.size,
            temporary: false,
        });
        self.born.len() - 1
    }

    fn free(&mut self, thread: u32, address: u64) {
        match self.heap.blocks.remove(&address) {
            None => self.unknown_frees += 1,
            Some((number, bytes)) => {
                self.freed += Tally { count: 1, bytes };
                self.gone(thread, address, number);
                self.remember();
            }
        }
    }

    fn remember(&mut self) {
        let bytes = sum(self.heap.live().into_iter().map(|one| one.1)).bytes;
        self.history.push((bytes, self.now, self.heap.clone()));
    }

    fn gone(&mut self, thread: u32, address: u64, number: usize) {
        let mine = self.by_thread.get(&thread).map_or(&[][..], Vec::as_slice);
        let lately = mine.iter().rev().take(2).any(|&one| one == address);
        self.born[number].temporary = self.born[number].key.0 == thread && lately;
    }

    fn unmap(&mut self, event: &Event) -> bool {
        let before = sum(self.heap.live().into_iter().map(|one| one.1));
        let untouched: HashMap<usize, u64> = (0..self.born.len())
            .filter_map(|number| {
                let pages: Vec<_> = self
                    .heap
                    .pages
                    .iter()
                    .filter(|page| page.1.0 == number)
                    .collect();
                let whole = pages.len() as u64 * PAGE == self.born[number].size;
                (whole && !pages.is_empty()).then(|| (number, *pages[0].0 * PAGE))
            })
            .collect();
        let gone = self.heap.unmap(event.address, event.size);
        let after = sum(self.heap.live().into_iter().map(|one| one.1));
        self.freed.bytes += before.bytes - after.bytes;
        self.freed.count += gone.len() as u64;
        for (number, _) in gone {
            let exact = event.size == self.born[number].size;
            if let Some(&start) = untouched.get(&number)
                && (start == event.address && exact)
            {
                self.gone(event.thread, start, number);
            }
        }
        let found = before.bytes != after.bytes;
        if found {
            self.remember();
        }
        found
    }

    fn counters(&self) -> Counters {
        Counters {
            events: self.events,
            allocated: sum(self.born.iter().map(|born| Tally {
                count: 1,
                bytes: born.size,
            })),
            freed: self.freed,
            live: sum(self.heap.live().into_iter().map(|one| one.1)),
            high_water: sum(self.peak().1.live().into_iter().map(|one| one.1)),
            unknown_frees: self.unknown_frees,
        }
    }

    /// The last of the moments at which the heap was largest.
    fn peak(&self) -> (u64, Heap) {
        let last = self.history.iter().max_by_key(|(bytes, ..)| bytes);
        last.map_or((CLOCK.start_stamp, Heap::default()), |(_, now, heap)| {
            (*now, heap.clone())
        })
    }

    fn sites(&self) -> Vec<RawSite> {
        let mut sites: HashMap<Key, RawSite> = HashMap::new();
        let peak = self.peak().1.live();
        let live = self.heap.live();
        for (number, born) in self.born.iter().enumerate() {
            let of = |list: &[(usize, Tally)]| {
                sum(list.iter().filter(|one| one.0 == number).map(|one| one.1))
            };
            let once = Tally {
                count: 1,
                bytes: born.size,
            };
            let (thread, node, kind) = born.key;
            let site = sites.entry(born.key).or_insert(RawSite {
                thread,
                node,
                kind,
                allocated: Tally::default(),
                high_water: Tally::default(),
                live: Tally::default(),
                temporary: Tally::default(),
                oldest_live_ms: None,
            });
            site.allocated += once;
            site.high_water += of(&peak);
            site.live += of(&live);
            if born.temporary {
                site.temporary += once;
            }
            if of(&live).count > 0 {
                site.oldest_live_ms = Some(site.oldest_live_ms.unwrap_or(u64::MAX).min(born.at_ms));
            }
        }
        sorted(sites.into_values().collect())
    }
}

fn sorted(mut sites: Vec<RawSite>) -> Vec<RawSite> {
    sites.sort_by_key(|site| (site.thread, site.node, site.kind));
    sites
}

/// What a reader of the log that keeps its own heap makes of it.
fn replay(export: &Export) -> (Model, Vec<(u64, u64)>) {
    let log = export.log.as_ref().expect("the log was not given up");
    let (mut model, mut readings) = (Model::default(), Vec::new());
    let entries: Vec<LogEntry> = LogReader::new(Arc::clone(&log.file), log.bytes)
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
        model.apply(&Event {
            stamp: CLOCK.start_stamp,
            thread,
            kind,
            address,
            size,
            node,
        });
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

/// Any order of any events on few addresses: frees are lost, come twice and from other threads, reallocs overlap.
fn event() -> impl Strategy<Value = Event> {
    let gap = prop_oneof![0u64..3, 0..9 * TICKS_PER_MS];
    (gap, 1u32..4, kind(), 1u64..14, size(), 0u32..4).prop_map(
        |(stamp, thread, kind, place, size, node)| {
            let ranged = matches!(kind, Kind::Mmap | Kind::Munmap);
            Event {
                stamp,
                thread,
                kind,
                address: if ranged { place * PAGE } else { place * 16 },
                size: match kind {
                    Kind::Free | Kind::ReallocFree | Kind::ReallocFailed => 0,
                    _ if ranged => (size % 6 + 1) * PAGE,
                    _ => size,
                },
                node: if kind.is_allocation() {
                    NodeId(node)
                } else {
                    NodeId::ROOT
                },
            }
        },
    )
}

/// Events with their gaps made into stamps.
fn in_time(mut events: Vec<Event>) -> Vec<Event> {
    let mut now = CLOCK.start_stamp;
    for event in &mut events {
        now += event.stamp;
        event.stamp = now;
    }
    events
}

fn spool() -> File {
    crate::collector::log::spool()
}

fn with_log() -> Tables {
    Tables::new(CLOCK).with_log(LogWriter::new(spool(), u64::MAX))
}

fn check(tables: &mut Tables, model: &Model) -> Result<(), TestCaseError> {
    prop_assert_eq!(tables.counters(), model.counters());
    let export = tables.export();
    prop_assert_eq!(sorted(export.sites.clone()), model.sites());
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
    let (told, _) = replay(&export);
    let expected = Counters {
        events: told.events,
        unknown_frees: 0,
        ..model.counters()
    };
    prop_assert_eq!(told.counters(), expected);
    let untimed = |mut sites: Vec<RawSite>| {
        sites.iter_mut().for_each(|site| site.oldest_live_ms = None);
        sites
    };
    prop_assert_eq!(untimed(told.sites()), untimed(model.sites()));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tables_and_log_say_what_the_naive_model_says(
        events in prop::collection::vec(event(), 0..160).prop_map(in_time),
        views in prop::collection::vec(0usize..160, 0..3),
        batch in any::<bool>(),
    ) {
        let (mut tables, mut model) = (with_log(), Model::default());
        let mut rest = events.as_slice();
        let mut done = 0;
        for at in views.into_iter().collect::<std::collections::BTreeSet<_>>() {
            let (now, later) = rest.split_at((at - done).min(rest.len()));
            feed(&mut tables, &mut model, now, batch);
            // A view in between changes nothing of what follows.
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
    events.iter().for_each(|event| model.apply(event));
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
    assert_eq!(after.sites[0].live, before.sites[0].live);
    assert_eq!(after.totals.events, 3);
    assert_eq!(after.log.unwrap().events, 3);
}

#[test]
fn an_address_that_a_realloc_gave_up_may_be_handed_out_before_its_end_is_told() {
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
    // As memray 1.20 has it: an empty block does not move the heap, but its events move the mark.
    tables.apply(&event_of(3, Kind::Malloc, 256, 0));
    tables.apply(&event_of(3, Kind::Free, 256, 0));
    let sites = sorted(tables.export().sites);
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
        let site = sorted(tables.export().sites)[0];
        assert_eq!(site.temporary.count, temporary, "{between} in between");
    }
}

#[test]
fn a_free_by_another_thread_is_not_of_a_temporary_block() {
    let mut tables = with_log();
    tables.apply(&event_of(1, Kind::Malloc, 64, 10));
    tables.apply(&event_of(2, Kind::Free, 64, 0));
    assert_eq!(tables.export().sites[0].temporary, tally(0, 0));
}

#[test]
fn threads_have_numbers_and_names() {
    let mut tables = Tables::new(CLOCK);
    let word = |text: &[u8; 8]| u64::from_ne_bytes(*text);
    tables.apply(&event_of(2, Kind::ThreadStart, 0, 4711));
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
    let threads = tables.export().threads;
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
    assert_eq!(replay(&export).1, [(3, 3000), (12, 12000)]);
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
        export.nodes[export.sites[0].node.0 as usize].address,
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
    let sites = tables.export().sites.len() as u64;
    let bytes = tables.memory_bytes();
    let bound = 300_000 * 40 + sites * 110 + (1 << 20);
    assert!(bytes <= bound, "{bytes} bytes for {sites} sites");
}
