//! Every text, page and view can be made for any report that can be read.
#![no_main]
#![allow(unused_must_use)] // what is tested is that each ends

use heapray_report::memray::{MemoryLimit, events, read};
use heapray_report::page::Page;
use heapray_report::stats;
use heapray_report::views::{
    Filter, Fold, IntervalOptions, Intervals, Origins, at_moment, by_context, by_function,
    by_location, by_module, context_keys, context_rows, diff, filtered, folded, in_range, inverted,
    known, leaks, merged, own_sites, readable, resident_parts, temporary,
};
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
    known(report);
    leaks(report);
    resident_parts(report);
    let intervals = events(bytes).ok().map(|events| {
        let few = IntervalOptions {
            rows: 8,
            ..IntervalOptions::default()
        };
        Intervals::of(report, events, few).expect("a slice does not fail")
    });
    let intervals = intervals.as_ref();
    let page = Page {
        report,
        intervals,
        has_log: intervals.is_some(),
        sources: None,
    };
    page.write(&mut std::io::sink())
        .expect("a sink takes everything");
    for fold in [Fold::Runtime, Fold::Packages, Fold::AllButOwn] {
        folded(report, fold);
    }
    let other = filtered(
        report,
        &Filter {
            text: "e".into(),
            ..Filter::default()
        },
    );
    for key in context_keys(report) {
        context_rows(&by_context(report, key), key);
    }
    diff(&other, &readable(report)).tree();
    merged(&[inverted(report), other]);
    if let (Ok(first), Ok(second), Ok(third)) = (events(bytes), events(bytes), events(bytes)) {
        at_moment(report, first, 50, MemoryLimit::NONE).expect("a slice does not fail");
        in_range(report, second, 10, 100, u64::MAX, MemoryLimit::NONE)
            .expect("a slice does not fail");
        temporary(report, third, 3).expect("a slice does not fail");
    }
});
