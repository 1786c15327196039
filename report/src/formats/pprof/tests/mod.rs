//! Tests that decode a written profile and compare it with the report.

use std::io::Read;

use flate2::read::GzDecoder;
use prost::Message;

mod fold;
mod messages;

use self::messages::Profile;
use super::{Labels, Options, write_within};
use crate::Report;
use crate::model::{
    Allocator, ContextId, FrameId, Module, Place, Site, StackId, StrId, Tally, Thread, ThreadId,
};
use proptest::prelude::*;

fn decode(report: &Report) -> Profile {
    decode_with(report, &Options::default(), super::MOST_BYTES)
}

fn decode_with(report: &Report, options: &Options, most_bytes: usize) -> Profile {
    let mut file = Vec::new();
    write_within(most_bytes, report, options, &mut file).unwrap();
    let mut bytes = Vec::new();
    GzDecoder::new(&file[..]).read_to_end(&mut bytes).unwrap();
    let profile = Profile::decode(&bytes[..]).unwrap();
    assert!(is_same_length(&profile, &bytes));
    assert_is_consistent(&profile);
    profile
}

/// Checks what Pyroscope and Parca check, and that nothing is written that no sample needs.
fn assert_is_consistent(profile: &Profile) {
    let mut is_used = vec![false; profile.string_table.len()];
    let mut text = |number: i64| {
        is_used[number as usize] = true;
        number as usize
    };
    assert_eq!(text(0), 0);
    assert_eq!(profile.string_table[0], "");
    let types = profile.sample_type.iter().chain(&profile.period_type);
    for t in types {
        assert!(text(t.r#type) > 0 && text(t.unit) > 0);
    }
    profile
        .comment
        .iter()
        .for_each(|&comment| _ = text(comment));
    text(profile.default_sample_type);
    for (mapping, id) in profile.mapping.iter().zip(1..) {
        assert_eq!(mapping.id, id);
        _ = (text(mapping.filename), text(mapping.build_id));
    }
    let mut functions = vec![false; profile.function.len()];
    let mut locations = vec![false; profile.location.len()];
    for (function, id) in profile.function.iter().zip(1..) {
        assert_eq!((function.id, text(function.system_name)), (id, 0));
        assert!(text(function.name) > 0);
        text(function.filename);
    }
    for (location, id) in profile.location.iter().zip(1..) {
        assert_eq!(location.id, id);
        assert!(location.mapping_id as usize <= profile.mapping.len());
        let mapping = profile
            .mapping
            .get((location.mapping_id as usize).wrapping_sub(1));
        let is_named = mapping.is_none_or(|mapping| mapping.has_functions);
        assert!(location.address != 0 && location.line.is_empty() != is_named);
        for line in &location.line {
            functions[line.function_id as usize - 1] = true;
        }
    }
    for sample in &profile.sample {
        assert_eq!(sample.value.len(), profile.sample_type.len());
        assert!(sample.value.iter().any(|&value| value != 0));
        assert!(!sample.location_id.is_empty());
        for &id in &sample.location_id {
            locations[id as usize - 1] = true;
        }
        for label in &sample.label {
            assert!(text(label.key) > 0 && text(label.str) > 0);
        }
    }
    for used in [is_used, functions, locations] {
        assert!(used.iter().all(|&used| used), "{profile:?}");
    }
}

/// Returns whether prost would write as many bytes. The file has the parts in another order.
fn is_same_length(profile: &Profile, bytes: &[u8]) -> bool {
    profile.encoded_len() == bytes.len()
}

fn text(profile: &Profile, number: i64) -> &str {
    &profile.string_table[number as usize]
}

fn comments(profile: &Profile) -> Vec<&str> {
    let numbers = profile.comment.iter();
    numbers.map(|&number| text(profile, number)).collect()
}

fn add(report: &mut Report, path: &[u32], live: u64) {
    add_of(report, path, live, ThreadId(0), Allocator::Calloc);
}

/// Adds a call site that allocated three times what is live, with twice as much at the high-water mark.
fn add_of(report: &mut Report, path: &[u32], live: u64, thread: ThreadId, allocator: Allocator) {
    let stack = path.iter().fold(StackId::EMPTY, |parent, &frame| {
        report.stacks.child(parent, FrameId(frame))
    });
    let tally = |count| Tally {
        count,
        bytes: count * 10,
    };
    report.sites.push(Site {
        context: ContextId::NONE,
        thread,
        stack,
        allocator,
        allocated: tally(live * 3),
        high_water: tally(live * 2),
        live: tally(live),
        temporary: tally(0),
        oldest_live_ms: None,
    });
    report.totals.allocated += tally(live * 3);
}

fn report() -> Report {
    let mut report = Report::default();
    report.about.command_line = "./target/release/shop --serve".into();
    for (name, line) in [
        ("main", 3),
        ("run", 9),
        ("push", 71),
        ("push\n\u{1b}[31m", 5),
    ] {
        report.add_frame(name, "src/main.rs", line);
    }
    report.modules = ["/lib/libc.so.6", "/srv/shop"]
        .into_iter()
        .zip([0x7000_0000u64, 0x5000_0000])
        .map(|(path, start)| Module {
            path: path.into(),
            build_id: "c0ffee".into(),
            start,
            limit: start + 0x1000,
            offset: 0x400,
            ..Module::default()
        })
        .collect();
    let place = |address, inlined| Place {
        module: Some(1),
        address,
        inlined,
    };
    report.places = vec![
        place(0x5000_0010, false),
        place(0x5000_0020, false),
        place(0x5000_0030, true),
        place(0x6000_0000, false),
    ];
    let name = report.strings.intern("worker");
    report.threads.push(Thread {
        tid: 7,
        name,
        threads: 1,
    });
    report
}

#[test]
fn inlined_frames_are_lines_of_the_location_they_are_inlined_into() {
    let mut report = report();
    add(&mut report, &[0, 1, 2], 5);
    add(&mut report, &[0, 1], 1);
    add(&mut report, &[0, 2, 2], 1);
    let profile = decode(&report);
    type Place<'a> = (u64, Vec<(&'a str, i64)>);
    let stacks: Vec<Vec<Place<'_>>> = profile
        .sample
        .iter()
        .map(|sample| {
            let locations = sample.location_id.iter();
            locations
                .map(|&id| {
                    let location = &profile.location[id as usize - 1];
                    assert_eq!(location.id, id);
                    let lines = location.line.iter().map(|line| {
                        let function = &profile.function[line.function_id as usize - 1];
                        (text(&profile, function.name), line.line)
                    });
                    (location.address, lines.collect())
                })
                .collect()
        })
        .collect();
    let main = (0x5000_0010, vec![("main", 3)]);
    assert_eq!(
        stacks,
        [
            vec![(0x5000_0020, vec![("run", 9)]), main.clone()],
            vec![(0x5000_0020, vec![("push", 71), ("run", 9)]), main],
            vec![(0x5000_0010, vec![("push", 71), ("push", 71), ("main", 3)])],
        ]
    );
}

