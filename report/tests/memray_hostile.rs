//! Captures whose numbers lie: found by fuzzing, kept so that they stay harmless.
#![allow(clippy::unwrap_used)]

use std::io::Read;

use heapray_report::Report;
use heapray_report::memray::{Version, read, write_aggregated};
use heapray_report::model::{Allocator, Frame, FrameId, Site, StackId, Tally, Thread, ThreadId};

#[test]
fn a_header_that_counts_too_few_frames_takes_none_from_the_call_tree() {
    /// Behind the magic, two versions and two flags; before it is the number of events.
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

/// The threads get root frames in the capture, which are not the report's.
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
