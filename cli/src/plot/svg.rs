//! The picture: SVG, and PNG made from it.

use std::fmt::Write;
use std::sync::Arc;

use heapray_report::markup::Escaped;
use resvg::{tiny_skia, usvg};

use super::figure::{Call, Curve, Figure, Point};
use super::scale::Scale;
use super::{colour, labels};

/// Size of matplotlib's figure: 14 by 6 inches of 90 dots.
const WIDTH: f64 = 1260.0;
const HEIGHT: f64 = 540.0;
/// Largest number of labels in the list beside the axes.
const MOST_LABELS: usize = 22;
/// Largest number of characters of a label, and of the title.
const LABEL: usize = 48;
const TITLE: usize = 120;
/// Largest number of functions with brackets. More would be unreadable.
const MOST_BRACKETS: usize = 2_000;

const FONT: &str = "DejaVu Sans";

/// Box of the axes, and the scales on it.
struct Axes {
    left: f64,
    right: f64,
    top: f64,
    bottom: f64,
    x: Scale,
    y: Scale,
}

impl Axes {
    /// Returns the axes at the positions that `mprof plot` gives them.
    fn of(figure: &Figure, flame: bool) -> Axes {
        let (left, width, bottom, height) = if flame {
            (0.08, 0.88, 0.1, 0.8)
        } else {
            (0.08, 0.6, 0.1, 0.78)
        };
        let (left, right) = (WIDTH * left, WIDTH * (left + width));
        let (bottom, top) = (HEIGHT * (1.0 - bottom), HEIGHT * (1.0 - bottom - height));
        Axes {
            left,
            right,
            top,
            bottom,
            x: Scale::new(figure.x, left, right),
            y: Scale::new(figure.y, bottom, top),
        }
    }

    fn place(&self, (x, y): Point) -> (f64, f64) {
        (self.x.place(x), self.y.place(y))
    }
}

/// Draws `figure` as SVG.
pub(crate) fn svg(figure: &Figure) -> String {
    let axes = Axes::of(figure, figure.levels > 0);
    let mut out = String::new();
    // Writing to a string cannot fail.
    let _ = draw(figure, &axes, &mut out);
    out
}

type Drawn = std::fmt::Result;

fn draw(figure: &Figure, axes: &Axes, out: &mut String) -> Drawn {
    let Axes {
        left,
        right,
        top,
        bottom,
        ..
    } = *axes;
    let (width, height) = (right - left, bottom - top);
    write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{HEIGHT}\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"{FONT}, Verdana, sans-serif\" font-size=\"12.5\" fill=\"none\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <clipPath id=\"axes\"><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/></clipPath>\n"
    )?;
    grid(axes, out)?;
    out.push_str("<g clip-path=\"url(#axes)\">\n");
    if figure.levels > 0 {
        for call in &figure.calls {
            flame(figure, axes, call, out)?;
        }
    }
    for &peak in &figure.peaks {
        let (x, y) = axes.place(peak);
        writeln!(
            out,
            "<path d=\"M{left:.1} {y:.1}H{right:.1}M{x:.1} {top:.1}V{bottom:.1}\" stroke=\"{}\" stroke-width=\"1.3\" stroke-dasharray=\"5 3\"/>",
            colour::PEAK
        )?;
    }
    for curve in &figure.curves {
        draw_curve(axes, curve, figure.levels == 0, out)?;
    }
    if figure.levels == 0 {
        for call in figure.calls.iter().take(MOST_BRACKETS) {
            brackets(axes, call, out)?;
        }
    }
    write!(
        out,
        "</g>\n<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" stroke=\"#000\"/>\n"
    )?;
    let middle = f64::midpoint(left, right);
    let title = labels::shortened(&figure.title, TITLE);
    text(
        out,
        middle,
        top - 9.0,
        "text-anchor=\"middle\" font-size=\"14\"",
        &title,
    )?;
    text(
        out,
        middle,
        bottom + 38.0,
        "text-anchor=\"middle\"",
        "time (in seconds)",
    )?;
    let (x, y) = (left - 56.0, f64::midpoint(top, bottom));
    let turned = format!("text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\"");
    text(out, x, y, &turned, "memory used (in MiB)")?;
    if figure.levels == 0 {
        legend(figure, axes, out)?;
    }
    out.push_str("</svg>\n");
    Ok(())
}

fn text(out: &mut String, x: f64, y: f64, attributes: &str, text: &str) -> Drawn {
    writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"#000\" {attributes}>{}</text>",
        Escaped(text)
    )
}

