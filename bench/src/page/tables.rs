//! The tables of the page.

use std::fmt::Write as _;

use super::figures::{self, Figures};
use super::{always_on, scale};
use crate::runs::Runs;

pub(super) type Column<'a> = (&'a str, &'a dyn Fn(&Figures) -> Option<String>);

pub(crate) fn all(runs: &Runs, out: &mut String) {
    main(runs, out);
    pairs(runs, out);
    server(runs, out);
    always_on::section(runs, out);
    live(runs, out);
    rest(runs, out);
    scale::section(runs, out);
    instructions(runs, out);
    work(runs, out);
    versions(runs, out);
}

/// Writes a row for each contender that has a figure.
pub(super) fn table(runs: &Runs, out: &mut String, with_unprofiled: bool, columns: &[Column]) {
    let _ = write!(out, "| |");
    for (title, _) in columns {
        let _ = write!(out, " {title} |");
    }
    let _ = writeln!(out, "\n|---|{}", "---:|".repeat(columns.len()));
    for about in &runs.contenders {
        let figures = Figures::of(runs, &about.id);
        if !with_unprofiled && !figures.is_profiled() {
            continue;
        }
        let cells: Vec<Option<String>> = columns.iter().map(|(_, of)| of(&figures)).collect();
        if cells.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(out, "| {} |", about.title);
        for cell in cells {
            let _ = write!(out, " {} |", cell.unwrap_or_default());
        }
        out.push('\n');
    }
    out.push('\n');
}

fn main(runs: &Runs, out: &mut String) {
    out.push_str(
        "## At a glance\n\nEach profiler is compared with the same program without a profiler. CPU time is that of \
         the whole process and of the profiler's helper processes. Figures are medians.\n\n",
    );
    let warm = "pairs shape=warm depth=60 threads=1";
    let cold = "pairs shape=cold depth=60 threads=1";
    table(
        runs,
        out,
        false,
        &[
            ("`live`: CPU", &|one| times(one.cpu_ratio("live"))),
            ("wall", &|one| times(one.ratio("live", "wall_ns"))),
            ("`pairs` warm, depth 60: CPU added", &|one| {
                ns(one.added(warm))
            }),
            ("cold", &|one| ns(one.added(cold))),
            ("`server`: requests", &|one| {
                percent(one.ratio("server", "requests_per_second"))
            }),
            ("own memory a live block", &|one| bytes(one.bytes_a_block())),
            ("recording of `live`", &|one| {
                mib(one.value("live", "recording_bytes"))
            }),
            ("until its flame graph is on disk", &|one| graph(one)),
        ],
    );
}

fn pairs(runs: &Runs, out: &mut String) {
    out.push_str(
        "## `pairs`\n\nA `malloc` and a `free` of 16 to 1,024 bytes from 1,024 call stacks. Warm: eight pairs on one \
         stack, then \
         another stack at random. Cold: another stack each time. Stacks differ in their innermost ten frames; in \
         *scattered*, from the root on.\n\n### Added to a pair, in nanoseconds of CPU, all threads and helpers\n\n",
    );
    for depth in [60, 30, 10] {
        let case = |shape: &str, threads: u32| {
            format!("pairs shape={shape} depth={depth} threads={threads}")
        };
        if runs.case(&case("warm", 1)).is_none() {
            continue;
        }
        let _ = writeln!(out, "Depth {depth}:\n");
        let added = |shape: &'static str, threads: u32| {
            move |one: &Figures| {
                let case = format!("pairs shape={shape} depth={depth} threads={threads}");
                if one.is_profiled() {
                    ns(one.added(&case))
                } else {
                    one.pair(&case).map(|ns| format!("({ns:.0})"))
                }
            }
        };
        let (warm1, warm2, warm4, warm8) = (
            added("warm", 1),
            added("warm", 2),
            added("warm", 4),
            added("warm", 8),
        );
        let (cold1, cold2, cold4, cold8) = (
            added("cold", 1),
            added("cold", 2),
            added("cold", 4),
            added("cold", 8),
        );
        table(
            runs,
            out,
            true,
            &[
                ("warm, 1 thread", &warm1),
                ("2", &warm2),
                ("4", &warm4),
                ("8", &warm8),
                ("cold, 1 thread", &cold1),
                ("2", &cold2),
                ("4", &cold4),
                ("8", &cold8),
            ],
        );
    }
    out.push_str("In brackets: a pair without a profiler.\n\n### On the thread that makes the pairs, one thread\n\n");
    let thread = |case: &'static str| move |one: &Figures| ns(one.added_on_thread(case));
    let lost = |one: &Figures| {
        let of = |shape| one.value(&format!("pairs shape={shape} depth=60 threads=1"), "lost");
        Some(format!("{:.0}", of("warm")? + of("cold")?))
    };
    table(
        runs,
        out,
        false,
        &[
            (
                "warm, depth 60",
                &thread("pairs shape=warm depth=60 threads=1"),
            ),
            (
                "cold, depth 60",
                &thread("pairs shape=cold depth=60 threads=1"),
            ),
            (
                "scattered, depth 60",
                &thread("pairs shape=scattered depth=60 threads=1"),
            ),
            (
                "warm, depth 500",
                &thread("pairs shape=warm depth=500 threads=1"),
            ),
            (
                "cold, depth 500",
                &thread("pairs shape=cold depth=500 threads=1"),
            ),
            ("lost events", &lost),
        ],
    );
}

