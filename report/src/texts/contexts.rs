//! What each value of a context's key holds, as a table and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::cell::{left, right, width};
use crate::Report;
use crate::clean::in_one_line;
use crate::model::{Runs, Spread, Tally};
use crate::units::{counted, duration, grouped, size};
use crate::views::{ContextRow, context_rows};

/// Heads of the columns after the value.
const HEADS: [&str; 5] = [
    "live",
    "blocks",
    "at the high-water mark",
    "allocated",
    "oldest",
];
/// Heads of the columns about the runs of a context, if there are any.
const RUN_HEADS: [&str; 5] = ["runs", "each: median", "99 %", "most", "left behind"];

/// Writes a table of the values of `key`, that with the most live bytes first, and the report's notes. It has no limit on its
/// width: a value is never cut.
///
/// # Errors
/// If `out` fails.
pub fn contexts(report: &Report, key: &str, out: &mut impl Write) -> io::Result<()> {
    let rows = context_rows(report, key);
    let has_runs = rows.iter().any(|row| row.runs.count() > 0);
    let run_heads = if has_runs { &RUN_HEADS[..] } else { &[] };
    let heads = HEADS.iter().chain(run_heads).map(|&head| head.to_owned());
    let mut lines = vec![(key.to_owned(), heads.collect::<Vec<String>>())];
    for row in &rows {
        let mut cells = cells(report, row).to_vec();
        if has_runs {
            cells.extend(run_cells(row));
        }
        lines.push((name(row, key), cells));
    }
    let first = lines.iter().map(|(name, _)| width(name)).max();
    let columns: Vec<usize> = (0..lines[0].1.len())
        .map(|at| lines.iter().map(|(_, cells)| width(&cells[at])).max())
        .map(Option::unwrap_or_default)
        .collect();
    for (name, cells) in &lines {
        let cells = cells.iter().zip(&columns);
        let cells: String = cells
            .map(|(cell, &columns)| format!("  {}", right(cell, columns)))
            .collect();
        writeln!(out, "{}{cells}", left(name, first.unwrap_or_default()))?;
    }
    let notes = &report.conditions.notes;
    if !notes.is_empty() {
        writeln!(out)?;
    }
    for note in notes {
        writeln!(out, "note: {}", in_one_line(note))?;
    }
    Ok(())
}

fn name(row: &ContextRow, key: &str) -> String {
    row.value.clone().unwrap_or_else(|| format!("(no {key})"))
}

fn cells(report: &Report, row: &ContextRow) -> [String; 5] {
    let end = u64::try_from(report.about.end_ms.saturating_sub(report.about.start_ms));
    let age = |at: u64| end.map_or(0, |end| end.saturating_sub(at));
    let oldest = row.oldest_live_ms.map(|at| duration(age(at)));
    [
        size(row.live.bytes),
        grouped(row.live.count),
        size(row.high_water.bytes),
        format!(
            "{} in {}",
            size(row.allocated.bytes),
            counted(row.allocated.count, "block")
        ),
        oldest.unwrap_or_default(),
    ]
}

fn run_cells(row: &ContextRow) -> [String; 5] {
    let bytes = |bytes: Option<u64>| bytes.map(size).unwrap_or_default();
    let each = &row.runs.allocated_bytes;
    let count = row.runs.count();
    [
        if count > 0 {
            grouped(count)
        } else {
            String::new()
        },
        bytes(each.quantile(0.5)),
        bytes(each.quantile(0.99)),
        bytes((count > 0).then(|| each.largest())),
        bytes(row.left_behind()),
    ]
}

#[derive(Serialize)]
struct ByKey<'a> {
    key: &'a str,
    contexts: Vec<Row<'a>>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Row<'a> {
    value: Option<&'a str>,
    live: Tally,
    high_water: Tally,
    allocated: Tally,
    oldest_live_ms: Option<u64>,
    runs: Option<RunSums>,
}

/// Sums of runs, with each spread as a few figures.
#[derive(Serialize)]
struct RunSums {
    count: u64,
    allocated_bytes: Option<Figures>,
    allocated_blocks: Option<Figures>,
    most_bytes: Option<Figures>,
    held_bytes: Option<Figures>,
    freed_of_others: Tally,
}

#[derive(Serialize)]
struct Figures {
    mean: u64,
    median: u64,
    p99: u64,
    most: u64,
    sum: u64,
}

