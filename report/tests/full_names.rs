//! Tests of plain and full names of functions: in views, in sums, and in captures.
#![allow(clippy::unwrap_used)]

use heapray_report::Report;
use heapray_report::memray::{self, Version, write_aggregated, write_all};
use heapray_report::model::{
    Allocator, ContextId, Event, Frame, FrameId, Site, StackId, StrId, Tally, Thread, ThreadId,
};
use heapray_report::views::{
    LONGEST_SHOWN, Names, agree_on_names, diff, merged, named, own_sites, plain_name, short_name,
};

const FILE: &str = "/srv/shop/src/main.rs";

/// Makes a report with a call site of 100 bytes below `main` for each full name, at its line.
fn report(functions: &[(&str, u32)]) -> Report {
    let mut report = Report::default();
    let file = report.strings.intern(FILE);
    let frame = |report: &mut Report, full: &str, line| {
        let function = report.strings.intern(&plain_name(full));
        report.frames.push(Frame {
            function,
            file,
            line,
        });
        let full = report.strings.intern(full);
        report.full_names.push(full);
        FrameId(report.frames.len() as u32 - 1)
    };
    let main = frame(&mut report, "shop::main", 1);
    let main = report.stacks.child(StackId::EMPTY, main);
    report.threads.push(Thread {
        tid: 7,
        name: StrId::EMPTY,
        threads: 1,
    });
    let tally = Tally {
        count: 1,
        bytes: 100,
    };
    for &(full, line) in functions {
        let frame = frame(&mut report, full, line);
        report.sites.push(Site {
            context: ContextId::NONE,
            thread: ThreadId(0),
            stack: report.stacks.child(main, frame),
            allocator: Allocator::Malloc,
            allocated: tally,
            high_water: tally,
            live: tally,
            temporary: Tally::default(),
            oldest_live_ms: None,
        });
    }
    let whole = functions.len() as u64;
    let sum = Tally {
        count: whole,
        bytes: whole * 100,
    };
    (report.totals.allocated, report.totals.live) = (sum, sum);
    report.totals.high_water = sum;
    report
}

const TWO: [(&str, u32); 3] = [
    ("<shop::Cart<u8>>::add", 7),
    ("<shop::Cart<alloc::string::String>>::add", 7),
    ("<shop::Cart<u8>>::add", 9),
];

/// Returns the leaf function, line and live bytes of each site.
fn sites(report: &Report) -> Vec<(&str, u32, u64)> {
    report
        .sites
        .iter()
        .map(|site| {
            let leaf = report.stacks.leaf_to_root(site.stack).next().unwrap();
            let frame = report.frames[leaf.0 as usize];
            let name = report.strings.get(frame.function);
            (name, frame.line, site.live.bytes)
        })
        .collect()
}

#[test]
fn call_sites_that_differ_only_in_type_parameters_are_one_without_full_names() {
    let both = report(&TWO);
    let plain = named(&both, Names::Plain).unwrap();
    assert_eq!(
        sites(&plain),
        [("shop::Cart::add", 7, 200), ("shop::Cart::add", 9, 100)]
    );
    assert_eq!(plain.totals, both.totals);
    assert_eq!(named(&plain, Names::Plain), None, "they are plain");
    let full = named(&both, Names::Full).unwrap();
    assert_eq!(
        sites(&full),
        TWO.map(|(function, line)| (function, line, 100))
    );
    assert_eq!(named(&full, Names::Full), None, "they are full");
    // Captures of earlier versions have only full names, and can still be read.
    assert_eq!(sites(&named(&full, Names::Plain).unwrap()), sites(&plain));
}

fn events(report: &Report) -> Vec<Event> {
    (1..)
        .zip(&report.sites)
        .map(|(nth, site)| Event::Allocation {
            context: ContextId::NONE,
            thread: site.thread,
            allocator: site.allocator,
            address: nth * 4096,
            size: 100,
            stack: site.stack,
        })
        .collect()
}

