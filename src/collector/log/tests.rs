use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, UNIX_EPOCH};

use super::block::FULL;
use super::{Known, LogEntry, LogReader, LogWriter, Names, Process, spool};
use crate::capture::event::{Kind, NodeId};
use crate::capture::modules::{MappedCode, Module, ModuleId};
use crate::collector::snapshot::{EventLog, RawNode, RawThread};
use crate::contexts::Labels;
use heapray_report::model::{Mark, Tally};
use proptest::prelude::*;

/// Room for 64 blocks.
const MEMORY: u64 = 65 * FULL as u64;

fn written(entries: &[LogEntry], flushes: &[usize]) -> (Arc<File>, u64) {
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY);
    for (number, entry) in entries.iter().enumerate() {
        if writer.push(entry) || flushes.contains(&number) {
            writer.flush();
        }
    }
    writer.flush();
    let log = writer.written().unwrap();
    assert_eq!(log.events, entries.len() as u64);
    assert_eq!(log.file.metadata().unwrap().len(), log.bytes);
    (log.file, log.bytes)
}

fn read(file: &Arc<File>, bytes: u64) -> io::Result<Vec<LogEntry>> {
    LogReader::new(part(file, bytes)).collect()
}

/// Returns the first `bytes` bytes of `file` as a log.
fn part(file: &Arc<File>, bytes: u64) -> EventLog {
    EventLog {
        file: Arc::clone(file),
        bytes,
        events: 0,
        pairs: Arc::default(),
    }
}

fn any_number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0u64..300,
        any::<u64>(),
        (0u32..64).prop_map(|bit| 1 << bit),
        Just(u64::MAX)
    ]
}

fn any_address() -> impl Strategy<Value = u64> {
    prop_oneof![6 => (0u64..500).prop_map(|n| 0x5555_0000_0000 + n * 16), 1 => any_number()]
}

fn any_thread() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..12, 1 => any::<u32>()]
}

fn allocation_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(vec![
        Kind::Malloc,
        Kind::Realloc,
        Kind::Calloc,
        Kind::PosixMemalign,
        Kind::AlignedAlloc,
        Kind::Memalign,
        Kind::Valloc,
        Kind::Pvalloc,
        Kind::Mmap,
    ])
}

fn any_entry() -> impl Strategy<Value = LogEntry> {
    let node = prop_oneof![6 => 0u32..40, 1 => any::<u32>()];
    prop_oneof![
        8 => (any_thread(), allocation_kind(), any_address(), any_number(), node).prop_map(
            |(thread, kind, address, size, node)| LogEntry::Allocation { context: 0, thread, kind, address, size, node: NodeId(node) }
        ),
        8 => (any_thread(), any_address()).prop_map(
            |(thread, address)| LogEntry::Deallocation { thread, kind: Kind::Free, address, size: 0 }
        ),
        1 => (any_thread(), any_address(), any_number()).prop_map(
            |(thread, address, size)| LogEntry::Deallocation { thread, kind: Kind::Munmap, address, size }
        ),
        1 => (any_number(), any_number()).prop_map(|(at_ms, rss)| LogEntry::Memory { at_ms, rss }),
    ]
}

