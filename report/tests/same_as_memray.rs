//! Tests about forty captures, most of them recorded by memray from Python programs: heapray finds the same figures as
//! memray, byte for byte.
//!
//! These differences are expected (memray 1.20):
//! - In an aggregated capture, memray adds 1 instead of a row's count for every merged row but the first (rows of other
//!   threads, and of other allocators even if threads are not merged). Only bytes are compared.
//! - `memray stats` fails for a capture without allocations, because its histogram has no smallest size.
//! - If a call stack allocates with several allocators, memray names the last one that it has read. Rows are compared
//!   without allocators.
//! - memray lists modules of equal size in the order of a hash table. They are compared by their figures.
//! - Native frames are addresses in heapray, while memray reads symbols from the libraries of the machine on which it runs.
//!   Native captures are compared by their Python frames.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

#[macro_use]
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::Command;

use heapray_report::memray::{Version, events, read, write_aggregated, write_all};
use heapray_report::model::{Allocator, Site, StackId, Tally};
use heapray_report::{Report, stats, views};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use serde_json::Value;
use support::names;
use support::real_memray::{directory, run, spell};

/// Thread and call stack (or leaf), by name.
type Key = (String, String);
type Rows = BTreeMap<Key, Tally>;

/// Reads the rows that the script prints: count, bytes, thread, call stack.
fn theirs(rows: &Value) -> Rows {
    let mut sums = Rows::new();
    for row in rows.as_array().unwrap() {
        let text = |at: usize| restored(row[at].as_str().unwrap());
        let tally = Tally {
            count: row[0].as_u64().unwrap(),
            bytes: row[1].as_u64().unwrap(),
        };
        *sums.entry((text(2), text(3))).or_default() += tally;
    }
    sums
}

/// Replaces look-alikes of `;` and `|` by the originals, as heapray does.
fn restored(text: &str) -> String {
    text.replace('\u{37e}', ";").replace('\u{2223}', "|")
}

/// Returns a stack as memray shows it, without native frames.
fn shown(report: &Report, stack: StackId) -> String {
    let stack = spell(report, stack);
    if stack.starts_with("0x") {
        String::new()
    } else {
        stack
    }
}

fn ours(
    report: &Report,
    tally: impl Fn(&Site) -> Tally,
    apart: bool,
    name: impl Fn(StackId) -> String,
) -> Rows {
    let mut sums = Rows::new();
    for site in &report.sites {
        let tally = tally(site);
        if tally.count > 0 {
            let thread = match apart {
                true => report
                    .strings
                    .get(report.threads[site.thread.0 as usize].name),
                false => "",
            };
            let key = (thread.into(), name(site.stack));
            *sums.entry(key).or_default() += tally;
        }
    }
    sums
}

fn bytes(rows: Rows) -> BTreeMap<Key, u64> {
    rows.into_iter()
        .map(|(key, tally)| (key, tally.bytes))
        .collect()
}

/// Returns the leaf as in memray's table.
fn leaf(report: &Report, stack: StackId) -> String {
    match names(report, stack).pop() {
        Some((function, file, line)) if !shown(report, stack).is_empty() => {
            format!("{function} at {file}:{line}")
        }
        _ => "???".into(),
    }
}

/// Returns `text` before its last two lists, which are by module, and the lists. Modules of equal size are sorted by name.
/// Modules of the last size have no names, because others of that size may have been cut off.
fn modules_in_order(text: &str) -> (String, [Vec<(String, String)>; 2]) {
    let (before, modules) = text.split_once("🥇 Top 5 allocating modules").unwrap();
    let (by_size, by_count) = modules.split_once("🥇 Top 5 allocating modules").unwrap();
    let list = |text: &str, key: fn(&str) -> &str| {
        let lines = text.lines().filter_map(|line| line.strip_prefix("\t- "));
        let mut list: Vec<(String, String)> = lines
            .map(|line| {
                let (name, figures) = line.rsplit_once(": ").unwrap();
                (key(figures).to_owned(), name.to_owned())
            })
            .collect();
        if let Some((last, _)) = list.last().cloned() {
            for (_, name) in list.iter_mut().filter(|(key, _)| *key == last) {
                name.clear();
            }
        }
        list.sort();
        list
    };
    let by_size = list(by_size, |figures| figures.split_once(" | ").unwrap().0);
    let by_count = list(by_count, |figures| figures.split_once(" | ").unwrap().1);
    (before.to_owned(), [by_size, by_count])
}

