//! Tests that the real memray opens heapray's captures and finds the same figures.
//!
//! Needs memray 1.20: `HEAPRAY_MEMRAY` (the path of its command), one in `PATH`, or /opt/heapray-venv.
#![allow(clippy::unwrap_used)]

#[macro_use]
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use heapray_report::memray::{Version, read, write_aggregated, write_all};
use heapray_report::model::{Allocator, ContextId, Event, StackId, Tally, ThreadId};
use heapray_report::{Report, stats};
use support::real_memray::{directory, run, spell};
use support::{Program, set_contexts, skeleton, stack, sum_up};

/// Makes a service of three threads that leaks. It has no ties in any list, all allocators, frees by other threads, mappings
/// that are split, a chain of reallocations, and unaligned addresses.
fn service() -> Program {
    let mut report = skeleton(3);
    report.frames[7].line = i32::MAX as u32; // the last line that memray can show
    let mut events = Vec::new();
    let mut random = 12345u64;
    let mut next = move |below: u64| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % below
    };
    let allocators = [
        (Allocator::Malloc, 40),
        (Allocator::Calloc, 10),
        (Allocator::PosixMemalign, 7),
        (Allocator::AlignedAlloc, 5),
        (Allocator::Memalign, 4),
        (Allocator::Valloc, 3),
        (Allocator::Pvalloc, 2),
    ];
    let paths: [&[u32]; 9] = [
        &[0, 1, 2],
        &[0, 1, 3],
        &[0, 1, 1, 1, 4],
        &[0, 2],
        &[3],
        &[0, 1, 2, 4],
        &[6, 0, 5],
        &[],
        &[0, 1, 7],
    ];
    let mut live: Vec<u64> = Vec::new();
    let mut address = 0x7f00_0000_1001;
    let mut now = 0;
    for step in 0..4000u64 {
        if step % 40 == 0 {
            now += 10;
            events.push(Event::Memory {
                at_ms: now,
                rss: 10_000_000 + step * 1000,
            });
        }
        let thread = ThreadId(next(3) as u32);
        let path = paths[(next(81) as f64).sqrt() as usize];
        let stack = stack(&mut report, path);
        match next(10) {
            0..5 => {
                let mut pick = next(71);
                let allocator = allocators
                    .iter()
                    .find(|(_, weight)| {
                        let hit = pick < *weight;
                        pick = pick.saturating_sub(*weight);
                        hit
                    })
                    .unwrap()
                    .0;
                let size = 1 << next(18);
                let size = size + next(size);
                events.push(Event::Allocation {
                    context: ContextId::NONE,
                    thread,
                    allocator,
                    address,
                    size,
                    stack,
                });
                live.push(address);
                address += size + 3;
            }
            5..8 if !live.is_empty() => {
                let at = live.swap_remove(next(live.len() as u64) as usize);
                events.push(Event::Deallocation {
                    thread,
                    allocator: Allocator::Free,
                    address: at,
                    size: 0,
                });
                if next(4) == 0 {
                    events.push(Event::Allocation {
                        context: ContextId::NONE,
                        thread,
                        allocator: Allocator::Realloc,
                        address: at,
                        size: 100 + next(1000),
                        stack,
                    });
                    live.push(at);
                }
            }
            8 if step % 7 == 0 => events.push(Event::Allocation {
                context: ContextId::NONE,
                thread,
                allocator: Allocator::Mmap,
                address: 0x7e00_0000_0000 + next(64) * 0x10_0000,
                size: (1 + next(64)) * 0x1000,
                stack,
            }),
            8 => events.push(Event::Deallocation {
                thread,
                allocator: Allocator::Munmap,
                address: 0x7e00_0000_0000 + next(64) * 0x10_0000,
                size: (1 + next(32)) * 0x1000,
            }),
            _ => {
                // A temporary.
                events.push(Event::Allocation {
                    context: ContextId::NONE,
                    thread,
                    allocator: Allocator::Malloc,
                    address,
                    size: 24,
                    stack,
                });
                events.push(Event::Deallocation {
                    thread,
                    allocator: Allocator::Free,
                    address,
                    size: 0,
                });
                address += 40;
            }
        }
    }
    set_contexts(&mut report, &mut events);
    // The high-water mark comes after the last reading of memory.
    let big = Event::Allocation {
        context: ContextId::NONE,
        thread: ThreadId(0),
        allocator: Allocator::Malloc,
        address,
        size: 5_000_000,
        stack: stack(&mut report, paths[1]),
    };
    let freed = Event::Deallocation {
        thread: ThreadId(1),
        allocator: Allocator::Free,
        address,
        size: 0,
    };
    events.extend([big, freed]);
    sum_up(&mut report, &events);
    report.about.end_ms = report.about.start_ms + now as i64 + 5;
    Program { report, events }
}

