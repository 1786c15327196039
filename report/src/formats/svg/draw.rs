//! Draws boxes as SVG: inside of a page, or as a file with its own style and script.

use std::io::{self, Write};

use super::colors::Colors;
use super::label::{fitted, fitted_name, short_place, width};
use super::tree::{Label, Tile};
use super::{Picture, blocks, near};
use crate::formats::spelling;
use crate::markup::Escaped;
use crate::units::size;

/// Style of a picture, for a page that contains it.
pub(crate) const STYLE: &str = include_str!("../../../svg/picture.css");
/// Script for all pictures of a document.
pub(crate) const SCRIPT: &str = include_str!("../../../svg/picture.js");

/// Width in units of the picture. The script has the same number.
const WIDTH: f64 = 1200.0;
const SIDE: f64 = 10.0;
/// Heights of a row, without and with a second line.
const ROWS: [usize; 2] = [19, 32];
const HEAD: usize = 56;
const LEGEND: usize = 20;
const FOOT: usize = 26;
/// Approximate width of a character.
const CHARACTER: f64 = 6.6;
const SMALL_CHARACTER: f64 = 5.6;
const TITLE_CHARACTER: f64 = 9.4;
/// Width of the buttons beside the title.
const BUTTONS: f64 = 180.0;

impl Picture<'_> {
    /// Writes a file of its own.
    pub(crate) fn write_file(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n")?;
        self.write(true, out)
    }

    /// Writes a picture for a page that has the style and the script.
    pub(crate) fn write_inline(&self, out: &mut impl Write) -> io::Result<()> {
        self.write(false, out)
    }

    fn write(&self, alone: bool, out: &mut impl Write) -> io::Result<()> {
        let colors = Colors::of(self.report, &self.tree);
        let legend = legend(&colors);
        let legend_rows = legend.last().map_or(0, |entry| entry.row + 1);
        let top = HEAD + legend_rows * LEGEND;
        let row = ROWS[usize::from(self.choice.lines)];
        let height = top + self.tree.depth.max(1) * row + FOOT;
        let (title, subtitle) = (Escaped(&self.title), self.subtitle());
        let shown = self.tree.tiles[0].value;
        writeln!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"flames\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\" \
             font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif\" font-size=\"12\" role=\"img\" \
             aria-label=\"{title}\" data-total=\"{shown}\">"
        )?;
        if alone {
            writeln!(out, "<title>{title}</title>\n<style>{STYLE}</style>")?;
        }
        let columns = ((WIDTH - 2.0 * SIDE - BUTTONS) / TITLE_CHARACTER) as usize;
        let right = WIDTH - SIDE;
        writeln!(
            out,
            "<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>\n\
             <text x=\"{SIDE}\" y=\"25\" font-size=\"17\" font-weight=\"600\">{}</text>\n\
             <text class=\"muted\" x=\"{SIDE}\" y=\"44\" fill=\"#63686f\">{}</text>\n\
             <text class=\"search\" x=\"{right}\" y=\"25\" text-anchor=\"end\" visibility=\"hidden\" tabindex=\"0\" role=\"button\">Search</text>\n\
             <text class=\"reset\" x=\"{}\" y=\"25\" text-anchor=\"end\" visibility=\"hidden\" tabindex=\"0\" role=\"button\">Reset zoom</text>\n\
             <text class=\"found\" x=\"{right}\" y=\"44\" text-anchor=\"end\"></text>",
            Escaped(&fitted(&self.title, columns)),
            Escaped(&subtitle),
            right - 60.0,
        )?;
        for entry in legend {
            let y = HEAD + entry.row * LEGEND;
            writeln!(
                out,
                "<rect x=\"{:.1}\" y=\"{}\" width=\"11\" height=\"11\" rx=\"2\" fill=\"{}\"/>\
                 <text x=\"{:.1}\" y=\"{}\">{}</text>",
                entry.x,
                y,
                entry.color,
                entry.x + 16.0,
                y + 10,
                Escaped(&entry.name)
            )?;
        }
        if shown == 0 {
            let y = top + 14;
            writeln!(
                out,
                "<text x=\"{SIDE}\" y=\"{y}\">Nothing was allocated.</text>"
            )?;
        } else {
            for tile in &self.tree.tiles {
                let from_top = if self.choice.upwards {
                    self.tree.depth - 1 - tile.depth
                } else {
                    tile.depth
                };
                self.write_tile(tile, top + from_top * row, &colors, out)?;
            }
        }
        writeln!(
            out,
            "<text class=\"muted details\" x=\"{SIDE}\" y=\"{}\" fill=\"#63686f\"> </text>",
            height - 9
        )?;
        if alone {
            // The script is marked as text, since `<` and `&` are markup in XML.
            writeln!(out, "<script>//<![CDATA[\n{SCRIPT}//]]></script>")?;
        }
        writeln!(out, "</svg>")
    }

    fn write_tile(
        &self,
        tile: &Tile,
        y: usize,
        colors: &Colors,
        out: &mut impl Write,
    ) -> io::Result<()> {
        let root = self.tree.tiles[0].value;
        let unit = (WIDTH - 2.0 * SIDE) / root as f64;
        let (x, wide) = (SIDE + tile.start as f64 * unit, tile.value as f64 * unit);
        let lines = self.choice.lines;
        let row = ROWS[usize::from(lines)];
        let (name, place) = self.spelt(tile.label);
        let columns = |character: f64| ((wide - 8.0).max(0.0) / character) as usize;
        let (start, value, depth) = (tile.start, tile.value, tile.depth);
        write!(
            out,
            "<g class=\"box\" tabindex=\"-1\" data-at=\"{start},{value},{depth}\"><title>{}&#10;{}",
            Escaped(&name),
            Escaped(&self.what(tile))
        )?;
        if !place.is_empty() {
            write!(out, "&#10;{}", Escaped(&place))?;
        }
        write!(
            out,
            "</title><rect x=\"{x:.2}\" y=\"{y}\" width=\"{:.2}\" height=\"{}\" rx=\"2\" fill=\"{}\"/>\
             <text x=\"{:.2}\" y=\"{}\">{}</text>",
            (wide - 0.6).max(0.3),
            row - 1,
            colors.fill(self.report, tile.label),
            x + 4.0,
            y + 13,
            Escaped(&fitted_name(&name, columns(CHARACTER))),
        )?;
        if lines {
            write!(
                out,
                "<text class=\"place\" x=\"{:.2}\" y=\"{}\" font-size=\"10\" fill=\"#4d5157\">{}</text>",
                x + 4.0,
                y + 26,
                Escaped(&fitted(short_place(&place), columns(SMALL_CHARACTER)))
            )?;
        }
        writeln!(out, "</g>")
    }

    /// Returns the name of a box, and its file and line if lines are shown.
    fn spelt(&self, label: Label) -> (String, String) {
        let report = self.report;
        let frame = match label {
            Label::All => return ("all".into(), String::new()),
            Label::Thread(id) => {
                return (spelling::thread(report, id).into_owned(), String::new());
            }
            Label::NoStack => return (spelling::NO_STACK.into(), String::new()),
            Label::Frame(id) => spelling::frame(report, id),
        };
        let Some(frame) = frame else {
            return (spelling::NO_NAME.into(), String::new());
        };
        let file = spelling::file(report, frame);
        let place = match (self.choice.lines, &*file, frame.line) {
            (false, ..) | (true, "", _) => String::new(),
            (true, file, 0) => file.to_owned(),
            (true, file, line) => format!("{file}:{line}"),
        };
        (spelling::function(report, frame).into_owned(), place)
    }

    /// Returns `2.000MB (50.0 %) in 3 blocks`. The percentage is of the unit that the widths show.
    fn what(&self, tile: &Tile) -> String {
        let total = self.choice.unit.of(self.tree.total).max(1);
        let percent = 100.0 * tile.value as f64 / total as f64;
        let near = near(self.report);
        let (bytes, count) = (size(tile.tally.bytes), blocks(tile.tally.count));
        match self.choice.unit {
            crate::views::Unit::Bytes => format!("{near}{bytes} ({percent:.1} %) in {near}{count}"),
            crate::views::Unit::Count => format!("{near}{count} ({percent:.1} %) of {near}{bytes}"),
        }
    }
}

/// Entry of the legend, and its place.
struct Entry {
    x: f64,
    row: usize,
    color: &'static str,
    name: String,
}

fn legend(colors: &Colors) -> Vec<Entry> {
    let (mut x, mut row) = (SIDE, 0);
    let entries = colors.legend.iter();
    entries
        .map(|(color, name)| {
            let name = fitted(name, 60);
            let wide = 16.0 + width(&name) as f64 * CHARACTER + 18.0;
            if x + wide > WIDTH - SIDE && x > SIDE {
                (x, row) = (SIDE, row + 1);
            }
            let entry = Entry {
                x,
                row,
                color,
                name,
            };
            x += wide;
            entry
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_can_stand_in_xml_and_in_html() {
        assert!(!SCRIPT.contains("]]>") && !SCRIPT.contains("</"));
        assert!(!STYLE.contains(['<', '&']));
    }
}
