//! What each value of a context's key holds, as a table and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::cell::{left, right, width};
use crate::Report;
use crate::model::Tally;
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

/// Writes a table of the values of `key`, that with the most live bytes first. It has no limit on its width: a value is never
/// cut.
///
/// # Errors
/// If `out` fails.
pub fn contexts(report: &Report, key: &str, out: &mut impl Write) -> io::Result<()> {
    let rows = context_rows(report, key);
    let names: Vec<String> = rows.iter().map(|row| name(row, key)).collect();
    let cells: Vec<[String; 5]> = rows.iter().map(|row| cells(report, row)).collect();
    let wide = |text: &str, least: usize| width(text).max(least);
    let first = names.iter().fold(width(key), |most, name| wide(name, most));
    let columns: [usize; 5] = std::array::from_fn(|at| {
        let all = cells.iter().map(|row| &row[at]);
        all.fold(width(HEADS[at]), |most, cell| wide(cell, most))
    });
    let mut line = |name: &str, cells: [&str; 5]| {
        let cells = cells.iter().zip(columns);
        let cells: String = cells
            .map(|(cell, columns)| format!("  {}", right(cell, columns)))
            .collect();
        writeln!(out, "{}{cells}", left(name, first))
    };
    line(key, HEADS)?;
    for (name, cells) in names.iter().zip(&cells) {
        line(name, std::array::from_fn(|at| cells[at].as_str()))?;
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

#[derive(Serialize)]
struct ByKey<'a> {
    key: &'a str,
    contexts: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    value: Option<&'a str>,
    live: Tally,
    high_water: Tally,
    allocated: Tally,
    oldest_live_ms: Option<u64>,
}

/// Writes the same as JSON: `{"key": …, "contexts": [{"value": …, "live": {"count": …, "bytes": …}, …}]}`. The value is `null`
/// for contexts without the key; times are milliseconds since the start.
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
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &ByKey { key, contexts })?;
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
    }
}