fn compare(found: &Value) {
    let path = Path::new(found["path"].as_str().unwrap());
    println!("{}", path.display());
    let capture = read(File::open(path).unwrap()).unwrap();
    let report = &capture.report;
    assert!(capture.complete, "{:?}", report.conditions.notes);
    assert_eq!(found["peak"], report.totals.high_water.bytes);
    assert_eq!(found["pid"], report.about.pid);
    let aggregated = found["aggregated"].as_bool().unwrap();
    for (view, of) in [
        ("high_water", (|site| site.high_water) as fn(&Site) -> Tally),
        ("live", |site| site.live),
    ] {
        let name = |stack| shown(report, stack);
        let apart = ours(report, of, true, name);
        let merged = ours(report, of, false, name);
        let table = ours(report, of, false, |stack| leaf(report, stack));
        for (what, ours) in [("apart", apart), ("merged", merged), ("table", table)] {
            let theirs = theirs(&found[what][view]);
            if aggregated {
                assert_eq!(bytes(theirs), bytes(ours), "{what} {view}");
            } else {
                assert_eq!(theirs, ours, "{what} {view}");
            }
        }
    }
    for (threshold, rows) in found["temporary"].as_object().unwrap() {
        let log = events(File::open(path).unwrap()).unwrap();
        let counted = views::temporary(report, log, threshold.parse().unwrap()).unwrap();
        let counted = ours(
            &counted,
            |site| site.temporary,
            true,
            |stack| shown(report, stack),
        );
        assert_eq!(theirs(rows), counted, "temporary, {threshold}");
    }
    compare_stats(found, report);
}

fn compare_stats(found: &Value, report: &Report) {
    let totals = &report.totals;
    let json = &found["json"];
    if json.is_null() {
        // An aggregated or empty capture.
        assert!(found["aggregated"] == true || totals.allocated.count == 0);
        return;
    }
    assert_eq!(json["total_num_allocations"], totals.allocated.count);
    assert_eq!(json["total_bytes_allocated"], totals.allocated.bytes);
    assert_eq!(json["metadata"]["peak_memory"], totals.high_water.bytes);
    let allocators = json["allocator_type_distribution"].as_object().unwrap();
    let count = |(allocator, tally): &(Allocator, Tally)| (allocator.name(), tally.count);
    let mut ours: BTreeMap<_, _> = totals.by_allocator.iter().map(count).collect();
    ours.retain(|_, count| *count > 0);
    assert_eq!(allocators.len(), ours.len());
    for (name, count) in ours {
        assert_eq!(allocators[name], count, "{name}");
    }
    // The text shows the bins one by one.
    let bins = json["allocation_size_histogram"].as_array().unwrap();
    let counted: u64 = bins.iter().map(|bin| bin["count"].as_u64().unwrap()).sum();
    assert_eq!(counted, totals.allocated.count);
    if found["native"] == false {
        let text = restored(found["text"].as_str().unwrap());
        let (theirs, their_modules) = modules_in_order(&text);
        let (ours, our_modules) = modules_in_order(&stats::memray_text(report));
        assert_eq!(theirs, ours);
        assert_eq!(their_modules, our_modules);
    }
}

/// Runs the script on each of `captures`, and returns its output.
fn figures(memray: &Path, captures: &[PathBuf]) -> Vec<Value> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memray/figures.py");
    let output = run(Command::new(memray.with_file_name("python"))
        .arg(script)
        .args(captures));
    let text = String::from_utf8(output.stdout).unwrap();
    let found: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(found.len(), captures.len());
    found
}

#[test]
fn captures_recorded_by_memray_have_the_same_figures() {
    let memray = memray_or_skip!();
    let directory = directory("many");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memray/record_many.py");
    let output = run(Command::new(memray.with_file_name("python"))
        .arg(script)
        .arg(&directory));
    let captures: Vec<PathBuf> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(PathBuf::from)
        .collect();
    assert!(captures.len() > 35);
    for found in figures(&memray, &captures) {
        compare(&found);
    }
}

#[test]
fn captures_written_by_heapray_have_the_same_figures() {
    let memray = memray_or_skip!();
    let directory = directory("ours");
    let mut runner = TestRunner::deterministic();
    let mut captures = Vec::new();
    for number in 0..12 {
        // The sums differ on purpose only for addresses that are returned twice.
        let mut program = (0..1000)
            .map(|_| {
                support::program_in_contexts()
                    .new_tree(&mut runner)
                    .unwrap()
                    .current()
            })
            .map(support::without_reuse)
            .find(|program| program.report.totals.allocated.bytes > 0 && program.events.len() > 20)
            .unwrap();
        // The last line that memray can show.
        program.report.frames[7].line = i32::MAX as u32;
        let path = directory.join(format!("all-{number}.bin"));
        let out = BufWriter::new(File::create(&path).unwrap());
        let log = program.events.iter().copied().map(Ok);
        write_all(&program.report, log, Version::V13, out).unwrap();
        captures.push(path);
    }
    for found in figures(&memray, &captures) {
        compare(&found);
    }
    // Aggregated captures have root frames for memray. They are compared in real_memray.rs.
    let capture = read(File::open(&captures[0]).unwrap()).unwrap();
    let path = directory.join("aggregated.bin");
    write_aggregated(&capture.report, Version::V13, File::create(&path).unwrap()).unwrap();
    let found = figures(&memray, &[path]).remove(0);
    assert_eq!(found["peak"], capture.report.totals.high_water.bytes);
}
