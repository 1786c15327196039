//! Tests of captures with wrong numbers, which fuzzing has found. They must stay harmless.
#![allow(clippy::unwrap_used)]

use std::io::Read;

use heapray_report::Report;
use heapray_report::memray::{Ledger, Version, read, write_aggregated};
use heapray_report::model::{
    Allocator, ContextId, Event, Frame, FrameId, Mark, Site, StackId, Tally, Thread, ThreadId,
};

#[test]
fn a_header_with_too_few_frames_removes_none_from_the_call_tree() {
    /// Offset of the number of frames: after the magic, two versions, two flags and the number of events.
    const N_FRAMES: usize = 7 + 4 + 4 + 1 + 1 + 8;
    let mut written = Vec::new();
    write_aggregated(&two_threads_in_one_place(), Version::V13, &mut written).unwrap();
    let mut bare = Vec::new();
    let mut frames = lz4_flex::frame::FrameDecoder::new(&written[..]);
    for _ in ["memray's records", "what heapray adds"] {
        frames.read_to_end(&mut bare).unwrap();
    }
    assert_eq!(bare[N_FRAMES], 1);

    bare[N_FRAMES] = 0;
    let report = read(&bare[..]).unwrap().report;
    assert_eq!(report.sites.len(), 2);
    let frames = report.stacks.iter().map(|(_, node)| node.frame.0 as usize);
    assert_eq!(frames.max(), Some(0));
    assert_eq!(report.frames.len(), 1);
}

#[test]
fn the_largest_numbers_are_read_back_as_they_were_written() {
    for at_ms in [0, 1, u64::MAX - 2, u64::MAX - 1, u64::MAX] {
        let mut report = two_threads_in_one_place();
        report.totals.high_water_ms = Some(at_ms);
        report.conditions.lost_since_ms = Some(at_ms);
        report.sites[0].oldest_live_ms = Some(at_ms);
        let mut written = Vec::new();
        write_aggregated(&report, Version::V13, &mut written).unwrap();
        let again = read(&written[..]).unwrap();
        assert!(again.complete);
        assert_eq!(again.report.totals, report.totals);
        assert_eq!(again.report.conditions, report.conditions);
        assert_eq!(again.report.sites, report.sites);
    }
}

#[test]
fn texts_that_are_not_names_are_cleaned_when_they_are_read_too() {
    let strange = "a\u{1b}[2J\nb\u{202e}c\u{fffe}";
    let clean = "a [2J b\u{fffd}c\u{fffd}";
    let mut report = two_threads_in_one_place();
    report.about.command_line = strange.into();
    report.about.source_dirs = vec![strange.into()];
    report.conditions.notes = vec![strange.into()];
    report.conditions.log_given_up = Some(strange.into());
    report.marks = vec![Mark {
        name: strange.into(),
        ..Mark::default()
    }];
    let mut written = Vec::new();
    write_aggregated(&report, Version::V13, &mut written).unwrap();
    let again = read(&written[..]).unwrap().report;
    assert_eq!(again.about.command_line, clean);
    assert_eq!(again.about.source_dirs, [clean]);
    assert_eq!(again.conditions.notes, [clean]);
    assert_eq!(again.conditions.log_given_up.as_deref(), Some(clean));
    assert_eq!(again.marks[0].name, clean);
}

#[test]
fn a_mapping_that_is_split_and_never_freed_has_no_negative_frees() {
    let (thread, stack) = (ThreadId(0), StackId(1));
    let mut ledger = Ledger::default();
    ledger.enter(&Event::Allocation {
        context: ContextId::NONE,
        thread,
        allocator: Allocator::Mmap,
        address: 0x10_0000,
        size: 0x9000,
        stack,
    });
    let mut unmap = |address, size| {
        ledger.enter(&Event::Deallocation {
            thread,
            allocator: Allocator::Munmap,
            address,
            size,
        });
    };
    unmap(0x10_1000, 0x1000);
    unmap(0x10_3000, 0x1000);
    let mut report = two_threads_in_one_place();
    ledger.close(&mut report);
    let totals = &report.totals;
    assert_eq!(
        totals.freed,
        Tally {
            count: 0,
            bytes: 0x2000
        }
    );
    assert_eq!(
        totals.live,
        Tally {
            count: 3,
            bytes: 0x7000
        }
    );
}

/// The capture has root frames for the threads, which the report does not have.
fn two_threads_in_one_place() -> Report {
    let mut report = Report::default();
    let function = report.strings.intern("main");
    let file = report.strings.intern("src/main.rs");
    let line = 1;
    report.frames.push(Frame {
        function,
        file,
        line,
    });
    let stack = report.stacks.child(StackId::EMPTY, FrameId(0));
    let block = Tally { count: 1, bytes: 8 };
    for n in 0..2 {
        let name = report.strings.intern(&format!("worker-{n}"));
        let (tid, threads) = (u64::from(n), 1);
        report.threads.push(Thread { tid, name, threads });
        report.sites.push(Site {
            context: ContextId::NONE,
            thread: ThreadId(n),
            stack,
            allocator: Allocator::Malloc,
            allocated: block,
            high_water: block,
            live: block,
            temporary: Tally::default(),
            oldest_live_ms: None,
        });
        report.totals.high_water += block;
        report.totals.live += block;
    }
    report
}