#[test]
fn code_without_names_has_the_addresses_of_its_file() {
    let mut report = report();
    // Linked at 0x2400 for its offset 0x400.
    for module in &mut report.modules {
        module.address = 0x2400;
    }
    add(&mut report, &[0, 1, 2], 5);
    // Not in its module.
    add(&mut report, &[0, 3], 1);
    let options = Options {
        symbolize: false,
        ..Options::default()
    };
    let profile = decode_with(&report, &options, super::MOST_BYTES);
    let mapping = &profile.mapping[0];
    assert_eq!(
        (
            mapping.memory_start,
            mapping.memory_limit,
            mapping.file_offset
        ),
        (0, 0, 0)
    );
    assert!(profile.mapping.iter().all(|mapping| !mapping.has_functions));
    let locations: Vec<(u64, u64, usize)> = profile
        .location
        .iter()
        .map(|location| (location.mapping_id, location.address, location.line.len()))
        .collect();
    // The inlined call has no location of its own, and what is in no module keeps its name.
    assert_eq!(
        locations,
        [(1, 0x2420, 0), (1, 0x2410, 0), (0, 0x6000_0000, 1)]
    );
    let comments = profile
        .comment
        .iter()
        .map(|&comment| text(&profile, comment));
    let infos: Vec<&str> = comments
        .filter(|it| it.starts_with("executableInfo="))
        .collect();
    assert_eq!(infos, ["executableInfo=3;400;2400"; 2]);
}

#[test]
fn mappings_are_the_processes_own_and_the_program_is_first() {
    let mut report = report();
    add(&mut report, &[0, 3], 5);
    let profile = decode(&report);
    let first = &profile.mapping[0];
    assert_eq!(text(&profile, first.filename), "/srv/shop");
    assert_eq!(text(&profile, first.build_id), "c0ffee");
    assert_eq!(
        (first.memory_start, first.memory_limit, first.file_offset),
        (0x5000_0000, 0x5000_1000, 0x400)
    );
    for mapping in &profile.mapping {
        assert!(mapping.has_functions && mapping.has_filenames);
        assert!(mapping.has_line_numbers && mapping.has_inline_frames);
    }
    // An address outside its module has no mapping.
    let mappings: Vec<u64> = profile.location.iter().map(|l| l.mapping_id).collect();
    assert_eq!(mappings, [0, 1]);
    let names: Vec<&str> = profile
        .function
        .iter()
        .map(|function| text(&profile, function.name))
        .collect();
    assert_eq!(names, ["push  [31m", "main"]);
    assert_eq!(profile.string_table[0], "");
}