/// Returns an entry of a service's pattern: few sites, addresses that come again, and sometimes another thread.
fn entry_of(number: u64) -> LogEntry {
    let thread = (number / 100 % 3) as u32;
    let address = 0x5555_0000_0000 + number / 2 % 5000 * 48;
    if number.is_multiple_of(2) {
        let node = NodeId((number % 400) as u32);
        LogEntry::Allocation {
            context: 0,
            thread,
            kind: Kind::Malloc,
            address,
            size: number % 7 * 16,
            node,
        }
    } else {
        LogEntry::Deallocation {
            thread,
            kind: Kind::Free,
            address,
            size: 0,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_is_written_is_read(
        entries in prop::collection::vec(any_entry(), 0..3000),
        flushes in prop::collection::vec(0usize..3000, 0..4),
    ) {
        let (file, bytes) = written(&entries, &flushes);
        prop_assert_eq!(read(&file, bytes).unwrap(), entries);
    }

    #[test]
    fn a_changed_byte_is_found(
        entries in prop::collection::vec(any_entry(), 1..500),
        flush in 0usize..500,
        at in any::<prop::sample::Index>(),
        change in 1u8..,
    ) {
        let (file, bytes) = written(&entries, &[flush]);
        let at = at.index(bytes as usize) as u64;
        let mut byte = [0];
        file.read_exact_at(&mut byte, at).unwrap();
        file.write_all_at(&[byte[0] ^ change], at).unwrap();
        let mut good = Vec::new();
        let mut reader = LogReader::new(part(&file, bytes));
        let error = reader.find_map(|entry| entry.map(|entry| good.push(entry)).err());
        let kind = error.expect("the change is found").kind();
        prop_assert!(matches!(kind, io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof));
        prop_assert!(reader.next().is_none());
        prop_assert_eq!(&good[..], &entries[..good.len()]);
    }

    #[test]
    fn a_torn_tail_is_found(entries in prop::collection::vec(any_entry(), 1..500), keep in any::<prop::sample::Index>(), cut in any::<bool>()) {
        let (file, bytes) = written(&entries, &[]);
        let kept = keep.index(bytes as usize - 1) as u64 + 1;
        if cut {
            file.set_len(kept).unwrap();
        }
        let error = read(&file, if cut { bytes } else { kept }).map(|_| ());
        prop_assert_eq!(error.map_err(|error| error.kind()), if kept == bytes { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof) });
    }

    /// The checksum protects the decoder from damage. Here it is corrected, so that the decoder meets the damage itself.
    #[test]
    fn the_decoder_survives_anything(bytes in prop::collection::vec(any::<u8>(), 0..2000), events in any::<u32>(), raw in 0usize..200_000, compressed in any::<bool>(), names in any::<bool>()) {
        use super::block::Header;
        let raw = if compressed { raw } else { bytes.len() };
        let header = Header { stored: bytes.len(), raw, events, compressed, names };
        let file = spool();
        file.write_all_at(&header.encode(&bytes), 0).unwrap();
        file.write_all_at(&bytes, 24).unwrap();
        let mut reader = LogReader::new(part(&Arc::new(file), 24 + bytes.len() as u64));
        let entries = reader.by_ref().count();
        prop_assert!(entries <= bytes.len() + 200_000);
        prop_assert!(reader.next().is_none());
        let _ = LogReader::recover(reader.file());
    }
}

#[test]
fn a_header_cannot_ask_for_much_memory() {
    use super::block::{HEADER, Header};
    for (stored, raw) in [(1usize << 30, 10usize), (10, 1 << 30), (1 << 20, 1 << 20)] {
        let header = Header {
            stored,
            raw,
            events: 1,
            compressed: true,
            names: false,
        };
        let bytes: [u8; HEADER] = header.encode(&[]);
        assert!(Header::decode(&bytes).is_err());
    }
}

#[test]
fn many_blocks_make_one_log_and_an_event_costs_few_bytes() {
    let entries: Vec<_> = (0..150_000).map(entry_of).collect();
    let (file, bytes) = written(&entries, &[40_000]);
    assert!(bytes <= 6 * entries.len() as u64, "{bytes} bytes");
    assert!(read(&file, bytes).unwrap() == entries);
}

#[test]
fn a_log_may_be_read_while_it_is_written() {
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY);
    let mut snapshots = Vec::new();
    for number in 0..100_000 {
        if writer.push(&entry_of(number)) {
            writer.flush();
        }
        if number % 30_000 == 0 {
            writer.flush();
            snapshots.push((number + 1, writer.written().unwrap()));
        }
    }
    for (events, log) in snapshots {
        assert_eq!(log.events, events);
        let entries = read(&log.file, log.bytes).unwrap();
        assert!(entries.into_iter().eq((0..events).map(entry_of)));
    }
}

#[test]
fn the_limit_ends_the_log_for_good() {
    let mut writer = LogWriter::new(spool(), 100_000, MEMORY);
    let file = writer.written().unwrap().file;
    for number in 0..100_000 {
        let full = writer.push(&LogEntry::Memory {
            at_ms: number << 32,
            rss: number.wrapping_mul(0x9E37_79B9_7F4A_7C15),
        });
        if full {
            writer.flush();
        }
    }
    writer.flush();
    assert!(writer.written().is_none());
    assert_eq!(
        writer.given_up(),
        Some("its limit of 100000 bytes is reached")
    );
    assert!(file.metadata().unwrap().len() <= 100_000);
    writer.give_up("another reason".into());
    assert_eq!(
        writer.given_up(),
        Some("its limit of 100000 bytes is reached")
    );
}