fn write_both(program: &Program, directory: &Path) -> [PathBuf; 2] {
    let [all, aggregated] = ["all.bin", "aggregated.bin"].map(|name| directory.join(name));
    let out = |path: &Path| BufWriter::new(File::create(path).unwrap());
    let events = program.events.iter().copied().map(Ok);
    write_all(&program.report, events, Version::V13, out(&all)).unwrap();
    write_aggregated(&program.report, Version::V13, out(&aggregated)).unwrap();
    [all, aggregated]
}

/// Returns the output, with look-alikes of `;` and `|` replaced by the originals.
fn text(output: Output) -> String {
    let text = String::from_utf8(output.stdout).unwrap();
    text.replace('\u{37e}', ";").replace('\u{2223}', "|")
}

#[test]
fn memrays_stats_equal_heaprays_byte_for_byte() {
    let memray = memray_or_skip!();
    let directory = directory("stats");
    let program = service();
    let [all, _] = write_both(&program, &directory);
    let theirs = text(run(Command::new(&memray).arg("stats").arg(&all)));
    assert_eq!(theirs, stats::memray_text(&program.report));
    // The same for the report that was read back.
    let capture = read(File::open(&all).unwrap()).unwrap();
    assert_eq!(theirs, stats::memray_text(&capture.report));
    assert!(stats::text(&capture.report).starts_with("\n📏 Total allocations:"));

    let json = directory.join("stats.json");
    run(Command::new(&memray)
        .args(["stats", "--json", "-o"])
        .arg(&json)
        .arg(&all));
    let json = fs::read_to_string(json).unwrap();
    let totals = &program.report.totals;
    for (key, value) in [
        ("total_num_allocations", totals.allocated.count),
        ("total_bytes_allocated", totals.allocated.bytes),
        ("peak_memory", totals.high_water.bytes),
        ("pid", 4242),
    ] {
        assert!(
            json.contains(&format!("\"{key}\": {value},")),
            "{key} in {json}"
        );
    }
}

#[test]
fn ties_are_broken_as_in_memray() {
    let memray = memray_or_skip!();
    let directory = directory("ties");
    let mut report = skeleton(1);
    let mut events = Vec::new();
    let allocators = [
        Allocator::Calloc,
        Allocator::Malloc,
        Allocator::Valloc,
        Allocator::Memalign,
    ];
    for (n, allocator) in (1..).zip(allocators) {
        for path in [&[0][..], &[1, 0, 1], &[2], &[0, 2], &[]] {
            events.push(Event::Allocation {
                context: ContextId::NONE,
                thread: ThreadId(0),
                allocator,
                address: 0x1_0000 * n + 0x100 * events.len() as u64,
                size: 64,
                stack: stack(&mut report, path),
            });
        }
    }
    sum_up(&mut report, &events);
    let [all, _] = write_both(&Program { report, events }, &directory);
    let capture = read(File::open(&all).unwrap()).unwrap();
    let theirs = text(run(Command::new(&memray).arg("stats").arg(&all)));
    let ours = stats::memray_text(&capture.report);
    // memray lists modules of equal size in the order of a hash table.
    let before_modules = |text: &str| {
        text.split("🥇 Top 5 allocating modules")
            .next()
            .map(str::to_owned)
    };
    assert_eq!(before_modules(&theirs), before_modules(&ours));
    assert!(ours.contains("MEMALIGN: 5\n\t VALLOC: 5"));
}