fn server(runs: &Runs, out: &mut String) {
    out.push_str(
        "## `server`\n\nAn axum service with one worker thread: JSON in, a map of strings, JSON out. Eight \
         connections on loopback have one request under way each, sent by one thread. So latencies are those of a \
         fully loaded service.\n\n",
    );
    table(
        runs,
        out,
        true,
        &[
            ("requests/s", &|one| {
                one.value("server", "requests_per_second")
                    .map(|n| format!("{n:.0}"))
            }),
            ("of unprofiled", &|one| {
                percent(one.ratio("server", "requests_per_second"))
            }),
            ("CPU a request: service", &|one| {
                micro(one.value("server", "service_ns"))
            }),
            ("profiler's threads", &|one| {
                micro(one.value("server", "profiler_ns").filter(|&ns| ns > 0.0))
            }),
            ("helper process", &|one| {
                micro(
                    one.runs
                        .median_of(one.runs.case("server")?, one.id, |values| {
                            Some(values.get("helper_cpu_ns")? / values.get("all_requests")?)
                        }),
                )
            }),
            ("p50", &|one| micro(one.value("server", "p50_ns"))),
            ("p99", &|one| micro(one.value("server", "p99_ns"))),
            ("p99.9", &|one| micro(one.value("server", "p999_ns"))),
        ],
    );
    let each = Figures::of(runs, "got");
    if let Some(case) = runs.case("server")
        && let Some(each) = each.runs.median_of(case, each.id, |values| {
            Some(values.get("recorded")? / values.get("all_requests")?)
        })
    {
        let _ = writeln!(out, "{each:.0} allocations and reallocations a request.\n");
    }
}

fn live(runs: &Runs, out: &mut String) {
    let blocks = Figures::of(runs, "off")
        .value("live", "blocks")
        .unwrap_or(0.0);
    let _ = writeln!(
        out,
        "## `live`\n\nAbout {blocks:.0} blocks of parsed JSON, maps and strings are built up, a quarter is replaced, \
         and half is freed. Memory is that of the process when all blocks are live. \"Until its flame graph is on \
         disk\" begins when the work is done. heapray and heapscope write a page, dhat does not have one.\n"
    );
    table(
        runs,
        out,
        true,
        &[
            ("CPU", &|one| {
                seconds(
                    one.runs
                        .median_of(one.runs.case("live")?, one.id, figures::cpu),
                )
            }),
            ("ratio", &|one| times(one.cpu_ratio("live"))),
            ("helper's part", &|one| {
                seconds(one.value("live", "helper_cpu_ns"))
            }),
            ("wall", &|one| times(one.ratio("live", "wall_ns"))),
            ("memory", &|one| mib(one.value("live", "rss_live"))),
            ("of unprofiled", &|one| {
                percent(one.ratio("live", "rss_live"))
            }),
            ("helper's memory", &|one| {
                mib(one.value("live", "helper_rss_most"))
            }),
            ("own a block", &|one| {
                one.is_profiled()
                    .then(|| bytes(one.bytes_a_block()))
                    .flatten()
            }),
            (
                "recording",
                &|one| mib(one.value("live", "recording_bytes")),
            ),
            ("flame graph", &|one| graph(one)),
        ],
    );
}