#[test]
fn a_full_disk_ends_the_log_with_its_reason() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut writer = LogWriter::new(full, u64::MAX, MEMORY);
    assert!(!writer.push(&entry_of(0)));
    assert_eq!(writer.given_up(), None);
    writer.flush();
    assert!(writer.written().is_none());
    assert_eq!(writer.given_up(), Some("the disk is full"));
}

/// Writes so many full blocks, if the log is not given up before.
fn write_blocks(writer: &mut LogWriter, blocks: u64) {
    let mut full = 0;
    for number in 0.. {
        if writer.push(&entry_of(number)) {
            writer.flush();
            full += 1;
        }
        if full == blocks || writer.given_up().is_some() {
            return;
        }
    }
}

#[test]
fn a_disk_that_stalls_is_not_waited_for_while_the_queue_has_room() {
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY);
    let empty = writer.memory_bytes();
    let (release, stall) = sync_channel(0);
    writer.stall(stall);
    write_blocks(&mut writer, 60);
    let pending = writer.pending();
    assert_eq!((writer.bytes(), writer.given_up()), (0, None));
    assert!(writer.memory_bytes() > empty + (60 * FULL) as u64);
    drop(release);
    let log = pending.wait().unwrap();
    assert_eq!(writer.bytes(), log.bytes);
    assert!(writer.memory_bytes() < empty + (8 * FULL) as u64);
    let entries = read(&log.file, log.bytes).unwrap();
    assert!(entries.into_iter().eq((0..log.events).map(entry_of)));
}

#[test]
fn a_queue_that_stays_full_ends_the_log() {
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY);
    let (release, stall) = sync_channel(0);
    writer.stall(stall);
    let pending = writer.pending();
    write_blocks(&mut writer, 70);
    let reason = writer.given_up().unwrap().to_owned();
    assert!(reason.contains("too slow"), "{reason}");
    drop(release);
    assert_eq!(pending.wait().unwrap_err(), reason);
    assert!(writer.written().is_none());
    // What was in the queue is gone soon.
    while writer.memory_bytes() > FULL as u64 {
        std::thread::yield_now();
    }
}

#[test]
fn a_disk_that_does_not_answer_is_not_waited_for_at_the_end() {
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY);
    let (_release, stall) = sync_channel(0);
    writer.stall(stall);
    writer.push(&entry_of(0));
    writer.flush();
    let given_up = writer.pending().wait_for(Duration::from_millis(5));
    assert_eq!(given_up.unwrap_err(), "its disk does not answer");
    assert_eq!(writer.given_up(), Some("its disk does not answer"));
}

/// A process, two modules, a call tree and two threads.
fn names() -> Names {
    let module = |path: &str, code| Module {
        path: path.into(),
        load_bias: 7,
        start: 1 << 40,
        end: 2 << 40,
        code,
        build_id: vec![1, 2],
        is_main: path == "/srv/app",
    };
    let code = MappedCode {
        start: 1,
        end: 2,
        offset: 3,
    };
    let mut names = Names::none();
    names.modules = Arc::new(vec![
        module("/srv/app", Some(code)),
        module("/lib/x.so", None),
    ]);
    for number in 1..20_000u32 {
        names.nodes.push(RawNode {
            parent: NodeId(number / 2),
            module: ModuleId(number as u16 % 3),
            address: u64::from(number).wrapping_mul(0x9E37_79B9_7F4A_7C15),
        });
    }
    names.threads = ["main", "worker \u{1f980}"]
        .iter()
        .zip(1..)
        .map(|(name, number)| RawThread {
            number,
            tid: 100 + number,
            name: (*name).into(),
            threads: 1,
        })
        .collect();
    names.marks = vec![Mark {
        name: "after the first import".into(),
        at_ms: 12_345,
        live: Tally {
            count: 3,
            bytes: 1 << 33,
        },
    }];
    names.contexts = contexts();
    names.context_at = [(5, 1), (9, 2)].into_iter().collect();
    names
}

/// The contexts from number `first` on: some numbers have none.
fn contexts_from(first: u32) -> Vec<(u32, Labels)> {
    let all = [5, 9].into_iter().zip(contexts().split_off(1));
    all.filter(|&(number, _)| number >= first).collect()
}

/// Labels of each context, the first of which has none.
fn contexts() -> Vec<Labels> {
    let tenant = |name: &str| ("tenant".to_owned(), name.to_owned());
    let route = ("route".to_owned(), "GET /a".to_owned());
    vec![Vec::new(), vec![tenant("ö")], vec![route, tenant("acme")]]
}

