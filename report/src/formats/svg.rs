//! A flame graph as one SVG file, drawn by [inferno](https://docs.rs/inferno) from our collapsed stacks.
//!
//! Behind the cargo feature `svg`, since inferno is under CDDL-1.0. Zoom and search are scripts inside the file;
//! names are text in it, never markup. Boxes of less than 0.1 % of the width are left out, and the subtitle says so.
//! Options: all but those of pprof.

use std::fmt::Write as _;
use std::io::{self, Write};

use inferno::flamegraph::color::BasicPalette;
use inferno::flamegraph::{self, Direction, Palette};

use super::{Options, collapsed};
use crate::Report;
use crate::memray::in_one_line;
use crate::stats::size;
use crate::views::Unit;

/// Narrower boxes are not drawn: percent of the width.
const MIN_WIDTH: f64 = 0.1;

/// Writes `report`. Holds all collapsed stacks at once: inferno needs them sorted.
///
/// # Errors
/// If `out` fails.
pub fn write(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let mut lines = Vec::new();
    let mut total = 0u64;
    collapsed::lines(report, options, |line| {
        let weight = line.rsplit(' ').next().and_then(|n| n.parse::<u64>().ok());
        // inferno adds without looking: what would run over stops at the largest number it can hold.
        let weight = weight.unwrap_or(0).min(u64::MAX / 4 - total);
        total += weight;
        if weight > 0 {
            let stack = line.rsplit_once(' ').map_or("", |(stack, _)| stack);
            lines.push(format!("{stack} {weight}"));
        }
        Ok(())
    })?;
    if lines.is_empty() {
        // inferno refuses to draw nothing.
        return empty(report, options, out);
    }
    let mut settings = flamegraph::Options::default();
    settings.title = title(report, options);
    settings.subtitle = Some(subtitle(options, total));
    settings.count_name = match options.unit {
        Unit::Bytes => "bytes".into(),
        Unit::Count => "allocations".into(),
    };
    settings.min_width = MIN_WIDTH;
    settings.reverse_stack_order = options.reversed;
    settings.direction = match options.inverted {
        true => Direction::Inverted,
        false => Direction::Straight,
    };
    // The palette for memory; a function has the same colour wherever it stands, and in every file.
    settings.colors = Palette::Basic(BasicPalette::Mem);
    settings.hash = true;
    flamegraph::from_lines(&mut settings, lines.iter().map(String::as_str), out)
}

fn title(report: &Report, options: &Options) -> String {
    match &options.title {
        Some(title) => in_one_line(title).into_owned(),
        None if report.about.command_line.is_empty() => "Heap profile".into(),
        None => in_one_line(&report.about.command_line).into_owned(),
    }
}

fn subtitle(options: &Options, total: u64) -> String {
    let mut text = format!("{}: ", options.measure.title());
    // Writing to a string cannot fail.
    let _ = match options.unit {
        Unit::Bytes => write!(text, "{}", size(total)),
        Unit::Count => write!(text, "{total} allocations"),
    };
    if options.reversed {
        text += ", by the place that allocated";
    }
    text + &format!("; what is under {MIN_WIDTH} % is left out")
}

fn empty(report: &Report, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let title = title(report, options)
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let measure = options.measure.title();
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1200\" height=\"80\" font-family=\"sans-serif\">\
         <text x=\"20\" y=\"30\">{title}</text><text x=\"20\" y=\"60\">{measure}: nothing</text></svg>"
    )
}
