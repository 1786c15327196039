//! Tests that memray finds the right temporary blocks of threads with one name.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io;

use heapray_report::model::{Event, ThreadId};
use proptest::prelude::*;

use super::super::assemble::assemble;
use super::super::{Apart, ReportOptions, Resolved, ThreadMode, Wanted};
use super::{Fake, snapshot};
use crate::capture::event::{Kind, NodeId};
use crate::collector::snapshot::{RawThread, Snapshot, StackTable};
use crate::collector::{LogEntry, LogWriter};

fn spool() -> File {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("heapray-apart-{}-{number}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let mut options = File::options();
    let options = options.read(true).write(true).create_new(true);
    let file = options.open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

/// Returns a snapshot with `entries` as its log. Threads 1 to 3 and 9, which stands for a thousand threads, have one name.
/// Thread 4 has another.
fn recorded(entries: &[LogEntry]) -> Snapshot {
    let mut writer = LogWriter::new(spool(), u64::MAX, 1 << 20);
    for entry in entries {
        if writer.push(entry) {
            writer.flush();
        }
    }
    writer.flush();
    let thread = |number, name: &str, threads| RawThread {
        number,
        tid: 100 + number,
        name: name.into(),
        threads,
    };
    let recorded = snapshot(Vec::new());
    let stacks = StackTable {
        threads: vec![
            thread(1, "worker", 1),
            thread(2, "worker", 1),
            thread(3, "worker", 1),
            thread(4, "other", 1),
            thread(9, "worker", 1000),
        ],
        ..recorded.stacks
    };
    Snapshot {
        stacks,
        log: writer.written(),
        log_given_up: None,
        ..recorded
    }
}

fn read_apart(resolved: &Resolved, snapshot: &Snapshot) -> io::Result<Apart> {
    let log = snapshot.log.as_ref().unwrap();
    Apart::of(resolved, &snapshot.stacks.threads, log, &Wanted::default())
}

/// Returns the numbers of the allocations that their own thread frees after at most `threshold` other allocations.
fn temporary(entries: &[LogEntry], threshold: usize) -> HashSet<usize> {
    let mut live = HashMap::new();
    let mut made: HashMap<u32, usize> = HashMap::new();
    let mut temporary = HashSet::new();
    for (number, entry) in entries.iter().enumerate() {
        match *entry {
            LogEntry::Allocation {
                thread, address, ..
            } => {
                let made = made.entry(thread).or_default();
                *made += 1;
                live.insert(address, (number, thread, *made));
            }
            LogEntry::Deallocation {
                thread, address, ..
            } => {
                let (number, by, at) = live.remove(&address).unwrap();
                let of_one = ![4, 9].contains(&by);
                if by == thread && made[&by] - at <= threshold && of_one {
                    temporary.insert(number);
                }
            }
            LogEntry::Memory { .. } => {}
        }
    }
    temporary
}

/// Returns the numbers of the allocations that memray counts as temporary at that threshold, except for the thread `other`.
fn temporary_in_memray(events: &[Event], other: ThreadId, threshold: usize) -> HashSet<usize> {
    let mut windows: HashMap<ThreadId, VecDeque<(u64, usize)>> = HashMap::new();
    let mut temporary = HashSet::new();
    for (number, event) in events.iter().enumerate() {
        match *event {
            Event::Allocation {
                thread, address, ..
            } => {
                let window = windows.entry(thread).or_default();
                if window.len() > threshold {
                    window.pop_back();
                }
                window.push_front((address, number));
            }
            Event::Deallocation {
                thread, address, ..
            } if thread != other => {
                let window = windows.entry(thread).or_default();
                if let Some((_, number)) = window.iter().find(|(at, _)| *at == address) {
                    temporary.insert(*number);
                }
            }
            _ => {}
        }
    }
    temporary
}

/// Generates threads that allocate at an address without a live block, and free the block at any other address.
fn entries() -> impl Strategy<Value = Vec<LogEntry>> {
    let thread = prop::sample::select(vec![1_u32, 1, 2, 2, 3, 4, 9]);
    let step = (thread, 0_u64..12);
    prop::collection::vec(step, 0..200).prop_map(|steps| {
        let mut live = HashSet::new();
        let entry = |(thread, at): (u32, u64)| {
            let address = 0x5000 + at * 16;
            if live.remove(&address) {
                return LogEntry::Deallocation {
                    thread,
                    kind: Kind::Free,
                    address,
                    size: 0,
                };
            }
            live.insert(address);
            LogEntry::Allocation {
                context: 0,
                thread,
                kind: Kind::Malloc,
                address,
                size: 8,
                node: NodeId::ROOT,
            }
        };
        steps.into_iter().map(entry).collect()
    })
}

proptest! {
    #[test]
    fn memray_finds_the_right_temporary_blocks(entries in entries()) {
        let snapshot = recorded(&entries);
        let options = ReportOptions::default();
        let resolved = assemble(&snapshot, &options, &mut Fake::default());
        let log = snapshot.log.as_ref().unwrap();
        let plain: Vec<Event> = resolved.events(log).map(Result::unwrap).collect();
        let apart = read_apart(&resolved, &snapshot).unwrap();
        let events = apart.events(&resolved, log);
        let events: Vec<Event> = events.map(Result::unwrap).collect();

        let other = resolved.thread_of(4);
        prop_assert_eq!(temporary_in_memray(&events, other, 1), temporary(&entries, 1));
        for threshold in 2..5 {
            let too = temporary_in_memray(&events, other, threshold);
            prop_assert!(too.is_subset(&temporary(&entries, threshold)));
        }
        // Only thread numbers differ, and only those of temporary blocks.
        let temporary = temporary(&entries, 1);
        for (number, (event, plain)) in events.iter().zip(&plain).enumerate() {
            match (*event, *plain) {
                (
                    Event::Allocation { context, thread, address, size, stack, allocator },
                    Event::Allocation { thread: of_all, .. },
                ) => {
                    prop_assert_eq!(thread != of_all, temporary.contains(&number));
                    let as_all = Event::Allocation { context, thread: of_all, address, size, stack, allocator };
                    prop_assert_eq!(as_all, *plain);
                    prop_assert!((thread.0 as usize) < resolved.report.threads.len() + apart.threads().len());
                }
                (Event::Deallocation { address, .. }, Event::Deallocation { address: same, .. }) => {
                    prop_assert_eq!(address, same);
                }
                (event, plain) => prop_assert_eq!(event, plain),
            }
        }
        prop_assert_eq!(events.len(), plain.len());
    }
}

#[test]
fn threads_with_entries_of_their_own_are_unchanged() {
    let entry = LogEntry::Memory { at_ms: 1, rss: 2 };
    let snapshot = recorded(&[entry]);
    let options = ReportOptions {
        threads: ThreadMode::Each,
        ..ReportOptions::default()
    };
    let mut one_each = snapshot.clone();
    one_each.stacks.threads.pop();
    let resolved = assemble(&one_each, &options, &mut Fake::default());
    let apart = read_apart(&resolved, &one_each).unwrap();
    assert!(apart.threads().is_empty());
    // A thread of the collector that stands for several threads gets no entry of its own.
    let resolved = assemble(&snapshot, &options, &mut Fake::default());
    let apart = read_apart(&resolved, &snapshot).unwrap();
    assert_eq!(apart.threads().len(), 1, "that of the frees");
}
