//! The events of a capture use the handles of the report that is read from the same bytes.
#![no_main]

use heapray_report::memray::{Ledger, events, read};
use heapray_report::model::Event;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(mut events) = events(bytes) else {
        return;
    };
    let report = read(bytes)
        .expect("its header was good a moment ago")
        .report;
    let mut ledger = Ledger::default();
    for event in &mut events {
        let event = event.expect("a slice does not fail");
        if let Event::Allocation { thread, stack, .. } = event {
            assert!((thread.0 as usize) < report.threads.len());
            // heapray's extension of a capture may replace the call tree, and with it the handles of the events.
            if report.about.producer == "memray" {
                assert!(stack.0 as usize <= report.stacks.len());
            }
        }
        ledger.enter(&event);
    }
});
