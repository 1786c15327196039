//! Tests of reading a capture without its events: the result equals that of a full read, and a wrong signpost leads to a
//! full read.
#![allow(clippy::unwrap_used)]

mod support;

use std::io::{Cursor, Read, Seek, SeekFrom};

use heapray_report::memray::{
    Capture, Events, MemoryLimit, Version, events, events_of_file, read, read_file,
    write_aggregated, write_all,
};
use heapray_report::model::{Allocator, ContextId, Event, Frame, FrameId, Site, StackId, ThreadId};
use heapray_report::{Report, views};
use proptest::prelude::*;
use support::{
    Program, names, program, program_in_contexts, skeleton, spelled, spelled_event, unpacked,
};

/// The signpost's length, and the offsets of the extension's position, the tables' length and the checksum in it.
const SIGNPOST: usize = 40;
const EXTENSION: usize = 16;
const TABLES: usize = 24;
const CHECKSUM: usize = 32;

fn written(program: &Program, aggregate: bool, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    let events = program.events.iter().copied().map(Ok);
    if aggregate {
        write_aggregated(&program.report, version, &mut out).unwrap();
    } else {
        write_all(&program.report, events, version, &mut out).unwrap();
    }
    out
}

/// Returns `capture` with another position and length in its signpost, and the matching checksum.
fn forged(capture: &[u8], extension: u64, tables: u64) -> Vec<u8> {
    let mut forged = capture.to_vec();
    let at = forged.len() - SIGNPOST;
    let signpost = &mut forged[at..];
    signpost[EXTENSION..TABLES].copy_from_slice(&extension.to_le_bytes());
    signpost[TABLES..CHECKSUM].copy_from_slice(&tables.to_le_bytes());
    let sum = signpost[..CHECKSUM]
        .iter()
        .fold(0xcbf2_9ce4_8422_2325u64, |sum, &byte| {
            (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    signpost[CHECKSUM..].copy_from_slice(&sum.to_le_bytes());
    forged
}

/// Reads the signpost: the extension's position and the tables' length.
fn signpost(capture: &[u8]) -> (u64, u64) {
    let at = capture.len() - SIGNPOST;
    let number =
        |field: usize| u64::from_le_bytes(capture[at + field..at + field + 8].try_into().unwrap());
    (number(EXTENSION), number(TABLES))
}

/// Checks that everything is equal, but for the numbers of call stacks.
fn assert_same(got: &Capture, expected: &Capture) -> Result<(), TestCaseError> {
    prop_assert_eq!(got.format, expected.format);
    prop_assert_eq!(got.version, expected.version);
    prop_assert_eq!(got.facts, expected.facts);
    prop_assert_eq!(got.complete, expected.complete);
    let (got, expected) = (&got.report, &expected.report);
    prop_assert_eq!(spelled(got), spelled(expected));
    prop_assert_eq!(got.stacks.len(), expected.stacks.len());
    // Everything that does not refer to a call stack has the same order and numbers.
    let rest = |report: &Report| Report {
        stacks: Default::default(),
        sites: Vec::new(),
        ..report.clone()
    };
    prop_assert_eq!(rest(got), rest(expected));
    for (a, b) in got.sites.iter().zip(&expected.sites) {
        let (names_a, names_b) = (names(got, a.stack), names(expected, b.stack));
        prop_assert_eq!(names_a, names_b);
        let stack = a.stack;
        prop_assert_eq!(*a, Site { stack, ..*b });
    }
    Ok(())
}

fn all_spelled<R: Read>(report: &Report, events: Events<R>) -> Vec<String> {
    events
        .map(|event| spelled_event(report, &event.unwrap()))
        .collect()
}

/// An input that counts the bytes read from it.
struct Counted<'a> {
    input: Cursor<&'a [u8]>,
    read: usize,
}

impl Read for Counted<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.input.read(bytes)?;
        self.read += read;
        Ok(read)
    }
}