#[test]
fn all_commands_of_memray_open_both_formats() {
    let memray = memray_or_skip!();
    let directory = directory("commands");
    let [all, aggregated] = write_both(&service(), &directory);
    let every: &[&[&str]] = &[
        &["table"],
        &["table", "--leaks"],
        &["flamegraph"],
        &["flamegraph", "--leaks"],
        &["flamegraph", "--inverted", "--split-threads"],
        &["transform", "csv"],
        &["transform", "gprof2dot"],
        &["transform", "speedscope"],
    ];
    let of_events: &[&[&str]] = &[
        &["flamegraph", "--temporal"],
        &["flamegraph", "--temporal", "--leaks"],
        &["flamegraph", "--temporary-allocations"],
        &["table", "--temporary-allocations"],
    ];
    let out = directory.join("out");
    for (file, commands) in [(&all, every), (&all, of_events), (&aggregated, every)] {
        for command in commands {
            run(Command::new(&memray)
                .args(*command)
                .args(["-f", "-o"])
                .arg(&out)
                .arg(file));
            assert!(fs::metadata(&out).unwrap().len() > 500, "{command:?}");
        }
    }
    for file in [&all, &aggregated] {
        let summary = text(run(Command::new(&memray).arg("summary").arg(file)));
        assert!(summary.contains("leaky::main"), "{summary}");
    }
}

#[test]
fn memrays_tree_shows_both_formats() {
    let memray = memray_or_skip!();
    let directory = directory("tree");
    let program = service();
    for file in write_both(&program, &directory) {
        run(Command::new(memray.with_file_name("python"))
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memray/tree.py"))
            .arg(&memray)
            .arg(file)
            .arg("leaky"));
    }
}

/// Count and bytes by thread and call stack.
type Rows = BTreeMap<String, Tally>;

#[derive(Debug, Default)]
struct Sums {
    /// Totals.
    numbers: BTreeMap<String, String>,
    /// Rows by view, with and without merged threads.
    rows: BTreeMap<(String, bool), Rows>,
}

fn memrays_sums(memray: &Path, file: &Path) -> Sums {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memray/sums.py");
    let output = text(run(Command::new(memray.with_file_name("python"))
        .arg(script)
        .arg(file)));
    let mut sums = Sums::default();
    for line in output.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        if let ["row", view, merged, count, bytes, stack] = fields[..] {
            let rows = sums
                .rows
                .entry((view.into(), merged == "merged"))
                .or_default();
            *rows.entry(stack.into()).or_default() += Tally {
                count: count.parse().unwrap(),
                bytes: bytes.parse().unwrap(),
            };
        } else if let Some((key, value)) = line.split_once(' ') {
            sums.numbers.insert(key.into(), value.into());
        }
    }
    sums
}

fn our_rows(report: &Report, view: &str, merged: bool) -> Rows {
    let mut rows = Rows::new();
    for site in &report.sites {
        let tally = match view {
            "high_water" => site.high_water,
            "live" => site.live,
            _ => site.temporary,
        };
        if tally.count == 0 {
            continue;
        }
        let thread = report.threads[site.thread.0 as usize];
        let thread = match merged {
            true => String::new(),
            false => report.strings.get(thread.name).to_owned(),
        };
        let stack = spell(report, site.stack);
        *rows.entry(format!("{thread}@{stack}")).or_default() += tally;
    }
    rows
}

#[test]
fn memray_finds_the_same_sums_in_all_events() {
    let memray = memray_or_skip!();
    let directory = directory("sums");
    let program = service();
    let [all, _] = write_both(&program, &directory);
    let report = &program.report;
    let theirs = memrays_sums(&memray, &all);
    let totals = &report.totals;
    for (key, value) in [
        ("peak", totals.high_water.bytes.to_string()),
        ("temporal", totals.high_water.bytes.to_string()),
        ("command", report.about.command_line.clone()),
        ("pid", report.about.pid.to_string()),
        // memray counts the capture's end as one more event.
        ("snapshots", (report.timeline.len() + 1).to_string()),
        (
            "allocated",
            format!("{} {}", totals.allocated.count, totals.allocated.bytes),
        ),
    ] {
        assert_eq!(theirs.numbers[key], value, "{key}");
    }
    assert_eq!(theirs.rows.len(), 6);
    for ((view, merged), rows) in &theirs.rows {
        assert!(rows.len() > 5);
        assert_eq!(rows, &our_rows(report, view, *merged), "{view} {merged}");
    }
}

#[test]
fn memrays_temporal_view_has_the_events_after_the_last_reading_of_memory() {
    let memray = memray_or_skip!();
    let directory = directory("temporal");
    let mut report = skeleton(1);
    let allocation = |address, size| Event::Allocation {
        context: ContextId::NONE,
        thread: ThreadId(0),
        allocator: Allocator::Malloc,
        address,
        size,
        stack: StackId::EMPTY,
    };
    let events = vec![
        allocation(0x1000, 100),
        Event::Memory { at_ms: 10, rss: 1 },
        allocation(0x2000, 900),
    ];
    sum_up(&mut report, &events);
    let [all, _] = write_both(&Program { report, events }, &directory);
    assert_eq!(memrays_sums(&memray, &all).numbers["temporal"], "1000");
}

