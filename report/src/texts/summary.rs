//! The allocations of each function, by itself and with its callees: memray's `summary`, with nothing dropped.

use std::io::{self, Write};

use super::cell::{amount, left, percent, right, share, shorten_name, shorten_path, width};
use super::paint::Paint;
use super::{Options, SortColumn, head};
use crate::formats::spelling::{self, NO_STACK};
use crate::model::{Frame, Report, Tally};
use crate::units::counted;
use crate::views::{Unit, by_function, short_path};

/// Largest width of a function's name in any text: figures stand after it.
const MOST_NAME: usize = 100;

/// Function, or all allocations without a call stack.
struct Row {
    frame: Option<Frame>,
    own: Tally,
    total: Tally,
}

const TITLES: [&str; 7] = [
    "Function",
    "Total",
    "Total %",
    "Own",
    "Own %",
    "Allocations",
    "File",
];

/// Writes a row for each function that is on a call stack with any of the measure.
///
/// # Errors
/// If `out` fails.
pub fn summary(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let whole = options.unit.of(head::put(report, options, out)?);
    let other = options.unit.other();
    let mut rows = rows(report, options);
    rows.sort_by_key(|row| {
        let (total, own) = (options.unit.of(row.total), options.unit.of(row.own));
        std::cmp::Reverse(match options.sort_column {
            SortColumn::Total | SortColumn::TotalShare => (total, own),
            SortColumn::Own | SortColumn::OwnShare => (own, total),
            SortColumn::Allocations => (other.of(row.total), total),
        })
    });
    let hidden = rows.len() - options.max_rows.unwrap_or(rows.len()).min(rows.len());
    rows.truncate(rows.len() - hidden);

    let mut titles = TITLES.map(str::to_owned);
    if options.unit == Unit::Count {
        titles[5] = "Bytes".into();
    }
    let sorted = SortColumn::ALL
        .iter()
        .position(|&column| column == options.sort_column)
        .map_or(1, |index| index + 1);
    titles[sorted] = format!("<{}>", titles[sorted]);

    let cells: Vec<[String; 5]> = rows
        .iter()
        .map(|row| {
            let (total, own) = (options.unit.of(row.total), options.unit.of(row.own));
            [
                amount(options.unit, total),
                percent(share(total, whole)),
                amount(options.unit, own),
                percent(share(own, whole)),
                amount(other, other.of(row.total)),
            ]
        })
        .collect();
    let columns: [usize; 5] = std::array::from_fn(|column| {
        let cells = cells.iter().map(|row| width(&row[column]));
        cells.max().unwrap_or(0).max(width(&titles[column + 1]))
    });
    // The function and the file get the rest of the width.
    let names = options
        .columns()
        .saturating_sub(columns.iter().sum::<usize>() + 2 * 6);
    let longest = rows.iter().map(|row| width(&function(report, row))).max();
    let function_columns = longest
        .unwrap_or(0)
        .clamp(8, (names * 3 / 5).clamp(8, MOST_NAME));
    let file_columns = names.saturating_sub(function_columns);

    let paint = Paint(options.colours);
    let mut line = left(&titles[0], function_columns);
    for (title, &columns) in titles[1..6].iter().zip(&columns) {
        line += "  ";
        line += &right(title, columns);
    }
    line += "  ";
    line += &titles[6];
    if !rows.is_empty() {
        writeln!(out, "{}", paint.bold(line))?;
    }
    for (row, cells) in rows.iter().zip(&cells) {
        let name = shorten_name(&function(report, row), function_columns);
        let mut line = paint.name(left(&name, function_columns));
        let total = share(options.unit.of(row.total), whole);
        let own = share(options.unit.of(row.own), whole);
        for (index, part) in [total, total, own, own, total].into_iter().enumerate() {
            line += "  ";
            line += &paint.share(part, right(&cells[index], columns[index]));
        }
        let file = row
            .frame
            .map_or("".into(), |frame| spelling::file(report, frame));
        writeln!(
            out,
            "{line}  {}",
            paint.place(shorten_path(short_path(&file), file_columns))
        )?;
    }
    if hidden > 0 {
        let more = format!("and {}", counted(hidden as u64, "more function"));
        writeln!(out, "{}", paint.dim(more))?;
    }
    Ok(())
}

fn function(report: &Report, row: &Row) -> String {
    match row.frame {
        None => NO_STACK.into(),
        Some(frame) => spelling::function(report, frame).into_owned(),
    }
}

fn rows(report: &Report, options: &Options) -> Vec<Row> {
    let mut rows: Vec<Row> = by_function(report)
        .iter()
        .map(|sums| Row {
            frame: Some(Frame {
                function: sums.function,
                file: sums.file,
                line: 0,
            }),
            own: options.measure.of_sums(&sums.own),
            total: options.measure.of_sums(&sums.total),
        })
        .collect();
    let mut none = Tally::default();
    for site in &report.sites {
        if report.stacks.node(site.stack).is_none() {
            none += options.measure.of(site);
        }
    }
    rows.push(Row {
        frame: None,
        own: none,
        total: none,
    });
    rows.retain(|row| row.total != Tally::default());
    rows
}
