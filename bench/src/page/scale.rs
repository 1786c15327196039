//! The tables of how the cost grows: with live blocks, with call sites, with threads.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use heapray_report::units::grouped;

use super::figures::{Figures, cpu};
use super::tables::{mib, seconds};
use crate::plan::CROWD;
use crate::runs::Runs;

/// What the cost of a case is divided by: a value that each run has.
type Per = &'static str;

/// Figure of a contender in a case.
type Figure = fn(&Figures, &str, Per) -> Option<String>;

/// Writes the section, if there are runs for it.
pub(super) fn section(runs: &Runs, out: &mut String) {
    if cases(runs, "blocks").is_empty() && cases(runs, "sites").is_empty() {
        return;
    }
    out.push_str(
        "## How it scales\n\nIn brackets: the unprofiled program. Other figures are what the profiler adds to it. What bends the curves, \
         and a week of sampling, are in the [notes on performance](performance-notes.md#how-it-scales).\n\n",
    );
    let curves: [(&str, &str, Per, Figure); 5] = [
        (
            "blocks",
            "Live blocks of 32 bytes from 1,024 call stacks: CPU to allocate and to free one",
            "count",
            added,
        ),
        ("blocks", "Memory of a live block", "count", memory),
        (
            "sites",
            "Call sites, each met once: CPU of one, with its `malloc` and `free`",
            "count",
            added,
        ),
        ("sites", "Memory of a call site", "count", memory),
        (
            CROWD,
            "Threads at the same time: CPU of a warm pair, 60 frames deep",
            "pairs",
            added,
        ),
    ];
    for (workload, title, per, figure) in curves {
        curve(runs, out, workload, title, &|one, case| {
            figure(one, case, per)
        });
    }
    reports(runs, out);
}

/// Writes a row for each size, with a column for each contender.
fn curve(
    runs: &Runs,
    out: &mut String,
    workload: &str,
    title: &str,
    figure: &dyn Fn(&Figures, &str) -> Option<String>,
) {
    let cases = cases(runs, workload);
    let ids = runs.contenders.iter().map(|about| about.id.as_str());
    let has_figure = |one: &Figures| cases.iter().any(|case| figure(one, case).is_some());
    let columns: Vec<Figures> = ids
        .map(|id| Figures::of(runs, id))
        .filter(has_figure)
        .collect();
    if columns.is_empty() {
        return;
    }
    let _ = write!(out, "{title}:\n\n| |");
    for one in &columns {
        let title = runs.about(one.id).map_or(one.id, |about| &about.title);
        let _ = write!(out, " {title} |");
    }
    let _ = writeln!(out, "\n|---:|{}", "---:|".repeat(columns.len()));
    for case in &cases {
        let figures = columns.iter().map(|one| figure(one, case));
        let figures: Vec<Option<String>> = figures.collect();
        if figures.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(out, "| {} |", size(case));
        for figure in figures {
            let _ = write!(out, " {} |", figure.unwrap_or_default());
        }
        out.push('\n');
    }
    out.push('\n');
}

/// Writes what the report of so many call sites takes.
fn reports(runs: &Runs, out: &mut String) {
    let cases = cases(runs, "sites");
    let got = Figures::of(runs, "got");
    let rows: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let time = seconds(got.value(case, "finish_ns"))?;
            let memory = mib(got.value(case, "finish_memory"))?;
            let page = mib(got.value(case, "page_bytes"))?;
            Some(format!("| {} | {time} | {memory} | {page} |", size(case)))
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "heapray's report and flame graph of so many call sites. Memory is the most that the service and the helper process \
         took for them:\n\n| | time | memory | page |\n|---:|---:|---:|---:|\n{}\n",
        rows.join("\n")
    );
}

/// Returns the cases of a workload, in the order in which they were measured.
fn cases<'a>(runs: &'a Runs, workload: &str) -> Vec<&'a str> {
    let mut cases: Vec<&str> = Vec::new();
    for run in &runs.runs {
        let is_one = run.case.split(' ').next() == Some(workload);
        if is_one && !cases.contains(&run.case.as_str()) {
            cases.push(&run.case);
        }
    }
    cases
}

/// Returns the size of a case, which is its last parameter: `1,000,000`.
fn size(case: &str) -> String {
    let digits = case.rsplit('=').next().unwrap_or_default();
    digits.parse().map_or_else(|_| digits.to_owned(), grouped)
}

fn added(one: &Figures, case: &str, per: Per) -> Option<String> {
    shown(one, case, "ns", |values| {
        Some(cpu(values)? / values.get(per)?)
    })
}

fn memory(one: &Figures, case: &str, per: Per) -> Option<String> {
    shown(one, case, "B", |values| {
        // Of fewer, the pages that the program itself touches for the first time are the most.
        let count = values.get(per).filter(|&&count| count >= 10_000.0)?;
        Some(values.get("rss_live")? / count)
    })
}

/// Returns what a profiler adds to what `of` makes of a run's values, or the whole of it in brackets.
fn shown(
    one: &Figures,
    case: &str,
    unit: &str,
    of: impl Fn(&BTreeMap<String, f64>) -> Option<f64> + Copy,
) -> Option<String> {
    if one.is_profiled() {
        let added = one.added_of(case, of)?;
        Some(format!("{added:+.0} {unit}"))
    } else {
        let whole = one.median(case, of)?;
        Some(format!("({whole:.0} {unit})"))
    }
}

#[cfg(test)]
mod tests {
    use crate::runs::{Run, Runs};

    #[test]
    fn each_size_has_a_row_and_each_contender_a_column() {
        let run = |count: f64, contender: &str, cpu: f64| Run {
            case: format!("blocks count={count}"),
            contender: contender.to_owned(),
            round: 0,
            values: [
                ("count".to_owned(), count),
                ("cpu_ns".to_owned(), cpu * count),
                ("rss_live".to_owned(), cpu * count),
            ]
            .into(),
            failed: None,
        };
        let measured = vec![
            run(1e4, "off", 40.0),
            run(1e4, "got", 140.0),
            run(1e6, "off", 50.0),
            run(1e6, "got", 170.0),
        ];
        let runs = Runs::of(&["off", "got", "idle"], measured);
        let mut page = String::new();
        super::section(&runs, &mut page);
        assert!(page.contains("| | off | got |\n"), "{page}");
        assert!(page.contains("| 10,000 | (40 ns) | +100 ns |\n"), "{page}");
        assert!(page.contains("| 1,000,000 | (50 B) | +120 B |\n"), "{page}");
        assert!(!page.contains("Call sites"), "{page}");
    }
}
