//! Every text and page can be made of whatever was read.
#![no_main]

use heapray_report::memray::read;
use heapray_report::views::{Origins, by_function, by_location, by_module, own_sites};
use heapray_report::{page, stats};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(capture) = read(bytes) else {
        return;
    };
    let report = &capture.report;
    assert!(!stats::text(report).is_empty());
    by_location(report);
    by_module(report);
    by_function(report);
    own_sites(report, &Origins::of(report));
    page::flamegraph(report, &mut std::io::sink()).expect("a sink takes everything");
});