#[test]
fn a_capture_keeps_full_names_and_shows_memray_plain_ones() {
    let both = report(&TWO);
    for with_events in [false, true] {
        let mut file = Vec::new();
        if with_events {
            let events = events(&both).into_iter().map(Ok);
            write_all(&both, events, Version::V13, &mut file).unwrap();
        } else {
            write_aggregated(&both, Version::V13, &mut file).unwrap();
        }
        for read in [
            memray::read(&*file).unwrap(),
            memray::read_file(std::io::Cursor::new(&file)).unwrap(),
        ] {
            assert!(read.complete);
            let plain = sites(&read.report);
            assert!(plain.iter().all(|(name, ..)| *name == "shop::Cart::add"));
            for names in [Names::Plain, Names::Full] {
                assert_eq!(
                    sites(&named(&read.report, names).unwrap()),
                    sites(&named(&both, names).unwrap())
                );
            }
        }
        if with_events {
            // Each event has the site with its own stack.
            let read = memray::read_file(std::io::Cursor::new(&file))
                .unwrap()
                .report;
            let full = named(&read, Names::Full).unwrap();
            let events = memray::events_of_file(std::io::Cursor::new(&file)).unwrap();
            let stacks: Vec<StackId> = events
                .map(Result::unwrap)
                .filter_map(|event| match event {
                    Event::Allocation { stack, .. } => Some(stack),
                    _ => None,
                })
                .collect();
            let of_sites: Vec<StackId> = full.sites.iter().map(|site| site.stack).collect();
            assert_eq!(stacks, of_sites);
        }
    }
}

#[test]
fn builds_with_both_manglings_are_compared_and_added_up_by_function() {
    let legacy = report(&[
        ("shop::Cart<T>::add", 7),
        ("<T as shop::Spawn>::spawn", 20),
        ("shop::main::{{closure}}", 30),
        ("alloc::slice::<impl [T]>::into_vec", 40),
        ("shop::api::<impl shop::Job for shop::Mail>::run", 50),
    ]);
    let v0 = report(&[
        ("<shop::Cart<u8>>::add", 7),
        ("<shop::Mail as shop::Spawn>::spawn", 20),
        ("shop::main::{closure#0}", 30),
        ("<[u8]>::into_vec", 40),
        ("<shop::Mail as shop::Job>::run", 50),
    ]);
    for pair in [[legacy.clone(), v0.clone()], [v0, legacy]] {
        let mut reports = pair;
        agree_on_names(&mut reports);
        let sum = merged(&reports);
        let plain = named(&sum, Names::Plain).unwrap();
        let bytes: Vec<u64> = sites(&plain).iter().map(|site| site.2).collect();
        assert_eq!(bytes, [200; 5], "{:?}", sites(&plain));
        assert_eq!(sum.sites.len(), 10, "full names are there still");
        let plain = reports.map(|report| named(&report, Names::Plain).unwrap());
        let changes = diff(&plain[0], &plain[1]);
        assert_eq!(changes.by_stack, [], "nothing changed");
        assert_eq!(changes.by_own_site, []);
    }
}

#[test]
fn a_long_name_is_shortened_in_views_and_complete_on_request() {
    let long = format!("shop::{}::add", "x".repeat(15_000));
    let both = report(&[(&long, 7)]);
    let plain = named(&both, Names::Plain).unwrap();
    let (shown, ..) = sites(&plain)[0];
    assert_eq!(shown.chars().count(), LONGEST_SHOWN);
    assert!(
        shown.starts_with("shop::xxx") && shown.ends_with("xxx::add"),
        "{shown}"
    );
    assert!(shown.contains('…'));
    assert_eq!(short_name(shown), shown);
    let full = named(&both, Names::Full).unwrap();
    assert_eq!(sites(&full)[0].0, long);
}

#[test]
fn pythons_names_are_those_of_the_source() {
    let mut report = report(&[]);
    report.full_names.clear();
    for frame in &mut report.frames {
        frame.function = report.strings.intern("a.<locals>.b<c>");
        frame.file = report.strings.intern("/srv/a.py");
    }
    assert_eq!(named(&report, Names::Plain), None);
}

#[test]
fn a_line_of_own_code_is_one_in_lists() {
    let plain = named(&report(&TWO), Names::Plain).unwrap();
    let origins = heapray_report::views::Origins::of(&plain);
    assert_eq!(own_sites(&plain, &origins).len(), 2);
}
