//! Boxes as SVG: inside of a page, or as a file with its own style and script.

use std::io::{self, Write};

use super::Order;
use super::text::{escaped, fitted};
use super::tree::{Tile, Tree};
use crate::Report;
use crate::formats::spelling;
use crate::stats::size;

const STYLE: &str = include_str!("../../peak/icicles.css");
pub(super) const SCRIPT: &str = include_str!("../../peak/icicles.js");

/// Units of the picture; the script knows them too.
const WIDTH: f64 = 1200.0;
const SIDE: f64 = 10.0;
const ROW: usize = 32;
const HEAD: usize = 56;
const FOOT: usize = 28;
/// About what a character takes of the width.
const CHARACTER: f64 = 6.6;
const SMALL_CHARACTER: f64 = 5.6;

/// A file of its own.
pub(super) fn write_file(
    report: &Report,
    tree: &Tree,
    order: Order,
    out: &mut impl Write,
) -> io::Result<()> {
    out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
    write(report, tree, order, true, out)
}

/// For a page that has the style and the script.
pub(super) fn write_inline(
    report: &Report,
    tree: &Tree,
    order: Order,
    out: &mut impl Write,
) -> io::Result<()> {
    write(report, tree, order, false, out)
}

/// The style of the picture, for a page that has it inside.
pub(super) fn style() -> &'static str {
    STYLE
}

fn write(
    report: &Report,
    tree: &Tree,
    order: Order,
    alone: bool,
    out: &mut impl Write,
) -> io::Result<()> {
    let height = HEAD + tree.depth.max(1) * ROW + FOOT;
    let title = escaped(&title(report, tree, order));
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"icicles\" viewBox=\"0 0 {WIDTH} {height}\" \
         font-family=\"ui-sans-serif, system-ui, sans-serif\" font-size=\"12\" role=\"img\" aria-label=\"{title}\" \
         data-total=\"{}\">",
        tree.shown
    )?;
    if alone {
        writeln!(out, "<title>{title}</title>\n<style>{STYLE}</style>")?;
    }
    writeln!(
        out,
        "<rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\" fill=\"#fffdf9\"/>\n\
         <text class=\"title\" x=\"{}\" y=\"24\" font-size=\"17\" text-anchor=\"middle\">{title}</text>\n\
         <text class=\"reset\" x=\"{SIDE}\" y=\"45\" visibility=\"hidden\" tabindex=\"0\" role=\"button\">Reset zoom</text>\n\
         <text class=\"found\" x=\"{}\" y=\"45\" text-anchor=\"middle\"></text>\n\
         <text class=\"search\" x=\"{}\" y=\"45\" text-anchor=\"end\" visibility=\"hidden\" tabindex=\"0\" role=\"button\">Search</text>",
        WIDTH / 2.0,
        WIDTH / 2.0,
        WIDTH - SIDE,
    )?;
    if tree.shown == 0 {
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">Nothing was allocated.</text>",
            WIDTH / 2.0,
            HEAD + 20
        )?;
    } else {
        for one in &tree.boxes {
            write_box(report, tree, one, out)?;
        }
    }
    writeln!(
        out,
        "<text class=\"details\" x=\"{SIDE}\" y=\"{}\"> </text>",
        height - 10
    )?;
    if alone {
        // A script's text in XML: no `<` or `&` is in it that is not marked as text.
        writeln!(out, "<script>//<![CDATA[\n{SCRIPT}//]]></script>")?;
    }
    writeln!(out, "</svg>")
}

fn title(report: &Report, tree: &Tree, order: Order) -> String {
    let about = if report.conditions.sampling.is_some() {
        "≈ "
    } else {
        ""
    };
    let order = match order {
        Order::RootFirst => "",
        Order::LeafFirst => ", by the place that allocated",
    };
    format!("Peak memory: {about}{}{order}", size(tree.total))
}

fn write_box(report: &Report, tree: &Tree, one: &Tile, out: &mut impl Write) -> io::Result<()> {
    let unit = (WIDTH - 2.0 * SIDE) / tree.shown as f64;
    let (x, width) = (SIDE + one.start as f64 * unit, one.bytes as f64 * unit);
    let y = HEAD + one.depth * ROW;
    let frame = one.frame.and_then(|id| spelling::frame(report, id));
    let (name, place) = match (one.frame, frame) {
        (None, _) => ("all".into(), String::new()),
        (Some(_), None) => ("???".into(), String::new()),
        (Some(_), Some(frame)) => {
            let file = spelling::file(report, frame);
            let place = match (&*file, frame.line) {
                ("", _) => String::new(),
                (file, 0) => file.to_owned(),
                (file, line) => format!("{file}:{line}"),
            };
            (spelling::function(report, frame).into_owned(), place)
        }
    };
    let part = one.bytes as f64 / tree.total.max(1) as f64;
    let what = format!("{} ({:.1} %)", size(one.bytes), part * 100.0);
    let chars = |character: f64| ((width - 8.0).max(0.0) / character) as usize;
    let short = short_place(&place);
    writeln!(
        out,
        "<g class=\"box\" tabindex=\"-1\" data-at=\"{},{},{}\" data-name=\"{name}\" data-place=\"{place}\" data-what=\"{what}\">\
         <title>{name}&#10;{place}&#10;{what}</title>\
         <rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>\
         <text x=\"{:.2}\" y=\"{}\">{}</text>\
         <text class=\"place\" x=\"{:.2}\" y=\"{}\" font-size=\"10\" fill=\"#5a4a3a\">{}</text></g>",
        one.start,
        one.bytes,
        one.depth,
        (width - 0.6).max(0.3),
        ROW - 1,
        fill(part),
        x + 4.0,
        y + 14,
        escaped(&fitted(&name, chars(CHARACTER))),
        x + 4.0,
        y + 26,
        escaped(&fitted(short, chars(SMALL_CHARACTER))),
        name = escaped(&name),
        place = escaped(&place),
        what = escaped(&what),
    )
}

/// The last two parts of a path: what tells files apart.
fn short_place(place: &str) -> &str {
    let mut slashes = place.rmatch_indices('/').map(|(at, _)| at);
    slashes.nth(1).map_or(place, |at| &place[at + 1..])
}

/// Redder where there is more.
fn fill(part: f64) -> String {
    let (few, many) = ([253.0, 240.0, 214.0], [232.0, 93.0, 64.0]);
    let at = part.clamp(0.0, 1.0).sqrt();
    let mix = |nth: usize| (few[nth] + (many[nth] - few[nth]) * at).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_redder() {
        assert_eq!(fill(0.0), "#fdf0d6");
        assert_eq!(fill(1.0), "#e85d40");
        assert_eq!(fill(f64::NAN).len(), 7);
    }

    #[test]
    fn a_place_is_short_but_tells_files_apart() {
        assert_eq!(short_place("/a/b/src/main.rs:3"), "src/main.rs:3");
        assert_eq!(short_place("main.rs:3"), "main.rs:3");
        assert_eq!(short_place("ü/é/à"), "é/à");
    }

    #[test]
    fn the_script_can_stand_in_xml_and_in_html() {
        assert!(!SCRIPT.contains("]]>") && !SCRIPT.contains("</"));
        assert!(!STYLE.contains(['<', '&']));
    }
}
