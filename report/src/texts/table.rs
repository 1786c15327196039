//! The call sites by allocator and leaf, the largest first: memray's `table`, with shares.

use std::collections::HashMap;
use std::io::{self, Write};

use super::Options;
use super::cell::{
    amount, bar, left, percent, place, right, share, shorten, shorten_name, shorten_path, width,
};
use super::head;
use super::paint::Paint;
use crate::formats::spelling::{self, NO_STACK};
use crate::model::{Allocator, FrameId, Report, Tally, ThreadId};
use crate::units::{counted, grouped, size};
use crate::views::Unit;

/// Columns of a bar.
const BAR: usize = 8;

/// Largest width of a thread name, as a fraction of the line.
const THREAD: usize = 8;

/// If less than this would be left for locations, there are no bars.
const ROOM: usize = 36;

/// Row. Threads are summed up unless they are requested.
#[derive(Debug, Clone, Copy)]
struct Row {
    thread: Option<ThreadId>,
    allocator: Allocator,
    frame: Option<FrameId>,
    tally: Tally,
}

/// Writes a row for each allocator and leaf frame (and thread, with `by_thread`) that has any of the measure.
///
/// # Errors
/// If `out` fails.
pub fn table(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let whole = head::put(report, options, out)?;
    let rows = rows(report, options);
    let shown = options.max_rows.unwrap_or(rows.len()).min(rows.len());
    let (shown, rest) = rows.split_at(shown);
    let cells: Vec<[String; 5]> = shown
        .iter()
        .map(|row| {
            let thread = row
                .thread
                .map_or("".into(), |id| spelling::thread(report, id));
            let part = share(options.unit.of(row.tally), options.unit.of(whole));
            [
                shorten(&thread, options.columns() / THREAD),
                size(row.tally.bytes),
                percent(part),
                row.allocator.name().to_ascii_lowercase(),
                grouped(row.tally.count),
            ]
        })
        .collect();
    let titles = ["Thread", "Size", "Share", "Allocator", "Allocations"];
    let columns: Vec<usize> = (0..titles.len())
        .map(|column| {
            let cells = cells.iter().map(|row| width(&row[column]));
            cells.max().unwrap_or(0).max(width(titles[column]))
        })
        .collect();
    let paint = Paint(options.colours);
    let mut taken = columns[1..].iter().sum::<usize>() + 2 * 4;
    if options.by_thread {
        taken += columns[0] + 2;
    }
    let mut room = options.columns().saturating_sub(taken);
    let bars = room >= BAR + 2 + ROOM;
    if bars {
        room -= BAR + 2;
    }
    let line = |cells: [&str; 5], bar: &str, part: f64, paint: Paint| {
        let mut line = String::new();
        if options.by_thread {
            line += &left(cells[0], columns[0]);
            line += "  ";
        }
        line += &paint.share(part, right(cells[1], columns[1]));
        line += "  ";
        line += &paint.share(part, right(cells[2], columns[2]));
        line += "  ";
        if bars {
            line += &paint.share(part, left(bar, BAR));
            line += "  ";
        }
        line += &left(cells[3], columns[3]);
        line += "  ";
        line += &right(cells[4], columns[4]);
        line + "  "
    };
    if !shown.is_empty() {
        let titles = line(titles, "", 0.0, Paint(false));
        writeln!(out, "{}", paint.bold(titles + "Location"))?;
    }
    for (row, cells) in shown.iter().zip(&cells) {
        let part = share(options.unit.of(row.tally), options.unit.of(whole));
        let cells = [0, 1, 2, 3, 4].map(|column| cells[column].as_str());
        let place = location(report, row.frame, room, paint);
        writeln!(out, "{}{place}", line(cells, &bar(part, BAR), part, paint))?;
    }
    put_rest(rest, options, whole, out)
}

fn rows(report: &Report, options: &Options) -> Vec<Row> {
    let mut index = HashMap::new();
    let mut rows: Vec<Row> = Vec::new();
    for site in &report.sites {
        let frame = report.stacks.node(site.stack).map(|node| node.frame);
        let thread = options.by_thread.then_some(site.thread);
        let at = *index
            .entry((thread, site.allocator, frame))
            .or_insert_with(|| {
                rows.push(Row {
                    thread,
                    allocator: site.allocator,
                    frame,
                    tally: Tally::default(),
                });
                rows.len() - 1
            });
        rows[at].tally += options.measure.of(site);
    }
    rows.retain(|row| row.tally != Tally::default());
    let other = options.unit.other();
    rows.sort_by_key(|row| std::cmp::Reverse((options.unit.of(row.tally), other.of(row.tally))));
    rows
}

/// Returns `function at file:line` in `room` columns. If both are long, the function has the larger part.
fn location(report: &Report, frame: Option<FrameId>, room: usize, paint: Paint) -> String {
    let Some(frame) = frame.and_then(|id| spelling::frame(report, id)) else {
        return shorten(NO_STACK, room);
    };
    let function = spelling::function(report, frame);
    let place = place(report, frame);
    if place.is_empty() {
        return paint.name(shorten_name(&function, room));
    }
    let room = room.saturating_sub(" at ".len());
    let for_place = width(&place).min((room * 2 / 5).max(room.saturating_sub(width(&function))));
    let function = shorten_name(&function, room - for_place);
    format!(
        "{} at {}",
        paint.name(function),
        paint.place(shorten_path(&place, for_place))
    )
}

fn put_rest(rest: &[Row], options: &Options, whole: Tally, out: &mut impl Write) -> io::Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    let mut sum = Tally::default();
    for row in rest {
        sum += row.tally;
    }
    let part = share(options.unit.of(sum), options.unit.of(whole));
    let other = match options.unit {
        Unit::Bytes => counted(sum.count, "allocation"),
        Unit::Count => size(sum.bytes),
    };
    let text = format!(
        "and {}: {} ({}), {other}",
        counted(rest.len() as u64, "more row"),
        amount(options.unit, options.unit.of(sum)),
        percent(part),
    );
    writeln!(
        out,
        "{}",
        Paint(options.colours).dim(shorten(&text, options.columns()))
    )
}
