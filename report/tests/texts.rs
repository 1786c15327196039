//! Tests of texts for a terminal: their sums, their width, and characters that must not reach the terminal.
#![allow(clippy::unwrap_used)]

mod support;

use heapray_report::Report;
use heapray_report::model::{ContextId, Event, Frame, StackId, Tally, ThreadId};
use heapray_report::texts::{Options, SortColumn, summary, table, tree};
use heapray_report::views::{Measure, Unit, by_function};
use proptest::prelude::*;
use support::{program, skeleton, stack, sum_up};
use unicode_width::UnicodeWidthStr;

type Text = fn(&Report, &Options, &mut Vec<u8>) -> std::io::Result<()>;

const TEXTS: [(&str, Text); 3] = [("table", table), ("tree", tree), ("summary", summary)];

fn text(write: Text, report: &Report, options: &Options) -> String {
    let mut out = Vec::new();
    write(report, options, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Makes a report of allocations: thread, call stack, size.
fn report(allocations: &[(u32, &[u32], u64)]) -> Report {
    let mut report = skeleton(3);
    let events: Vec<Event> = (1..)
        .zip(allocations)
        .map(|(n, &(thread, path, size))| Event::Allocation {
            context: ContextId::NONE,
            thread: ThreadId(thread),
            allocator: heapray_report::model::Allocator::Malloc,
            address: n * 0x10_0000,
            size,
            stack: stack(&mut report, path),
        })
        .collect();
    sum_up(&mut report, &events);
    report
}

#[test]
fn the_table_has_memrays_columns_and_the_biggest_first() {
    let report = report(&[
        (0, &[0, 1, 2], 5_000_000),
        (1, &[0, 2], 3_000_000),
        (1, &[0, 3], 1_500_000),
        (2, &[], 500_000),
    ]);
    let merged = Options {
        width: 100,
        max_rows: Some(2),
        ..Options::default()
    };
    assert_eq!(
        text(table, &report, &merged),
        "\
High-water mark: 10.000MB in 4 allocations
leaky --serve

   Size    Share            Allocator  Allocations  Location
8.000MB  80.00 %  ██████▌   malloc               2  leaky::get|data at src/worker.rs:7
1.500MB  15.00 %  █▎        malloc               1  bytes::BytesMut::reserve at ….7.2/src/lib.rs:667
and 1 more row: 500.000kB (5.00 %), 1 allocation
"
    );
    let apart = Options {
        by_thread: true,
        max_rows: None,
        ..merged
    };
    let lines: Vec<String> = text(table, &report, &apart)
        .lines()
        .map(str::to_owned)
        .collect();
    let words = |line: usize| lines[line].split_whitespace().take(2).collect::<Vec<_>>();
    assert_eq!(words(3), ["Thread", "Size"]);
    assert_eq!(words(4), ["main", "5.000MB"]);
    assert_eq!(words(5), ["wörker-1", "3.000MB"]);
    assert!(lines[7].contains("<stack trace unavailable>"));
    assert_eq!(lines.len(), 8);
}

#[test]
fn the_tree_folds_runs_and_sums_up_small_branches() {
    let report = report(&[
        (0, &[0, 1, 1, 1, 2], 5_000_000),
        (0, &[0, 1, 1, 1, 3], 4_000_000),
        (0, &[0, 2], 900_000),
        (0, &[4], 60_000),
        (0, &[5], 40_000),
    ]);
    let options = Options {
        biggest_allocs: 3,
        ..Options::default()
    };
    assert_eq!(
        text(tree, &report, &options),
        "\
High-water mark: 10.000MB in 5 allocations
leaky --serve

├─ ██████ 9.900MB (99.00 %)  leaky::main  src/main.rs:21
│  ├─ █████▌ 9.000MB (90.00 %)  leaky::run::<[u8; 4]> → … 1 call … → leaky::run::<[u8; 4]>  src/main.rs:14
│  │  ├─ ███    5.000MB (50.00 %)  leaky::get|data  src/worker.rs:7
│  │  └─ ██▌    4.000MB (40.00 %)  bytes::BytesMut::reserve  bytes-1.7.2/src/lib.rs:667
│  └─ ▋      900.000kB (9.00 %)  leaky::get|data  src/worker.rs:7
└─ 100.000kB (1.00 %) in 2 allocations from 2 call sites smaller than the 3 shown
"
    );
    let unfolded = Options {
        fold_runs: false,
        ..options
    };
    assert_eq!(text(tree, &report, &unfolded).lines().count(), 11);
}

#[test]
fn the_summary_is_sorted_by_any_of_its_columns_and_drops_nothing() {
    let report = report(&[
        (0, &[0, 1, 2], 5_000),
        (0, &[0, 1], 3_000),
        (0, &[0, 3], 1_000),
        (0, &[0, 3], 1_000),
        (0, &[], 10),
    ]);
    let firsts: Vec<String> = SortColumn::ALL
        .iter()
        .map(|&sort_column| {
            let options = Options {
                sort_column,
                ..Options::default()
            };
            let text = text(summary, &report, &options);
            assert_eq!(text.lines().count(), 4 + 5, "{text}");
            assert!(text.contains("<stack trace unavailable>"));
            let row = text.lines().nth(4).unwrap();
            row.split_whitespace().next().unwrap().to_owned()
        })
        .collect();
    let expected = [
        "leaky::main",
        "leaky::main",
        "leaky::get|data",
        "leaky::get|data",
        "leaky::main",
    ];
    assert_eq!(firsts, expected);
    for (number, column) in ["1", "2", "3", "4", "5"].iter().zip(SortColumn::ALL) {
        assert_eq!(number.parse(), Ok(column));
    }
    for wrong in ["0", "6", "total", "", "-1"] {
        assert!(wrong.parse::<SortColumn>().is_err());
    }
}

#[test]
fn the_text_of_an_empty_report_says_so() {
    for (name, write) in TEXTS {
        let text = text(write, &Report::default(), &Options::default());
        assert_eq!(
            text, "High-water mark: 0.000B in 0 allocations\n\n",
            "{name}"
        );
    }
}

#[test]
fn the_deepest_recursion_stays_within_the_width() {
    let alternating: Vec<u32> = (0..3000).map(|n| n % 2).collect();
    let depths: Vec<(u32, &[u32], u64)> = (1..=3000)
        .map(|n| (0, &alternating[..n], 10 + n as u64))
        .collect();
    let report = report(&depths);
    let options = Options {
        biggest_allocs: 3000,
        width: 80,
        ..Options::default()
    };
    let text = text(tree, &report, &options);
    assert_eq!(text.lines().count(), 3003);
    assert!(text.lines().all(|line| line.width() <= 80));
}

fn options() -> impl Strategy<Value = Options> {
    let shape = (80usize..200, prop::option::of(0usize..9), 0usize..9);
    (0usize..4, any::<[bool; 3]>(), 0usize..5, shape).prop_map(
        |(measure, [count, by_thread, fold_runs], sort, (width, max_rows, biggest_allocs))| {
            Options {
                measure: Measure::ALL[measure],
                unit: if count { Unit::Count } else { Unit::Bytes },
                width,
                by_thread,
                fold_runs,
                max_rows,
                biggest_allocs,
                sort_column: SortColumn::ALL[sort],
                colours: false,
            }
        },
    )
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_terminal_and_colours_change_nothing_else(
        program in program(),
        options in options(),
        name in "\\PC{0,40}|[\\x00-\\x1f\\x7f-\\u{9f}]{1,5}",
    ) {
        let mut report = program.report;
        let name = report.strings.intern(&name);
        report.frames[1] = Frame { function: name, file: name, line: 3 };
        for (text_name, write) in TEXTS {
            let plain = text(write, &report, &options);
            for line in plain.lines() {
                prop_assert!(line.width() <= options.width, "{text_name}: {line}");
                prop_assert!(!line.contains(char::is_control));
            }
            let painted = text(write, &report, &Options { colours: true, ..options.clone() });
            prop_assert_eq!(strip(&painted), plain);
        }
    }

    #[test]
    fn the_counts_of_the_table_and_of_its_rest_are_the_reports(
        program in program(),
        max_rows in prop::option::of(0usize..9),
    ) {
        let options = Options { max_rows, width: 200, ..Options::default() };
        let mut program = program;
        // The text above the table has numbers, too.
        program.report.conditions.sampling = None;
        let text = text(table, &program.report, &options);
        let mut total = 0u64;
        for line in text.lines().skip(3) {
            let number = |text: &str| text.replace(',', "").parse::<u64>();
            total += match line.strip_prefix("and ") {
                // … more rows: SIZE (SHARE), COUNT allocations
                Some(rest) => number(rest.rsplit(", ").next().unwrap().split(' ').next().unwrap()).unwrap(),
                None => line.split_whitespace().find_map(|word| number(word).ok()).unwrap_or(0),
            };
        }
        let mut whole = Tally::default();
        for site in &program.report.sites {
            whole += site.high_water;
        }
        prop_assert_eq!(total, whole.count);
    }

    #[test]
    fn the_summary_has_a_row_for_every_function_with_allocations(program in program()) {
        let options = Options { measure: Measure::Allocated, ..Options::default() };
        let report = &program.report;
        let held = by_function(report).iter().filter(|f| f.total.allocated.count > 0).count();
        let bare = report.sites.iter().any(|s| s.stack == StackId::EMPTY && s.allocated.count > 0);
        let text = text(summary, report, &options);
        let rows = text.split_once("\n\n").unwrap().1.lines().count().saturating_sub(1);
        prop_assert_eq!(rows, held + usize::from(bare));
    }
}

/// Removes the escape sequences of colours from `text`.
fn strip(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap().to_owned();
    for part in parts {
        plain += part.split_once('m').unwrap().1;
    }
    plain
}