#[test]
fn a_profile_is_a_snapshot_of_the_reports_end() {
    for (start_ms, end_ms, time_ms, recorded) in [
        (1_000_000, 1_012_000, 1_012_000, Some("recorded for 12.0 s")),
        (1_000_000, 0, 1_000_000, None),
        (0, 0, 0, None),
        (
            i64::MIN,
            i64::MAX,
            i64::MAX / 1_000_000,
            Some("recorded for"),
        ),
    ] {
        let mut report = report();
        report.about.start_ms = start_ms;
        report.about.end_ms = end_ms;
        let profile = decode(&report);
        assert_eq!(profile.time_nanos / 1_000_000, time_ms);
        assert_eq!(profile.duration_nanos, 0);
        let comments = comments(&profile);
        let found = comments.iter().find(|text| text.starts_with("recorded"));
        match recorded {
            Some(text) => assert!(found.is_some_and(|found| found.starts_with(text))),
            None => assert_eq!(found, None),
        }
    }
}

#[test]
fn a_report_that_does_not_know_what_was_allocated_does_not_say_zero() {
    let mut report = report();
    add(&mut report, &[0], 5);
    report.sites[0].allocated = Tally::default();
    report.totals.allocated = Tally::default();
    let profile = decode(&report);
    let types: Vec<&str> = profile
        .sample_type
        .iter()
        .map(|t| text(&profile, t.r#type))
        .collect();
    assert_eq!(
        types,
        ["inuse_objects", "inuse_space", "peak_objects", "peak_space"]
    );
    assert_eq!(profile.sample[0].value, [5, 50, 10, 100]);
    assert_eq!(text(&profile, profile.default_sample_type), "inuse_space");
}

#[test]
fn code_without_an_address_has_one_that_depends_on_its_lines_alone() {
    let addresses = |report: &Report| -> Vec<(String, u64)> {
        let profile = decode(report);
        let locations = profile.location.iter().map(|location| {
            assert_eq!(location.mapping_id, 0);
            let lines = location.line.iter().map(|line| {
                let function = &profile.function[line.function_id as usize - 1];
                let names = [function.name, function.filename].map(|n| text(&profile, n));
                format!("{} {}:{};", names[0], names[1], line.line)
            });
            (lines.collect(), location.address)
        });
        locations.collect()
    };
    let mut first = report();
    // The same function at another line, and the names of function and file swapped.
    first.add_frame("main", "src/main.rs", 4);
    first.add_frame("src/main.rs", "main", 3);
    first.places.clear();
    add(&mut first, &[0, 1, 2, 3, 4, 5], 1);
    add(&mut first, &[], 1);
    let all = addresses(&first);
    assert_eq!(all.len(), 7);
    for (nth, (_, address)) in all.iter().enumerate() {
        assert!((1 << 62..1 << 63).contains(address));
        assert!(all[..nth].iter().all(|(_, other)| other != address));
    }

    // Another process names its frames in another order, and knows modules.
    let mut second = Report::default();
    second.add_frame("other", "src/other.rs", 1);
    second.add_frame("run", "src/main.rs", 9);
    second.add_frame("main", "src/main.rs", 3);
    second.modules = report().modules;
    let unknown = Place {
        module: Some(0),
        ..Place::default()
    };
    second.places = vec![unknown; 3];
    add(&mut second, &[2, 1], 1);
    add(&mut second, &[], 1);
    for found in addresses(&second) {
        assert!(all.contains(&found), "{found:?}");
    }
}

#[test]
fn texts_fit_into_what_pyroscope_takes() {
    let mut report = report();
    let long = "ä".repeat(40_000);
    report.add_frame(&long, &format!("{long}.rs"), 1);
    report.places.clear();
    report.about.command_line = format!("x{long}");
    add(&mut report, &[4], 1);
    let profile = decode(&report);
    let name = text(&profile, profile.function[0].name);
    assert_eq!(name, "ä".repeat(32_767));
    assert_eq!(text(&profile, profile.comment[0]).len(), 65_535);
    let lengths = profile.string_table.iter().map(String::len);
    assert_eq!(lengths.max(), Some(65_535));
}

/// Returns the labels of each sample, and its value of the `nth` type.
fn labelled(report: &Report, labels: &str, nth: usize) -> Vec<(String, i64)> {
    let options = Options {
        labels: labels.parse().unwrap(),
        ..Options::default()
    };
    let profile = decode_with(report, &options, super::MOST_BYTES);
    let samples = profile.sample.iter().map(|sample| {
        let labels = sample.label.iter();
        let labels: Vec<String> = labels
            .map(|label| [label.key, label.str].map(|n| text(&profile, n)).join("="))
            .collect();
        (labels.join(" "), sample.value[nth])
    });
    samples.collect()
}

#[test]
fn call_sites_are_told_apart_by_the_requested_labels_alone() {
    let mut report = report();
    let name = report.strings.intern("main");
    report.threads.push(Thread {
        tid: 1,
        name,
        threads: 1,
    });
    for (live, thread, allocator) in [
        (1, 0, Allocator::Malloc),
        (2, 1, Allocator::Malloc),
        (4, 0, Allocator::Mmap),
        (8, 1, Allocator::Mmap),
        (16, 0, Allocator::Malloc),
    ] {
        add_of(&mut report, &[0, 1], live, ThreadId(thread), allocator);
    }
    add(&mut report, &[0], 32);
    let samples = |labels: &str| {
        let mut samples = labelled(&report, labels, 2);
        samples.sort();
        samples
    };
    let of = |samples: &[(&str, i64)]| -> Vec<(String, i64)> {
        let samples = samples.iter();
        samples
            .map(|&(labels, live)| (labels.into(), live))
            .collect()
    };
    assert_eq!(samples(""), of(&[("", 31), ("", 32)]));
    let by_thread = [
        ("thread=main", 10),
        ("thread=worker", 21),
        ("thread=worker", 32),
    ];
    assert_eq!(samples("thread"), of(&by_thread));
    let by_allocator = [
        ("allocator=calloc", 32),
        ("allocator=malloc", 19),
        ("allocator=mmap", 12),
    ];
    assert_eq!(samples("allocator"), of(&by_allocator));
    let by_both = [
        ("thread=main allocator=malloc", 2),
        ("thread=main allocator=mmap", 8),
        ("thread=worker allocator=calloc", 32),
        ("thread=worker allocator=malloc", 17),
        ("thread=worker allocator=mmap", 4),
    ];
    assert_eq!(samples("thread,allocator"), of(&by_both));
}

#[test]
fn the_labels_of_a_context_are_labels_if_that_is_asked() {
    let report = crate::views::report_with_contexts();
    let labels = |list: &str| labelled(&report, list, 3);
    assert_eq!(labels(""), [(String::new(), 70)]);
    let expected = [
        ("", 10),
        ("route=GET /a", 20),
        ("route=GET /b tenant=acme", 40),
    ];
    assert_eq!(
        labels("context"),
        expected.map(|(labels, bytes)| (labels.to_owned(), bytes))
    );
}

#[test]
fn the_replica_of_a_thread_is_a_label_of_its_own() {
    let mut report = report();
    add(&mut report, &[0], 1);
    crate::views::of_replica(&mut report, "10.0.0.1:7000/pub");
    let options = Options {
        labels: "thread".parse().unwrap(),
        ..Options::default()
    };
    let profile = decode_with(&report, &options, super::MOST_BYTES);
    let labels = profile.sample[0].label.iter();
    let labels: Vec<_> = labels
        .map(|label| [label.key, label.str].map(|number| text(&profile, number)))
        .collect();
    assert_eq!(
        labels,
        [["replica", "10.0.0.1:7000/pub"], ["thread", "worker"]]
    );
}

proptest! {
    #[test]
    fn the_sums_of_all_samples_are_the_reports(
        sites in prop::collection::vec((prop::collection::vec(0u32..4, 0..6), 0u64..1000), 0..40),
    ) {
        let mut report = report();
        for (path, live) in &sites {
            add(&mut report, path, *live);
        }
        report.strings.intern("unused");
        prop_assert_eq!(report.strings.get(StrId::EMPTY), "");
        let profile = decode(&report);
        let count: u64 = sites.iter().map(|(_, live)| live).sum();
        let sum = |index: usize| profile.sample.iter().map(|s| s.value[index]).sum::<i64>() as u64;
        if count > 0 {
            let sums = [0, 1, 2, 3, 4, 5].map(sum);
            prop_assert_eq!(sums, [count * 3, count * 30, count, count * 10, count * 2, count * 20]);
        }
        let mut stacks: Vec<&Vec<u64>> = profile.sample.iter().map(|s| &s.location_id).collect();
        stacks.sort();
        stacks.dedup();
        prop_assert_eq!(stacks.len(), profile.sample.len(), "one sample per call stack");
        prop_assert!(profile.sample.iter().all(|sample| sample.label.is_empty()));
    }
}