impl Seek for Counted<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.input.seek(to)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn reading_without_events_gives_the_same_as_a_full_read(program in program_in_contexts(), aggregate: bool, old: bool) {
        let version = if old { Version::V12 } else { Version::V13 };
        let file = written(&program, aggregate, version);
        let long = read(&file[..]).unwrap();
        let short = read_file(Cursor::new(&file)).unwrap();
        assert_same(&short, &long)?;
        // An aggregated capture even has the call stacks as they were written.
        if aggregate {
            prop_assert_eq!(&short.report.stacks, &program.report.stacks);
        } else {
            let expected = all_spelled(&long.report, events(&file[..]).unwrap());
            let got = all_spelled(&short.report, events_of_file(Cursor::new(&file)).unwrap());
            prop_assert_eq!(&got, &expected);
            let written = program.events.iter().map(|event| spelled_event(&program.report, event));
            prop_assert_eq!(&got[..program.events.len()], &written.collect::<Vec<_>>()[..]);
            let total = views::in_range(
                &short.report, events_of_file(Cursor::new(&file)).unwrap(), 0, u64::MAX, u64::MAX, MemoryLimit::NONE,
            );
            prop_assert_eq!(total.unwrap().totals.live, long.report.totals.live);
        }
    }

    #[test]
    fn a_capture_without_a_signpost_is_read_from_front_to_back(
        program in program(), aggregate: bool, pack: bool, cut in 1..SIGNPOST,
    ) {
        let mut file = written(&program, aggregate, Version::V13);
        if pack {
            file.truncate(file.len() - cut);
        } else {
            file = unpacked(&file);
        }
        assert_same(&read_file(Cursor::new(&file)).unwrap(), &read(&file[..]).unwrap())?;
        if !aggregate {
            let report = read(&file[..]).unwrap().report;
            let got = all_spelled(&report, events_of_file(Cursor::new(&file)).unwrap());
            prop_assert_eq!(got, all_spelled(&report, events(&file[..]).unwrap()));
        }
    }

    #[test]
    fn a_wrong_signpost_is_not_followed(
        program in program(), aggregate: bool, extension: Option<u64>, tables: Option<u64>,
        near in -70i64..70, near_tables in -70i64..70,
    ) {
        let file = written(&program, aggregate, Version::V13);
        let (right, right_tables) = signpost(&file);
        let extension = extension.unwrap_or_else(|| right.wrapping_add_signed(near));
        let tables = tables.unwrap_or_else(|| right_tables.wrapping_add_signed(near_tables));
        let file = forged(&file, extension, tables);
        assert_same(&read_file(Cursor::new(&file)).unwrap(), &read(&file[..]).unwrap())?;
    }

    #[test]
    fn a_damaged_file_is_read_or_refused_but_never_trusted(
        program in program(),
        aggregate: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = written(&program, aggregate, Version::V13);
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(capture) = read_file(Cursor::new(&file)) {
            let report = &capture.report;
            for site in &report.sites {
                prop_assert!((site.thread.0 as usize) < report.threads.len());
                names(report, site.stack);
            }
            if let Ok(events) = events_of_file(Cursor::new(&file)) {
                all_spelled(report, events);
            }
        }
    }

    #[test]
    fn bytes_that_are_not_a_capture_are_refused_in_both_ways(bytes: Vec<u8>) {
        let refused = read_file(Cursor::new(&bytes)).unwrap_err().to_string();
        prop_assert_eq!(refused, read(&bytes[..]).unwrap_err().to_string());
        prop_assert!(events_of_file(Cursor::new(&bytes)).is_err());
    }
}

/// Makes a program that allocates again and again at three levels of one call path.
fn busy(events: u64) -> Program {
    let mut report = skeleton(3);
    let file = report.strings.intern("src/main.rs");
    let mut stack = StackId::EMPTY;
    for function in ["main", "serve", "answer"] {
        let function = report.strings.intern(function);
        let frame = FrameId(report.frames.len() as u32);
        report.frames.push(Frame {
            function,
            file,
            line: 1,
        });
        stack = report.stacks.child(stack, frame);
    }
    let stacks = report.stacks.len() as u64;
    let events = (0..events).map(|n| Event::Allocation {
        context: ContextId::NONE,
        thread: ThreadId(0),
        allocator: Allocator::Malloc,
        address: 4096 + (n * 7919 % 100_003) * 4096,
        size: n % 5000,
        stack: StackId((n % (stacks + 1)) as u32),
    });
    Program {
        events: events.collect(),
        report,
    }
}

#[test]
fn a_read_without_events_skips_the_events() {
    let file = written(&busy(200_000), false, Version::V13);
    let mut input = Counted {
        input: Cursor::new(&file),
        read: 0,
    };
    let capture = read_file(&mut input).unwrap();
    assert!(capture.complete);
    assert!(
        input.read * 2 < file.len(),
        "{} of {}",
        input.read,
        file.len()
    );
}

#[test]
fn the_events_end_at_an_event_that_is_missing_in_the_sums() {
    let whole = busy(1000);
    let mut poorer = whole.report.clone();
    poorer.stacks = Default::default();
    poorer.sites.clear();
    poorer.survivors = Default::default();
    poorer.history = Default::default();
    let poorer = Program {
        report: poorer,
        events: Vec::new(),
    };
    let (rich, poor) = (
        written(&whole, false, Version::V13),
        written(&poorer, false, Version::V13),
    );
    let (events_end, tables) = signpost(&rich);
    let (sums, _) = signpost(&poor);
    let file = [&rich[..events_end as usize], &poor[sums as usize..]].concat();
    let file = forged(&file, events_end, tables);

    let report = read_file(Cursor::new(&file)).unwrap().report;
    assert_eq!(report.stacks.len(), 0);
    let mut log = events_of_file(Cursor::new(&file)).unwrap();
    for event in &mut log {
        spelled_event(&report, &event.unwrap());
    }
    let problem = log.problem().unwrap();
    assert!(problem.contains("call stack"), "{problem}");
}

#[test]
fn a_cut_between_the_frames_is_noticed() {
    let file = written(&busy(1000), false, Version::V13);
    let (sums, _) = signpost(&file);
    for end in sums..sums + 60 {
        let cut = &file[..end as usize];
        let capture = read_file(Cursor::new(cut)).unwrap();
        assert!(!capture.complete, "{end}");
        let note = capture.report.conditions.notes.last().unwrap();
        assert!(note.contains("heapray's extension"), "{note}");
    }
}
