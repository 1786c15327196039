//! Tests of the flame graph as SVG: the text and the width of its boxes.
#![allow(clippy::unwrap_used)]

mod support;

use heapray_report::Report;
use heapray_report::formats::{Options, svg};
use heapray_report::model::{Allocator, ContextId, Event, Frame, ThreadId};
use heapray_report::views::{Measure, Unit};
use support::{skeleton, stack};

/// Makes a report in which `main` calls `load` from two lines, `other` calls `load` too, and one block has no stack.
fn report() -> Report {
    let mut report = skeleton(1);
    report.frames.clear();
    for (function, line) in [
        ("app::main", 1),
        ("app::load", 7),
        ("app::load", 8),
        ("app::other", 2),
    ] {
        let frame = Frame {
            function: report.strings.intern(function),
            file: report.strings.intern("/home/dev/app/src/main.rs"),
            line,
        };
        report.frames.push(frame);
    }
    let paths: [(&[u32], u64, u64); 4] = [
        (&[0, 1], 3, 100),
        (&[0, 2], 1, 300),
        (&[3, 1], 1, 200),
        (&[], 1, 200),
    ];
    let mut events = Vec::new();
    for (path, count, size) in paths {
        let stack = stack(&mut report, path);
        for _ in 0..count {
            events.push(Event::Allocation {
                context: ContextId::NONE,
                thread: ThreadId(0),
                allocator: Allocator::Malloc,
                address: 0x1000 * (1 + events.len() as u64),
                size,
                stack,
            });
        }
    }
    support::sum_up(&mut report, &events);
    report
}

/// Returns the lines of each box's title, and its width relative to the widest box.
fn boxes(report: &Report, options: &Options) -> Vec<(Vec<String>, f64)> {
    let mut file = Vec::new();
    svg::write(report, options, &mut file).unwrap();
    let file = String::from_utf8(file).unwrap();
    let document = roxmltree::Document::parse(&file).unwrap();
    let groups = document
        .descendants()
        .filter(|node| node.attribute("class") == Some("box"));
    let boxes: Vec<(Vec<String>, f64)> = groups
        .map(|group| {
            let child = |name| group.children().find(|node| node.has_tag_name(name));
            let title = child("title").unwrap().text().unwrap();
            let width = child("rect").unwrap().attribute("width").unwrap();
            let lines = title.lines().map(str::to_owned).collect();
            (lines, width.parse().unwrap())
        })
        .collect();
    let widest = boxes[0].1;
    boxes
        .into_iter()
        .map(|(title, width)| (title, width / widest))
        .collect()
}

fn assert_boxes(options: &Options, expected: &[(&[&str], f64)]) {
    let found = boxes(&report(), options);
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((title, width), (expected_title, expected_width)) in found.iter().zip(expected) {
        assert_eq!(title, expected_title);
        let near = (width - expected_width).abs() < 0.002;
        assert!(near, "{title:?}: {width}, not {expected_width}");
    }
}

#[test]
fn a_box_shows_its_bytes_its_share_and_its_blocks() {
    assert_boxes(
        &Options::default(),
        &[
            (&["all", "1.000kB (100.0 %) in 6 blocks"], 1.0),
            (
                &["<stack trace unavailable>", "200.000B (20.0 %) in 1 block"],
                0.2,
            ),
            (&["app::other", "200.000B (20.0 %) in 1 block"], 0.2),
            (&["app::load", "200.000B (20.0 %) in 1 block"], 0.2),
            (&["app::main", "600.000B (60.0 %) in 4 blocks"], 0.6),
            (&["app::load", "600.000B (60.0 %) in 4 blocks"], 0.6),
        ],
    );
}

#[test]
fn boxes_can_be_by_line_and_as_wide_as_their_number_of_blocks() {
    let options = Options {
        unit: Unit::Count,
        measure: Measure::Live,
        lines: true,
        ..Options::default()
    };
    let at = |line| format!("/home/dev/app/src/main.rs:{line}");
    let (one, two, seven, eight) = (at(1), at(2), at(7), at(8));
    assert_boxes(
        &options,
        &[
            (&["all", "6 blocks (100.0 %) of 1.000kB"], 1.0),
            (
                &["<stack trace unavailable>", "1 block (16.7 %) of 200.000B"],
                1.0 / 6.0,
            ),
            (
                &["app::other", "1 block (16.7 %) of 200.000B", &two],
                1.0 / 6.0,
            ),
            (
                &["app::load", "1 block (16.7 %) of 200.000B", &seven],
                1.0 / 6.0,
            ),
            (
                &["app::main", "4 blocks (66.7 %) of 600.000B", &one],
                4.0 / 6.0,
            ),
            (
                &["app::load", "1 block (16.7 %) of 300.000B", &eight],
                1.0 / 6.0,
            ),
            (&["app::load", "3 blocks (50.0 %) of 300.000B", &seven], 0.5),
        ],
    );
}

#[test]
fn leaf_first_a_function_is_one_box_for_all_its_callers() {
    let options = Options {
        reversed: true,
        by_thread: true,
        ..Options::default()
    };
    let found = boxes(&report(), &options);
    let load: Vec<_> = found.iter().filter(|(t, _)| t[0] == "app::load").collect();
    assert_eq!(load.len(), 1, "{found:?}");
    assert_eq!(load[0].0[1], "800.000B (80.0 %) in 5 blocks");
    assert_eq!(found[1].0[1], found[0].0[1], "a box for the one thread");
}