fn rest(runs: &Runs, out: &mut String) {
    let count = Figures::of(runs, "off")
        .value("threads", "threads")
        .unwrap_or(0.0);
    let _ = writeln!(
        out,
        "## `threads` and `cpp`\n\n{count:.0} threads that live for 16 pairs each, and a C++ library that allocates \
         from 8 threads of its own. A profiler that is a Rust global allocator does not see the C++ library at \
         all.\n"
    );
    table(
        runs,
        out,
        false,
        &[
            ("`threads`: CPU", &|one| times(one.cpu_ratio("threads"))),
            ("wall", &|one| times(one.ratio("threads", "wall_ns"))),
            ("lost events", &|one| {
                one.value("threads", "lost")
                    .map(|lost| format!("{lost:.0}"))
            }),
            ("memory at the most", &|one| {
                mib(one.value("threads", "rss_most"))
            }),
            ("`cpp`: CPU", &|one| times(one.cpu_ratio("cpp"))),
            ("wall", &|one| times(one.ratio("cpp", "wall_ns"))),
            ("allocations recorded", &|one| {
                one.value("cpp", "recorded").map(|n| format!("{n:.0}"))
            }),
        ],
    );
}

fn instructions(runs: &Runs, out: &mut String) {
    if runs.case("instructions warm threads=1").is_none() {
        return;
    }
    out.push_str(
        "## Instructions of a pair\n\nCounted by callgrind on the threads that make the pairs, 60 frames deep. Other \
         load on the machine does not change these figures.\n\n",
    );
    let count = |case: &'static str| {
        move |one: &Figures| {
            one.value(case, "instructions")
                .map(|count| format!("{count:.0}"))
        }
    };
    table(
        runs,
        out,
        true,
        &[
            ("warm", &count("instructions warm threads=1")),
            ("warm, 8 threads", &count("instructions warm threads=8")),
            ("cold", &count("instructions cold threads=1")),
            ("scattered", &count("instructions scattered threads=1")),
        ],
    );
}

fn work(runs: &Runs, out: &mut String) {
    if runs.case("check").is_none() {
        return;
    }
    out.push_str(
        "## Does each do the work?\n\n10,240 warm pairs 60 frames deep, and one from each of the 1,024 stacks \
         before. The table shows what each profiler has recorded of them, and of the program's own few allocations. \
         heapray's stacks are counted with inlined functions, those of heaptrack, gperftools, jemalloc and heapscope \
         without.\n\n",
    );
    let whole = |name: &'static str| {
        move |one: &Figures| one.value("check", name).map(|value| format!("{value:.0}"))
    };
    table(
        runs,
        out,
        false,
        &[
            ("pairs", &whole("expected")),
            ("allocations recorded", &whole("recorded")),
            ("different stacks", &whole("stacks")),
            ("frames of the deepest", &whole("deepest")),
        ],
    );
}

fn versions(runs: &Runs, out: &mut String) {
    out.push_str("## Versions\n\n");
    for about in runs
        .contenders
        .iter()
        .filter(|about| about.id != about.against)
    {
        if !about.version.is_empty()
            && !about.title.starts_with("heapray")
            && about.id != "global-off"
        {
            let _ = writeln!(out, "- {}: {}", about.title, about.version);
        }
    }
    for missing in &runs.missing {
        let _ = writeln!(out, "- not measured: {missing}");
    }
    let mut failed: Vec<String> = Vec::new();
    for run in &runs.runs {
        if let Some(why) = runs.failure(&run.case, &run.contender) {
            let title = runs
                .about(&run.contender)
                .map_or("", |about| about.title.as_str());
            let line = format!("- failed: {title} in `{}`: {why}", run.case);
            if !failed.contains(&line) {
                failed.push(line);
            }
        }
    }
    for line in failed {
        let _ = writeln!(out, "{line}");
    }
    out.push('\n');
}

fn times(value: Option<f64>) -> Option<String> {
    value.map(|value| {
        if value < 10.0 {
            format!("{value:.2}×")
        } else {
            format!("{value:.0}×")
        }
    })
}

fn ns(value: Option<f64>) -> Option<String> {
    value.map(|value| format!("{value:+.0} ns"))
}

pub(super) fn micro(ns: Option<f64>) -> Option<String> {
    ns.map(|ns| format!("{:.1} µs", ns / 1e3))
}

pub(super) fn seconds(ns: Option<f64>) -> Option<String> {
    ns.map(|ns| format!("{:.2} s", ns / 1e9))
}

pub(super) fn percent(ratio: Option<f64>) -> Option<String> {
    ratio.map(|ratio| format!("{:.0} %", 100.0 * ratio))
}

fn bytes(value: Option<f64>) -> Option<String> {
    value.map(|value| format!("{value:.0} B"))
}

pub(super) fn mib(value: Option<f64>) -> Option<String> {
    value.map(|value| format!("{:.1} MiB", value / f64::from(1 << 20)))
}

/// Returns the time until there is a page, if there is one.
fn graph(one: &Figures) -> Option<String> {
    seconds(one.until_page("live"))
}
