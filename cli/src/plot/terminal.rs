//! The plot in a terminal, made of block characters in eighths of a line.

use heapray_report::memray::in_one_line;

use super::figure::{Call, Curve, Figure};
use super::labels;
use super::scale::Scale;

/// Lines of the main curve. Each descendant has one.
const LINES: usize = 14;
/// Largest number of descendants and of calls that are shown.
const MOST_CHILDREN: usize = 16;
const MOST_CALLS: usize = 16;
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns for numbers and names at the left.
const MARGIN: usize = 10;

/// Draws `figure` in lines of at most `width` columns.
pub(crate) fn terminal(figure: &Figure, width: usize, colours: bool) -> String {
    let page = Page {
        columns: width.saturating_sub(MARGIN + 2).max(10),
        colours,
        figure,
    };
    let mut out = String::new();
    if !figure.title.is_empty() {
        out += &format!(
            "{}\n",
            page.bold(&labels::shortened(&in_one_line(&figure.title), width))
        );
    }
    for curve in figure.curves.iter().filter(|curve| !curve.is_child) {
        page.curve(curve, &mut out);
    }
    page.seconds(&mut out);
    let children: Vec<_> = figure
        .curves
        .iter()
        .filter(|curve| curve.is_child)
        .collect();
    for child in children.iter().take(MOST_CHILDREN) {
        page.child(child, &mut out);
    }
    more(children.len(), MOST_CHILDREN, "child processes", &mut out);
    let mut calls: Vec<_> = figure.calls.iter().collect();
    // The longest calls are the visible ones.
    calls.sort_by(|a, b| (b.to.0 - b.from.0).total_cmp(&(a.to.0 - a.from.0)));
    let many = calls.len();
    calls.truncate(MOST_CALLS);
    calls.sort_by(|a, b| a.from.0.total_cmp(&b.from.0).then(a.level.cmp(&b.level)));
    for call in calls {
        page.call(call, &mut out);
    }
    more(many, MOST_CALLS, "shorter calls", &mut out);
    out
}

fn more(all: usize, shown: usize, what: &str, out: &mut String) {
    if all > shown {
        *out += &format!("{:MARGIN$} … and {} more {what}\n", "", all - shown);
    }
}

struct Page<'f> {
    figure: &'f Figure,
    /// Columns of the plot itself.
    columns: usize,
    colours: bool,
}