#[test]
fn an_allocation_of_a_thread_in_a_context_is_read_as_both() {
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY).of_process(process());
    let pairs = [(7, 9), (u32::MAX, 5), (7, 5)];
    let known = |pairs| Known {
        modules: &[],
        nodes: &[],
        threads: &[],
        marks: &[],
        pairs,
        contexts_from,
    };
    let entries = [
        1 << 31,
        (1 << 31) + 1,
        7,
        u32::MAX,
        (1 << 31) + 2,
        (1 << 31) + 3,
    ];
    for (at, &entry) in entries.iter().enumerate() {
        writer.push_allocation(entry, Kind::Malloc, 16 * at as u64, 1, NodeId(1));
        writer.push_free(entry, 16 * at as u64);
        // The last entry is of a damaged file: there is no such pair.
        let found = pairs.len().min(at + 1);
        writer.write_names(known(&pairs[..found]));
        writer.flush();
    }
    let file = writer.written().unwrap().file;
    let (log, names) = LogReader::recover(file).unwrap();
    assert_eq!(*log.pairs, [(7, 2), (u32::MAX, 1), (7, 1)]);
    assert_eq!(names.contexts, contexts());
    let read = LogReader::new(log).map(|entry| match entry.unwrap() {
        LogEntry::Allocation {
            thread, context, ..
        } => (thread, Some(context)),
        LogEntry::Deallocation { thread, .. } => (thread, None),
        LogEntry::Memory { .. } => panic!("none was written"),
    });
    let threads = [
        (7, 2),
        (u32::MAX, 1),
        (7, 0),
        (u32::MAX, 0),
        (7, 1),
        ((1 << 31) + 3, 0),
    ];
    let expected = threads
        .into_iter()
        .flat_map(|(thread, context)| [(thread, Some(context)), (thread, None)]);
    assert!(read.eq(expected));
}

fn process() -> Process {
    Process {
        pid: 4711,
        started: UNIX_EPOCH + Duration::from_millis(1_234_567),
        command_line: "/srv/app --port 1".into(),
    }
}

#[test]
fn a_log_that_was_never_ended_is_read_to_its_last_whole_block_with_its_names() {
    let process = process();
    let mut names = names();
    let mut writer = LogWriter::new(spool(), u64::MAX, MEMORY).of_process(process.clone());
    let mut first = names.nodes.clone();
    first.truncate(100);
    let known = |nodes, threads| Known {
        modules: &names.modules,
        nodes,
        threads,
        marks: &names.marks,
        pairs: &[(1, 9)],
        contexts_from,
    };
    let unnamed = RawThread {
        name: String::new(),
        ..names.threads[0].clone()
    };
    writer.write_names(known(&first, std::slice::from_ref(&unnamed)));
    writer.push(&entry_of(0));
    writer.flush();
    writer.write_names(known(&names.nodes, &names.threads));
    writer.write_names(known(&names.nodes, &names.threads));
    writer.push(&entry_of(1));
    writer.flush();
    let whole = writer.written().unwrap();
    writer.push(&entry_of(2));
    writer.flush();
    let all = writer.written().unwrap();
    names.process = Some(process);
    names.address = names.nodes.last().unwrap().address;

    let (log, recovered) = LogReader::recover(Arc::clone(&all.file)).unwrap();
    assert_eq!((log.bytes, log.events), (all.bytes, 3));
    assert_eq!(recovered, names);
    assert_eq!(*log.pairs, [(1, 2)]);
    // The tail is torn, at any byte of the last block.
    for cut in [1, 20, all.bytes - whole.bytes - 1] {
        all.file.set_len(all.bytes - cut).unwrap();
        let (log, recovered) = LogReader::recover(Arc::clone(&all.file)).unwrap();
        assert_eq!((log.bytes, log.events), (whole.bytes, 2), "{cut}");
        assert_eq!(recovered, names);
        let entries = read(&log.file, log.bytes).unwrap();
        assert_eq!(entries, [entry_of(0), entry_of(1)]);
    }
    all.file.set_len(0).unwrap();
    assert_eq!(
        LogReader::recover(Arc::clone(&all.file)).unwrap().1,
        Names::none()
    );
    all.file
        .write_all_at(b"no log, but a text of some length", 0)
        .unwrap();
    assert!(LogReader::recover(all.file).is_err());
}
