//! Threads by the thousand: the data that is kept about them, and their entries.

use super::super::Tables;
use super::super::entries::Bounds;
use super::super::threads::Threads;
use super::model::{name_of, sum};
use super::{CLOCK, event_of, tally, tid_of};
use crate::capture::event::{Event, Kind, NodeId};

/// Runs a thread that starts, allocates at `sites` call sites, frees everything, and ends if `ends`.
fn short_life(tables: &mut Tables, number: u32, sites: u32, ends: bool) {
    let mut events = vec![event_of(number, Kind::ThreadStart, 0, tid_of(number))];
    for node in 0..sites {
        // Addresses of its own, so that nothing about one may outlast its thread.
        let address = u64::from(number * sites + node) * 16;
        events.push(Event {
            node: NodeId(node),
            ..event_of(number, Kind::Malloc, address, 16)
        });
        events.push(event_of(number, Kind::Free, address, 0));
    }
    if ends {
        let name = u64::from_ne_bytes(*b"pool\0\0\0\0");
        events.push(event_of(number, Kind::ThreadName, name, 0));
    }
    tables.apply_batch(&events);
}

#[test]
fn a_hundred_thousand_threads_fit_into_the_memory_of_the_first_thousand() {
    const SITES: u32 = 10;
    let mut tables = Tables::new(CLOCK).with_threads(Threads::new(Bounds::default(), name_of));
    let apart = Bounds::default().apart as u32;
    for number in 1..=apart {
        short_life(&mut tables, number, SITES, true);
    }
    let first = tables.memory_bytes();
    // The end of every third thread is lost.
    for number in apart + 1..=100_000 {
        short_life(&mut tables, number, SITES, !number.is_multiple_of(3));
    }
    let bytes = tables.memory_bytes();
    // The data of later threads that may be alive, and the call sites of their five entries.
    let late = Bounds::default().late as u64 * 232 + 5 * u64::from(SITES) * 110;
    // The live table's index of the addresses that were in use: 4 KiB for each 2 MiB.
    let late = late + 100_000 * u64::from(SITES) * 16 / 512;
    assert!(bytes <= first + late, "{first} bytes, then {bytes}");
    assert!(bytes < 3 << 20, "{bytes} bytes");
    let export = tables.export();
    assert!(export.stacks.sites.len() <= (apart as usize + 5) * SITES as usize);
    let threads: u32 = export
        .stacks
        .threads
        .iter()
        .map(|thread| thread.threads)
        .sum();
    assert_eq!(threads, 100_000);
    let allocated = sum(export.stacks.sites.iter().map(|site| site.allocated));
    assert_eq!(allocated.count, 100_000 * u64::from(SITES));
    assert_eq!(
        export.notes,
        ["more than 1,024 threads: those after the first 1,024 are counted by name"]
    );
}

fn folding(apart: usize, late: usize) -> Tables {
    let bounds = Bounds {
        apart,
        names: 2,
        late,
    };
    Tables::new(CLOCK).with_threads(Threads::new(bounds, name_of))
}

#[test]
fn threads_that_lived_before_the_session_and_come_late_are_counted_by_name_too() {
    let mut tables = folding(2, 8);
    // 700 and 650 are the first to allocate; 3 has lived for long, and wakes up.
    for number in [700, 650, 3, 701] {
        short_life(&mut tables, number, 1, false);
    }
    let export = tables.export();
    let numbers: Vec<_> = export.stacks.sites.iter().map(|site| site.thread).collect();
    assert_eq!(numbers, [700, 650, u32::MAX, u32::MAX - 1]);
    let listed: Vec<_> = export
        .stacks
        .threads
        .iter()
        .map(|thread| thread.number)
        .collect();
    assert_eq!(listed, numbers);
}

#[test]
fn a_block_is_temporary_for_its_own_thread_only_among_threads_counted_together() {
    let mut tables = folding(0, 8);
    let both = [1, 4].map(|number| event_of(number, Kind::ThreadStart, 0, tid_of(number)));
    tables.apply_batch(&both);
    // 4 takes over the address that 1 has just allocated, and 1 frees the block of 4.
    for (thread, kind) in [
        (1, Kind::Malloc),
        (4, Kind::Free),
        (4, Kind::Malloc),
        (1, Kind::Free),
        (4, Kind::Malloc),
        (4, Kind::Free),
    ] {
        tables.apply(&event_of(thread, kind, 64, 10));
    }
    let export = tables.export();
    assert_eq!(
        export.stacks.threads.len(),
        1,
        "{:?}",
        export.stacks.threads
    );
    assert_eq!(export.stacks.sites[0].temporary, tally(1, 10));
}

#[test]
fn events_after_the_recorded_end_of_a_thread_count_under_its_name() {
    let mut tables = folding(0, 8);
    short_life(&mut tables, 1, 1, true);
    short_life(&mut tables, 1, 1, false);
    let threads = tables.export().stacks.threads;
    assert_eq!(threads.len(), 1);
    assert_eq!((threads[0].name.as_str(), threads[0].threads), ("pool", 1));
}

#[test]
fn a_thread_that_was_forgotten_is_counted_among_those_without_a_name() {
    let mut tables = folding(1, 2);
    for number in [1, 2, 3, 4] {
        short_life(&mut tables, number, 1, false);
    }
    // 4 has replaced 2; 3 and 4 are still known.
    for number in [2, 4] {
        tables.apply(&event_of(number, Kind::Malloc, 64, 10));
    }
    let threads = tables.export().stacks.threads;
    let shown: Vec<_> = threads
        .iter()
        .map(|thread| (thread.name.as_str(), thread.threads))
        .collect();
    assert_eq!(
        shown,
        [
            ("pool 2", 1),
            ("pool 0", 1),
            ("pool 1", 1),
            ("(threads of other names)", 1),
            ("", 1)
        ]
    );
}
