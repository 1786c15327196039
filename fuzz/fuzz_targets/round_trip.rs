//! Any report can be written as an aggregated capture, and is read back with the same sums.
#![no_main]

use heapray_report::memray::{Version, read, write_aggregated};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(capture) = read(bytes) else {
        return;
    };
    let mut written = Vec::new();
    write_aggregated(&capture.report, Version::V13, &mut written)
        .expect("the handles of what was read fit together");
    let again = read(&written[..]).expect("our own writer writes captures");
    assert!(again.complete, "{:?}", again.report.conditions.notes);
    assert_eq!(again.report.totals, capture.report.totals);
    assert_eq!(again.report.sites.len(), capture.report.sites.len());
});