impl Page<'_> {
    fn paint(&self, text: &str, code: &str) -> String {
        if self.colours {
            format!("\x1b[{code}m{text}\x1b[0m")
        } else {
            text.to_owned()
        }
    }

    fn bold(&self, text: &str) -> String {
        self.paint(text, "1")
    }

    fn x(&self) -> Scale {
        Scale::new(self.figure.x, 0.0, self.columns as f64)
    }

    /// Returns the largest value in each column. Between two readings, values are on the line from one to the other. `None`
    /// before the first reading and after the last.
    fn values(&self, curve: &Curve) -> Vec<Option<f64>> {
        let scale = self.x();
        let mut values: Vec<Option<f64>> = vec![None; self.columns];
        let mut note = |column: f64, value: f64| {
            if (0.0..self.columns as f64).contains(&column) {
                let place = &mut values[column as usize];
                *place = Some(place.map_or(value, |before| before.max(value)));
            }
        };
        for &(x, y) in &curve.points {
            note(scale.place(x), y);
        }
        for pair in curve.points.windows(2) {
            let [(x0, y0), (x1, y1)] = [pair[0], pair[1]].map(|(x, y)| (scale.place(x), y));
            let (first, last) = (
                x0.ceil().max(0.0),
                x1.floor().min(self.columns as f64 - 1.0),
            );
            let mut column = first;
            while column <= last {
                let part = if x1 > x0 {
                    (column - x0) / (x1 - x0)
                } else {
                    0.0
                };
                note(column, y0 + (y1 - y0) * part);
                column += 1.0;
            }
        }
        values
    }

    fn curve(&self, curve: &Curve, out: &mut String) {
        let values = self.values(curve);
        let top = values.iter().flatten().copied().fold(0.0, f64::max);
        // The scale begins at 0, since areas would mislead otherwise.
        let scale = Scale::new((0.0, top), 0.0, (LINES * 8) as f64);
        for line in (0..LINES).rev() {
            let label = if line == LINES - 1 {
                format!("{top:.1}")
            } else if line == 0 {
                "0".into()
            } else if line == LINES / 2 {
                format!("{:.1}", top * line as f64 / LINES as f64)
            } else {
                String::new()
            };
            let blocks: String = values
                .iter()
                .map(|value| {
                    let eighths = value.map_or(0.0, |value| scale.place(value)) - (line * 8) as f64;
                    BLOCKS[eighths.round().clamp(0.0, 8.0) as usize]
                })
                .collect();
            let unit = if line == LINES - 1 { "MiB" } else { "" };
            *out += format!(
                "{label:>6} {unit:3}┤{}",
                self.paint(blocks.trim_end(), "36")
            )
            .trim_end();
            out.push('\n');
        }
        let peak = curve
            .points
            .iter()
            .copied()
            .reduce(|a, b| if b.1 > a.1 { b } else { a });
        let (at, peak) = peak.unwrap_or_default();
        let peak = format!("peak {peak:.1} MiB after {at:.1} s");
        let room = self.columns.saturating_sub(peak.len() + 2);
        let label = labels::shortened(&in_one_line(&curve.label), room);
        let comma = if label.is_empty() { "" } else { ", " };
        *out += &format!("{:MARGIN$} {label}{comma}{peak}\n", "");
    }

    fn seconds(&self, out: &mut String) {
        let scale = self.x();
        let mut line = vec!['─'; self.columns];
        let mut texts = vec![' '; self.columns + MARGIN];
        for (value, text) in scale.ticks((self.columns / 12).max(2)) {
            let column = (scale.place(value) as usize).min(self.columns - 1);
            line[column] = '┴';
            let begin = column.saturating_sub(text.len() / 2);
            for (place, c) in texts[begin..].iter_mut().zip(text.chars()) {
                *place = c;
            }
        }
        let (line, texts): (String, String) = (line.iter().collect(), texts.iter().collect());
        *out += &format!(
            "{:MARGIN$}└{line}\n{:MARGIN$} {} s\n",
            "",
            "",
            texts.trim_end()
        );
    }

    fn child(&self, child: &Curve, out: &mut String) {
        let values = self.values(child);
        let top = values.iter().flatten().copied().fold(0.0, f64::max);
        let scale = Scale::new((0.0, top), 0.0, 8.0);
        let block = |value: &Option<f64>| {
            value.map_or(' ', |value| {
                // A process is always visible, however small it is.
                BLOCKS[scale.place(value).round().clamp(1.0, 8.0) as usize]
            })
        };
        let blocks: String = values.iter().map(block).collect();
        self.row(
            &blocks,
            "34",
            &format!("{}, peak {top:.1} MiB", in_one_line(&child.label)),
            out,
        );
    }

    fn call(&self, call: &Call, out: &mut String) {
        let scale = self.x();
        let ends = [call.from.0, call.to.0].map(|x| scale.place(x).clamp(0.0, self.columns as f64));
        if ends[0] >= self.columns as f64 || scale.place(call.to.0) < 0.0 {
            return;
        }
        let length = ((ends[1].round() - ends[0].floor()) as usize).max(1);
        let length = length.min(self.columns - ends[0] as usize);
        let bar = if length == 1 {
            "╍".to_owned()
        } else {
            format!("├{}┤", "─".repeat(length - 2))
        };
        let blocks = format!("{}{bar}", " ".repeat(ends[0] as usize));
        let nested = "› ".repeat(call.level.min(8) as usize);
        let took = call.to.0 - call.from.0;
        self.row(
            &blocks,
            "33",
            &format!("{nested}{} {took:.3} s", in_one_line(&call.label)),
            out,
        );
    }

    /// Writes a line of blocks, and the label below it.
    fn row(&self, blocks: &str, code: &str, label: &str, out: &mut String) {
        let label = labels::shortened(label, self.columns);
        *out += &format!(
            "{:MARGIN$} {}\n{:MARGIN$} {label}\n",
            "",
            self.paint(blocks.trim_end(), code),
            ""
        );
    }
}