#[test]
fn memray_counts_right_in_an_aggregated_capture() {
    let memray = memray_or_skip!();
    let directory = directory("aggregated");
    let program = service();
    let [_, aggregated] = write_both(&program, &directory);
    let report = &program.report;
    let theirs = memrays_sums(&memray, &aggregated);
    assert_eq!(
        theirs.numbers["peak"],
        report.totals.high_water.bytes.to_string()
    );
    assert_eq!(theirs.rows.len(), 4);
    for ((view, merged), rows) in &theirs.rows {
        // Without the root frames that distinguish the threads of shared stacks.
        let mut plain = Rows::new();
        for (key, tally) in rows {
            let (thread, stack) = key.split_once('@').unwrap();
            let stack = match stack.split_once(" > ") {
                Some((root, rest)) if root.starts_with("thread ") => rest,
                None if stack.starts_with("thread ") => "",
                _ => stack,
            };
            *plain.entry(format!("{thread}@{stack}")).or_default() += *tally;
        }
        assert_eq!(plain, our_rows(report, view, *merged), "{view} {merged}");
    }
}

/// Records tests/memray/program.py.
fn record(memray: &Path, directory: &Path, name: &str, options: &[&str]) -> PathBuf {
    let file = directory.join(name);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memray/program.py");
    run(Command::new(memray)
        .args(["run", "-q", "-o"])
        .arg(&file)
        .args(options)
        .arg(script));
    file
}

#[test]
fn memrays_captures_of_python_are_read_as_memray_reads_them() {
    let memray = memray_or_skip!();
    let directory = directory("python");
    for (name, options) in [
        ("plain", &[][..]),
        ("bare", &["--no-compress"]),
        ("pymalloc", &["--trace-python-allocators"]),
    ] {
        let file = record(&memray, &directory, name, options);
        let capture = read(File::open(&file).unwrap()).unwrap();
        let report = capture.report;
        assert!(capture.complete, "{:?}", report.conditions.notes);
        assert_eq!(report.about.producer, "memray");
        let theirs = memrays_sums(&memray, &file);
        assert_eq!(theirs.rows.len(), 6);
        for ((view, merged), rows) in &theirs.rows {
            assert_eq!(
                rows,
                &our_rows(&report, view, *merged),
                "{name} {view} {merged}"
            );
        }
        let stats = text(run(Command::new(&memray).arg("stats").arg(&file)));
        assert_eq!(stats, stats::memray_text(&report), "{name}");
    }
}

#[test]
fn native_and_aggregated_captures_from_python_have_the_same_totals() {
    let memray = memray_or_skip!();
    let directory = directory("native");
    for (name, options) in [
        ("native", &["--native"][..]),
        ("aggregated", &["--aggregate"]),
        ("native-aggregated", &["--native", "--aggregate"]),
    ] {
        let file = record(&memray, &directory, name, options);
        let capture = read(File::open(&file).unwrap()).unwrap();
        let report = capture.report;
        assert!(capture.complete, "{:?}", report.conditions.notes);
        let theirs = memrays_sums(&memray, &file);
        assert_eq!(
            theirs.numbers["peak"],
            report.totals.high_water.bytes.to_string()
        );
        for (view, total) in [
            ("high_water", report.totals.high_water),
            ("live", report.totals.live),
        ] {
            // Threads are not merged, since memray miscounts merged rows of aggregated captures.
            let rows = &theirs.rows[&(view.to_owned(), false)];
            let bytes: u64 = rows.values().map(|tally| tally.bytes).sum();
            assert_eq!(bytes, total.bytes, "{name} {view}");
        }
        let native = report
            .frames
            .iter()
            .filter(|frame| report.strings.get(frame.function).starts_with("0x"))
            .collect::<Vec<_>>();
        // Allocations without a Python stack. In an aggregated capture, all of them are freed.
        assert_eq!(native.is_empty(), name != "native", "{name}");
        assert!(
            native
                .iter()
                .all(|f| report.strings.get(f.file).starts_with('/'))
        );
    }
}
