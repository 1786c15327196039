//! memory_profiler's table, column for column (`show_results` of its version 0.61).

use std::fmt::Write as _;

use super::function::{Source, Unit};
use super::lines::Row;

/// Format of the figures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Style {
    pub(super) unit: Unit,
    pub(super) precision: u8,
    /// Set for a column with numbers of allocations, which memory_profiler does not have.
    pub(super) allocations: bool,
}

/// Returns the table with its head, up to the last row.
pub(super) fn table(source: &Source, rows: &[Row], style: Style) -> String {
    let mut out = String::with_capacity(200 + rows.len() * 120);
    let header = line(
        style,
        "Line #",
        "Mem usage",
        "Increment",
        "Occurrences",
        "Allocations",
        "Line Contents",
    );
    // Writing to a string cannot fail.
    let _ = writeln!(out, "Filename: {}\n\n{header}", source.file);
    let _ = writeln!(out, "{}", "=".repeat(header.len()));
    let mut text = source.text.lines();
    for (number, row) in (source.first_line..).zip(rows) {
        let text = text.next().unwrap_or_default();
        let number = number.to_string();
        let row = if row.occurrences == 0 {
            line(style, &number, "", "", "", "", text)
        } else {
            line(
                style,
                &number,
                &bytes(signed(row.highest), style),
                &bytes(row.increment, style),
                &row.occurrences.to_string(),
                &row.allocations.to_string(),
                text,
            )
        };
        out.push_str(&row);
        out.push('\n');
    }
    out
}

/// Writes `{0:>6} {1:>12} {2:>12}  {3:>10}   {4:<}`. As in memory_profiler, headers are wider than their columns, and push
/// what follows.
fn line(
    style: Style,
    number: &str,
    memory: &str,
    increment: &str,
    occurrences: &str,
    allocations: &str,
    text: &str,
) -> String {
    let first = format!("{number:>6} {memory:>12} {increment:>12}  {occurrences:>10}");
    if style.allocations {
        format!("{first}  {allocations:>11}   {text}")
    } else {
        format!("{first}   {text}")
    }
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns a figure as in a cell: with at least four places before the decimals.
pub(super) fn bytes(bytes: i64, style: Style) -> String {
    let (one, name) = match style.unit {
        Unit::Mebibytes => (1_048_576.0, "MiB"),
        Unit::Kibibytes => (1024.0, "KiB"),
        Unit::Bytes => (1.0, "B"),
    };
    let precision = usize::from(style.precision);
    let width = precision + 4;
    format!("{:width$.precision$} {name}", bytes as f64 / one)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: Source = Source {
        file: "src/a.rs",
        path: "a::f",
        name: "f",
        first_line: 9,
        lines: 4,
        text: "#[profile]\nfn f() {\n    // nothing\n}",
    };

    fn rows() -> Vec<Row> {
        let row = |highest: u64, increment: i64| Row {
            highest: highest << 18,
            increment: increment << 18,
            occurrences: 1,
            allocations: 7,
        };
        vec![row(161, 161), Row::default(), Row::default(), row(4004, -1)]
    }

    #[test]
    fn columns_are_those_of_memory_profiler() {
        let style = Style {
            unit: Unit::Mebibytes,
            precision: 1,
            allocations: false,
        };
        let expected = "\
Filename: src/a.rs

Line #    Mem usage    Increment  Occurrences   Line Contents
=============================================================
     9     40.2 MiB     40.2 MiB           1   #[profile]
    10                                         fn f() {
    11                                             // nothing
    12   1001.0 MiB     -0.2 MiB           1   }
";
        assert_eq!(table(&SOURCE, &rows(), style), expected);
    }

    #[test]
    fn allocations_have_a_column_of_their_own() {
        let style = Style {
            unit: Unit::Kibibytes,
            precision: 0,
            allocations: true,
        };
        let table = table(&SOURCE, &rows()[..2], style);
        let expected = "\
Line #    Mem usage    Increment  Occurrences  Allocations   Line Contents
==========================================================================
     9    41216 KiB    41216 KiB           1            7   #[profile]
    10                                                      fn f() {
";
        assert_eq!(table.strip_prefix("Filename: src/a.rs\n\n"), Some(expected));
    }
}