fn grid(axes: &Axes, out: &mut String) -> Drawn {
    let Axes {
        left,
        right,
        top,
        bottom,
        ..
    } = *axes;
    let (xs, ys) = (axes.x.ticks(8), axes.y.ticks(8));
    out.push_str("<path stroke=\"#b0b0b0\" stroke-width=\"0.8\" d=\"");
    for (value, _) in &xs {
        write!(out, "M{:.1} {top:.1}V{bottom:.1}", axes.x.place(*value))?;
    }
    for (value, _) in &ys {
        write!(out, "M{left:.1} {:.1}H{right:.1}", axes.y.place(*value))?;
    }
    out.push_str("\"/>\n<path stroke=\"#000\" stroke-width=\"0.8\" d=\"");
    for (value, _) in &xs {
        write!(out, "M{:.1} {bottom:.1}v4", axes.x.place(*value))?;
    }
    for (value, _) in &ys {
        write!(out, "M{left:.1} {:.1}h-4", axes.y.place(*value))?;
    }
    out.push_str("\"/>\n");
    for (value, label) in &xs {
        text(
            out,
            axes.x.place(*value),
            bottom + 18.0,
            "text-anchor=\"middle\"",
            label,
        )?;
    }
    for (value, label) in &ys {
        text(
            out,
            left - 8.0,
            axes.y.place(*value) + 4.5,
            "text-anchor=\"end\"",
            label,
        )?;
    }
    Ok(())
}

