//! Any bytes are a capture or an error, and the parts of a report fit together.
#![no_main]

use heapray_report::Report;
use heapray_report::memray::read;
use heapray_report::model::Tally;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match read(bytes) {
        Ok(capture) => check(&capture.report),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});

/// Checks that every handle is valid, and that sums agree with their parts.
fn check(report: &Report) {
    for frame in &report.frames {
        let _ = report.strings.get(frame.function);
        let _ = report.strings.get(frame.file);
    }
    for thread in &report.threads {
        let _ = report.strings.get(thread.name);
    }
    for (id, node) in report.stacks.iter() {
        assert!(node.parent < id, "parents come before children");
        assert!((node.frame.0 as usize) < report.frames.len());
    }
    let mut live = Tally::default();
    for site in &report.sites {
        assert!(site.stack.0 as usize <= report.stacks.len());
        assert!((site.thread.0 as usize) < report.threads.len());
        live += site.live;
    }
    for held in &report.history.list {
        assert!((held.site as usize) < report.sites.len());
        assert!((held.moment as usize) < report.history.moments.len());
    }
    for survivor in &report.survivors.list {
        assert!((survivor.site as usize) < report.sites.len());
        assert!((survivor.generation as usize) < report.survivors.starts_ms.len());
    }
}
