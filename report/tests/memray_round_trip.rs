//! Tests that a written capture is read back unchanged, in both formats and versions. Sums from memray's records alone equal
//! those of a naive model.
#![allow(clippy::unwrap_used)]

mod support;

use heapray_report::Report;
use heapray_report::memray::{
    Format, MemoryLimit, Version, events, in_one_line, read, write_aggregated, write_all,
};
use heapray_report::model::{Event, Tally};
use heapray_report::views::in_range;
use proptest::prelude::*;
use std::collections::BTreeMap;
use support::{Program, names, program, spelled, spelled_event, unpacked, without_extension};

const VERSIONS: [Version; 2] = [Version::V12, Version::V13];

fn all(program: &Program, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    write_all(
        &program.report,
        program.events.iter().copied().map(Ok),
        version,
        &mut out,
    )
    .unwrap();
    out
}

fn aggregated(report: &Report, version: Version) -> Vec<u8> {
    let mut out = Vec::new();
    write_aggregated(report, version, &mut out).unwrap();
    out
}

/// Checks that everything is equal, but for the handles of strings and call stacks, which depend on the order of first use.
fn assert_same(got: &Report, written: &Report) -> Result<(), TestCaseError> {
    prop_assert_eq!(&got.about, &written.about);
    prop_assert_eq!(&got.timeline, &written.timeline);
    prop_assert_eq!(&got.totals, &written.totals);
    prop_assert_eq!(&got.conditions, &written.conditions);
    prop_assert_eq!(&got.marks, &written.marks);
    prop_assert_eq!(&got.survivors, &written.survivors);
    prop_assert_eq!(&got.history, &written.history);
    prop_assert_eq!(&got.modules, &written.modules);
    prop_assert_eq!(&got.places, &written.places);
    prop_assert_eq!(&got.process_memory, &written.process_memory);
    prop_assert_eq!(spelled(got), spelled(written));
    prop_assert_eq!(got.frames.len(), written.frames.len());
    prop_assert_eq!(got.stacks.len(), written.stacks.len());
    for (a, b) in got.threads.iter().zip(&written.threads) {
        prop_assert_eq!((a.tid, a.threads), (b.tid, b.threads));
        prop_assert_eq!(got.strings.get(a.name), written.strings.get(b.name));
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn a_capture_of_all_events_is_read_back_unchanged(program in program()) {
        for version in VERSIONS {
            let file = all(&program, version);
            let capture = read(&file[..]).unwrap();
            prop_assert_eq!((capture.format, capture.version), (Format::AllAllocations, version));
            prop_assert!(capture.complete);
            assert_same(&capture.report, &program.report)?;

            let mut expected: Vec<_> =
                program.events.iter().map(|e| spelled_event(&program.report, e)).collect();
            let mut got: Vec<_> = events(&file[..])
                .unwrap()
                .map(|event| spelled_event(&capture.report, &event.unwrap()))
                .collect();
            if !matches!(program.events.last(), Some(Event::Memory { .. })) {
                prop_assert!(got.pop().unwrap().starts_with("Memory"));
            }
            prop_assert_eq!(&mut got, &mut expected);
        }
    }

    #[test]
    fn sums_from_the_events_alone_equal_the_models(program in program()) {
        let bare = without_extension(&all(&program, Version::V13));
        let capture = read(&bare[..]).unwrap();
        prop_assert!(capture.complete);
        let mut report = capture.report;
        // Without a reading of memory, the writer adds one at the end. It does not change the sums.
        report.timeline.truncate(program.report.timeline.len());
        if program.report.timeline.is_empty() {
            report.totals.high_water_ms = None;
        }
        prop_assert_eq!(spelled(&report), spelled(&program.report));
        prop_assert_eq!(&report.totals, &program.report.totals);
        prop_assert_eq!(&report.timeline, &program.report.timeline);
        prop_assert_eq!(report.about.events, program.report.about.events);
        prop_assert_eq!(report.conditions.unknown_frees, program.report.conditions.unknown_frees);
        let starts = &report.survivors.starts_ms;
        for (generation, &start) in (0..).zip(starts) {
            let end = starts.get(generation + 1).copied().unwrap_or(u64::MAX);
            let log = events(&bare[..]).unwrap();
            let born = in_range(&report, log, start, end, u64::MAX, MemoryLimit::NONE).unwrap();
            let mut live = Tally::default();
            for survivor in &report.survivors.list {
                if survivor.generation as usize == generation {
                    live += survivor.live;
                }
            }
            prop_assert_eq!(live, born.totals.live);
        }
        let last = report.timeline.last().map_or(0, |moment| moment.at_ms);
        prop_assert_eq!(starts.is_empty(), last == 0);
        let moments = &report.history.moments;
        prop_assert!(moments.iter().all(|moment| starts.contains(&moment.at_ms)));
    }

    #[test]
    fn an_aggregated_capture_is_read_back_unchanged(program in program()) {
        for version in VERSIONS {
            let file = aggregated(&program.report, version);
            let capture = read(&file[..]).unwrap();
            prop_assert_eq!((capture.format, capture.version), (Format::Aggregated, version));
            prop_assert!(capture.complete);
            assert_same(&capture.report, &program.report)?;
            prop_assert_eq!(&capture.report.stacks, &program.report.stacks);
            prop_assert!(events(&file[..]).is_err());
        }
    }

    #[test]
    fn rows_of_an_aggregated_capture_have_the_live_blocks_and_the_peak(program in program()) {
        let written = &program.report;
        let capture = read(&without_extension(&aggregated(written, Version::V13))[..]).unwrap();
        let by_stack = |report: &Report| {
            let mut sums: BTreeMap<_, (Tally, Tally)> = BTreeMap::new();
            for site in &report.sites {
                let thread = report.threads[site.thread.0 as usize];
                let mut stack = names(report, site.stack);
                if stack.first().is_some_and(|root| root.0.starts_with("thread ")) {
                    stack.remove(0);
                }
                let key = (report.strings.get(thread.name).to_owned(), stack);
                let sum = sums.entry(key).or_default();
                sum.0 += site.high_water;
                sum.1 += site.live;
            }
            sums.retain(|_, sum| sum.0.count + sum.1.count > 0);
            sums
        };
        prop_assert_eq!(by_stack(&capture.report), by_stack(written));
        // memray counts right only if each stack has one row.
        let mut stacks: Vec<_> = capture.report.sites.iter().map(|site| site.stack).collect();
        stacks.sort_unstable();
        let rows = stacks.len();
        stacks.dedup();
        prop_assert_eq!(stacks.len(), rows);
        prop_assert_eq!(capture.report.totals.live, written.totals.live);
        prop_assert_eq!(capture.report.totals.high_water, written.totals.high_water);
    }

    #[test]
    fn a_capture_that_is_cut_anywhere_gives_the_part_before_the_cut(program in program(), at: prop::sample::Index) {
        let bare = unpacked(&all(&program, Version::V13));
        let whole: Vec<_> = events(&bare[..]).unwrap().map(Result::unwrap).collect();
        let end = without_extension(&all(&program, Version::V13)).len();
        let mut cut = bare[..at.index(bare.len())].to_vec();
        while cut.last() == Some(&0) {
            cut.pop(); // memray's rule for files of killed processes
        }
        match read(&cut[..]) {
            Err(error) => prop_assert!(cut.len() < 400, "{error}"),
            Ok(capture) => {
                prop_assert!(!capture.complete || cut.len() == end);
                if !capture.complete {
                    prop_assert!(!capture.report.conditions.notes.is_empty());
                }
                let part: Vec<_> = events(&cut[..]).unwrap().map(Result::unwrap).collect();
                prop_assert!(part.len() <= whole.len());
                if cut.len() < end {
                    prop_assert!(whole.starts_with(&part));
                    prop_assert_eq!(capture.report.about.events,
                        part.iter().filter(|e| !matches!(e, Event::Memory { .. })).count() as u64);
                }
            }
        }
    }

    #[test]
    fn a_damaged_capture_is_read_or_refused_but_never_trusted(
        program in program(),
        aggregate: bool,
        pack: bool,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut file = if aggregate {
            aggregated(&program.report, Version::V13)
        } else {
            all(&program, Version::V13)
        };
        if !pack {
            file = unpacked(&file);
        }
        for (at, byte) in damage {
            let at = at.index(file.len());
            file[at] = byte;
        }
        if let Ok(capture) = read(&file[..]) {
            let report = &capture.report;
            for site in &report.sites {
                prop_assert!((site.thread.0 as usize) < report.threads.len());
                names(report, site.stack);
            }
        }
        if let Ok(events) = events(&file[..]) {
            for event in events {
                event.unwrap();
            }
        }
    }

    #[test]
    fn bytes_that_are_not_a_capture_are_refused(bytes: Vec<u8>) {
        prop_assert!(read(&bytes[..]).is_err());
    }

    #[test]
    fn any_bytes_after_a_header_are_read_or_refused(
        program in program(), aggregate: bool, body in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let mut empty = program;
        empty.events.clear();
        let file = if aggregate {
            aggregated(&empty.report, Version::V13)
        } else {
            all(&empty, Version::V13)
        };
        let mut file = unpacked(&file);
        let threads = file.windows(9).position(|w| w == b"\x0cheapray\0").unwrap();
        file.truncate(threads);
        file.extend_from_slice(b"\x0c\x01\0\0\0\0\0\0\0");
        file.extend(body);
        let capture = read(&file[..]).unwrap();
        for site in &capture.report.sites {
            names(&capture.report, site.stack);
        }
    }
}

#[test]
fn errors_say_what_is_wrong() {
    let message = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
    assert_eq!(
        message(b""),
        "not a memray capture: it does not begin with \"memray\""
    );
    assert_eq!(
        message(b"memray\0\x0b\0\0\0\x01"),
        "capture format version 11 is not supported, only 12 (memray 1.19) and 13 (memray 1.20)"
    );
    assert_eq!(
        message(b"memray\0\x0d\0\0\0\xf0\x00\x0b\x03"),
        "bad capture header at byte 15: the capture ends here"
    );
}

#[test]
fn names_that_would_break_a_text_are_one_line() {
    assert_eq!(in_one_line("a\nb"), "a b");
}

#[test]
fn a_note_says_where_a_capture_was_cut() {
    let report = support::skeleton(1);
    let program = Program {
        report,
        events: vec![Event::Memory { at_ms: 1, rss: 2 }],
    };
    let bare = without_extension(&all(&program, Version::V13));
    let capture = read(&bare[..bare.len() - 2]).unwrap();
    let note = capture.report.conditions.notes.last().unwrap();
    assert!(note.contains("at byte"), "{note}");
    assert!(!capture.complete);
}