fn draw_curve(axes: &Axes, curve: &Curve, markers: bool, out: &mut String) -> Drawn {
    let places = thinned(curve.points.iter().map(|&point| axes.place(point)));
    let seen = curve
        .points
        .iter()
        .filter(|point| axes.x.holds(point.0))
        .count();
    out.push_str("<path d=\"");
    for (index, (x, y)) in places.iter().enumerate() {
        write!(out, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' })?;
    }
    // Markers that touch show nothing more than the line.
    if (markers || curve.is_child) && (seen as f64) < (axes.right - axes.left) / 4.0 {
        for &point in &curve.points {
            let (x, y) = axes.place(point);
            write!(out, "M{:.1} {y:.1}h6M{x:.1} {:.1}v6", x - 3.0, y - 3.0)?;
        }
    }
    writeln!(
        out,
        "\" stroke=\"{}\" stroke-width=\"1.5\" stroke-linejoin=\"round\"><title>{}</title></path>",
        curve.colour,
        Escaped(&curve.label)
    )?;
    if let (Some(trend), Some(first), Some(last)) =
        (curve.trend, curve.points.first(), curve.points.last())
    {
        let at = |x: f64| axes.place((x, trend.slope * x + trend.offset));
        let ((x0, y0), (x1, y1)) = (at(first.0), at(last.0));
        let stroke = if curve.is_child {
            "#000"
        } else {
            colour::TREND
        };
        writeln!(
            out,
            "<path d=\"M{x0:.1} {y0:.1}L{x1:.1} {y1:.1}\" stroke=\"{stroke}\" stroke-dasharray=\"5 3\"/>"
        )?;
    }
    Ok(())
}

/// Keeps of all points in one column of dots only the first, the lowest, the highest and the last. The picture is the same.
fn thinned(places: impl Iterator<Item = (f64, f64)>) -> Vec<(f64, f64)> {
    let mut kept: Vec<(f64, f64)> = Vec::new();
    let mut column: Vec<(f64, f64)> = Vec::new();
    let close = |column: &mut Vec<(f64, f64)>, kept: &mut Vec<(f64, f64)>| {
        if column.len() > 4 {
            let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
            let low = (0..column.len()).min_by(by_height).unwrap_or(0);
            let high = (0..column.len()).max_by(by_height).unwrap_or(0);
            let mut ends = [0, low, high, column.len() - 1];
            ends.sort_unstable();
            kept.extend(ends.map(|index| column[index]));
            column.clear();
        } else {
            kept.append(column);
        }
    };
    for place in places {
        if column
            .first()
            .is_some_and(|first| first.0.floor() != place.0.floor())
        {
            close(&mut column, &mut kept);
        }
        column.push(place);
    }
    close(&mut column, &mut kept);
    kept
}

/// Draws `[` at the beginning of a call and `]` at its end, a tenth of the axes high.
fn brackets(axes: &Axes, call: &Call, out: &mut String) -> Drawn {
    let height = (axes.bottom - axes.top) / 20.0;
    let width = (axes.right - axes.left) / 60.0;
    out.push_str("<path d=\"");
    for (point, width) in [(call.from, width), (call.to, -width)] {
        let (x, y) = axes.place(point);
        write!(
            out,
            "M{:.1} {:.1}h{:.1}v{:.1}h{width:.1}",
            x + width,
            y - height,
            -width,
            2.0 * height
        )?;
    }
    writeln!(
        out,
        "\" stroke=\"{}\" stroke-width=\"2.5\"><title>{}</title></path>",
        call.colour,
        Escaped(&took(call))
    )
}

fn took(call: &Call) -> String {
    format!("{} {:.3}s", call.label, call.to.0 - call.from.0)
}

/// Draws a call as a block on its level, with its name if there is room.
fn flame(figure: &Figure, axes: &Axes, call: &Call, out: &mut String) -> Drawn {
    let level_height = (axes.bottom - axes.top) / f64::from(figure.levels + 1);
    let (x0, x1) = (axes.x.place(call.from.0), axes.x.place(call.to.0));
    let y = axes.bottom - level_height * f64::from(call.level + 1);
    let width = (x1 - x0).max(0.5);
    writeln!(
        out,
        "<rect x=\"{x0:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{level_height:.1}\" fill=\"{0}\" fill-opacity=\"0.5\" \
         stroke=\"{0}\" stroke-width=\"0.6\"><title>{1}</title></rect>",
        call.colour,
        Escaped(&took(call))
    )?;
    let (from, to) = (x0.max(axes.left), x1.min(axes.right));
    let room = ((to - from - 8.0) / 7.6).floor().max(0.0) as usize;
    let label = took(call);
    if room >= 4 && level_height >= 14.0 {
        let label = labels::shortened(&label, room);
        text(out, from + 4.0, y + 14.0, "font-size=\"12\"", &label)?;
    }
    Ok(())
}

fn legend(figure: &Figure, axes: &Axes, out: &mut String) -> Drawn {
    let curves = figure
        .curves
        .iter()
        .map(|curve| (curve.label.clone(), curve.colour));
    let calls = figure
        .calls
        .iter()
        .map(|call| (took(call), call.colour.as_str()));
    let mut rows: Vec<(String, &str)> = curves.chain(calls).collect();
    let more = rows.len().saturating_sub(MOST_LABELS);
    rows.truncate(MOST_LABELS);
    if more > 0 {
        rows.push((format!("… and {more} more"), "none"));
    }
    let (row, left) = (19.0, axes.right + 14.0);
    let height = rows.len() as f64 * row + 10.0;
    let top = f64::midpoint(axes.top, axes.bottom) - height / 2.0;
    let width = WIDTH - left - 8.0;
    writeln!(
        out,
        "<rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" rx=\"4\" fill=\"#fff\" fill-opacity=\"0.5\" stroke=\"#ccc\"/>"
    )?;
    for (index, (label, colour)) in rows.iter().enumerate() {
        let y = top + 5.0 + (index as f64 + 0.5) * row;
        writeln!(
            out,
            "<path d=\"M{:.1} {y:.1}h24\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            left + 8.0
        )?;
        let label = labels::shortened(label, LABEL);
        text(out, left + 40.0, y + 4.0, "font-size=\"11\"", &label)?;
    }
    Ok(())
}

/// Draws one of our SVGs as PNG.
///
/// # Errors
/// The error of the renderer, which our own pictures do not cause.
pub(crate) fn png(svg: &str) -> Result<Vec<u8>, String> {
    let mut options = usvg::Options {
        font_family: FONT.to_owned(),
        ..usvg::Options::default()
    };
    Arc::make_mut(&mut options.fontdb).load_font_data(dejavu::sans::regular().to_vec());
    let tree = usvg::Tree::from_str(svg, &options).map_err(|error| error.to_string())?;
    let size = tree.size().to_int_size();
    let pixels = tiny_skia::Pixmap::new(size.width(), size.height());
    let mut pixels = pixels.ok_or("there is no memory for the picture")?;
    resvg::render(
        &tree,
        tiny_skia::Transform::identity(),
        &mut pixels.as_mut(),
    );
    pixels.encode_png().map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dense_curve_keeps_its_spikes_and_loses_its_crowd() {
        let places = (0..100_000).map(|n| {
            let spike = if n == 54_321 {
                500.0
            } else {
                f64::from(n % 10)
            };
            (f64::from(n) / 100.0, spike)
        });
        let kept = thinned(places);
        assert!(kept.len() <= 4_000, "{}", kept.len());
        assert!(kept.iter().any(|place| place.1 == 500.0));
        assert!(kept.is_sorted_by_key(|place| (place.0 * 1000.0) as i64));
        assert_eq!(kept.last().unwrap().0, 999.99);
    }
}