impl RunSums {
    /// Returns `None` without runs.
    fn of(runs: &Runs) -> Option<RunSums> {
        (runs.count() > 0).then(|| RunSums {
            count: runs.count(),
            allocated_bytes: Figures::of(&runs.allocated_bytes),
            allocated_blocks: Figures::of(&runs.allocated_blocks),
            most_bytes: Figures::of(&runs.most_bytes),
            held_bytes: Figures::of(&runs.held_bytes),
            freed_of_others: runs.freed_of_others,
        })
    }
}

impl Figures {
    fn of(spread: &Spread) -> Option<Figures> {
        Some(Figures {
            mean: spread.mean()?,
            median: spread.quantile(0.5)?,
            p99: spread.quantile(0.99)?,
            most: spread.largest(),
            sum: spread.sum(),
        })
    }
}

/// Writes the same as JSON: `{"key": …, "contexts": [{"value": …, "live": {"count": …, "bytes": …}, …}], "notes": […]}`. The value is `null`
/// for contexts without the key; times are milliseconds since the start. `runs` has the number of requests or futures that have
/// ended, and of what each of them allocated, held at most and left behind: mean, median, 99th percentile, most and sum. What is
/// not known is `null`.
///
/// # Errors
/// If `out` fails.
pub fn contexts_json(report: &Report, key: &str, out: &mut impl Write) -> io::Result<()> {
    let rows = context_rows(report, key);
    let contexts = rows
        .iter()
        .map(|row| Row {
            value: row.value.as_deref(),
            live: row.live,
            high_water: row.high_water,
            allocated: row.allocated,
            oldest_live_ms: row.oldest_live_ms,
            runs: RunSums::of(&row.runs),
        })
        .collect();
    serde_json::to_writer_pretty(
        &mut *out,
        &ByKey {
            key,
            contexts,
            notes: &report.conditions.notes,
        },
    )?;
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::views::report_with_contexts;

    #[test]
    fn the_table_has_a_row_for_each_value_and_for_none() {
        let mut out = Vec::new();
        contexts(&report_with_contexts(), "route", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let first: Vec<&str> = text.lines().map(|line| line[..10].trim()).collect();
        assert_eq!(first, ["route", "GET /b", "GET /a", "(no route)"]);
        let widths: Vec<usize> = text.lines().map(width).collect();
        assert_eq!(widths, [widths[0]; 4], "columns are aligned");
    }

    #[test]
    fn the_json_has_numbers_and_null_for_no_value() {
        let mut out = Vec::new();
        contexts_json(&report_with_contexts(), "tenant", &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(json["key"], "tenant");
        assert_eq!(json["contexts"][0]["value"], "acme");
        assert_eq!(json["contexts"][0]["live"]["bytes"], 40);
        assert!(json["contexts"][1]["value"].is_null());
        assert!(json["contexts"][1]["runs"].is_null());
    }

    #[test]
    fn both_say_what_the_report_notes() {
        let mut report = report_with_contexts();
        report.conditions.notes = vec!["more than 2 contexts\nare one".to_owned()];
        let (mut text, mut json) = (Vec::new(), Vec::new());
        contexts(&report, "route", &mut text).unwrap();
        contexts_json(&report, "route", &mut json).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(
            text.ends_with("\n\nnote: more than 2 contexts are one\n"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        assert_eq!(json["notes"][0], report.conditions.notes[0].as_str());
    }

    #[test]
    fn runs_have_columns_and_figures_where_there_are_any() {
        let mut report = report_with_contexts();
        let runs = &mut report.contexts[1].runs;
        for bytes in [100, 100, 4_000] {
            runs.allocated_bytes.add(bytes);
            runs.held_bytes.add(bytes / 100);
        }
        let mut out = Vec::new();
        contexts(&report, "route", &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let line = text.lines().find(|line| line.contains("GET /a")).unwrap();
        let words: Vec<&str> = line.split("  ").map(str::trim).collect();
        let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
        assert_eq!(words[words.len() - 2..], ["4.000kB", "6.000B"], "{text}");
        let mut out = Vec::new();
        contexts_json(&report, "route", &mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let runs = &json["contexts"][1]["runs"];
        assert_eq!(runs["count"], 3);
        assert_eq!(runs["allocated_bytes"]["most"], 4_000);
        assert_eq!(runs["held_bytes"]["sum"], 42);
        assert!(runs["most_bytes"].is_null());
    }
}
