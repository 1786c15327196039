//! The page that shows and explains both pictures.

use std::io::{self, Write};

use super::{Order, picture};
use crate::Report;
use crate::formats::svg;
use crate::markup::Escaped;
use crate::memray::in_one_line;
use crate::page::shared::policy_hash;
use crate::template;
use crate::units::{counted, duration, rounded_size};

const TEMPLATE: &str = include_str!("../../peak/index.html");
const STYLE: &str = include_str!("../../peak/index.css");

/// `index.html`, which opens from disk.
#[derive(Debug, Clone, Copy)]
pub struct Index<'a> {
    /// The report that it shows.
    pub report: &'a Report,
    /// What was recorded, for users.
    pub name: &'a str,
    /// Time at which it was made, for users.
    pub date: &'a str,
    /// The file of the interactive page beside it.
    pub page: &'a str,
    /// The file of the flame graph beside it.
    pub svg: &'a str,
    /// The file of the flame graph with the leaves first.
    pub reversed: &'a str,
    /// Other files beside it, with a description of each.
    pub files: &'a [(&'a str, &'a str)],
}

impl Index<'_> {
    /// Writes the page.
    ///
    /// # Errors
    /// If `out` fails.
    pub fn write(&self, out: &mut impl Write) -> io::Result<()> {
        template::write(TEMPLATE, out, |slot, out| self.fill(slot, out))
    }

    fn fill(&self, slot: &str, out: &mut impl Write) -> io::Result<()> {
        let report = self.report;
        let about = &report.about;
        let text = match slot {
            "style" => return write!(out, "{STYLE}{}", svg::STYLE),
            "style_hash" => return out.write_all(policy_hash(&style()).as_bytes()),
            "script" => return out.write_all(svg::SCRIPT.as_bytes()),
            "script_hash" => return out.write_all(policy_hash(svg::SCRIPT).as_bytes()),
            "picture" => return self.picture(Order::RootFirst, out),
            "reversed_picture" => return self.picture(Order::LeafFirst, out),
            "facts" => return self.facts(out),
            "notes" => return self.notes(out),
            "files" => return self.files(out),
            "svg" => self.svg.to_owned(),
            "reversed_svg" => self.reversed.to_owned(),
            "name" => in_one_line(self.name).into_owned(),
            "page" => self.page.to_owned(),
            "date" => self.date.to_owned(),
            "command_line" => in_one_line(&about.command_line).into_owned(),
            "producer" => in_one_line(&about.producer).into_owned(),
            _ => unreachable!("the template has only the slots above; a test fills all"),
        };
        write!(out, "{}", Escaped(&text))
    }

    fn picture(&self, order: Order, out: &mut impl Write) -> io::Result<()> {
        picture(self.report, order).write_inline(out)
    }

    fn facts(&self, out: &mut impl Write) -> io::Result<()> {
        let (about, totals) = (&self.report.about, &self.report.totals);
        let near = if self.report.conditions.sampling.is_some() {
            "≈ "
        } else {
            ""
        };
        let ran = about.end_ms.saturating_sub(about.start_ms);
        let reached = totals.high_water_ms.map_or(String::new(), |ms| {
            format!("reached after {}", duration(ms))
        });
        let blocks = |count: u64| format!("in {near}{}", counted(count, "block"));
        let facts = [
            (
                "Peak",
                format!("{near}{}", rounded_size(totals.high_water.bytes)),
                reached,
            ),
            (
                "Not freed at the end",
                format!("{near}{}", rounded_size(totals.live.bytes)),
                blocks(totals.live.count),
            ),
            (
                "Allocated in all",
                format!("{near}{}", rounded_size(totals.allocated.bytes)),
                blocks(totals.allocated.count),
            ),
            (
                "Ran for",
                duration(u64::try_from(ran).unwrap_or(0)),
                format!("process {}", about.pid),
            ),
        ];
        for (name, value, note) in facts {
            writeln!(
                out,
                "<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>",
                Escaped(name),
                Escaped(&value),
                Escaped(&note)
            )?;
        }
        Ok(())
    }

    /// Writes the notes that a reader must know.
    fn notes(&self, out: &mut impl Write) -> io::Result<()> {
        let conditions = &self.report.conditions;
        let lost = conditions.lost_events;
        let lost = (lost > 0).then(|| {
            format!("{lost} events were lost, because the profiler could not keep up: all sums are too low")
        });
        let sampled = conditions.sampling.is_some();
        let sampled = sampled
            .then(|| "samples were recorded, not every allocation: all sums are estimates".into());
        for note in lost.iter().chain(&sampled).chain(&conditions.notes) {
            writeln!(out, "<p class=\"note\">{}</p>", Escaped(&in_one_line(note)))?;
        }
        Ok(())
    }

    fn files(&self, out: &mut impl Write) -> io::Result<()> {
        for (name, what) in self.files {
            let name = Escaped(name);
            writeln!(
                out,
                "<li><a href=\"{name}\">{name}</a> {}</li>",
                Escaped(what)
            )?;
        }
        Ok(())
    }
}

/// Returns the content of the page's `<style>`.
fn style() -> String {
    format!("{STYLE}{}", svg::STYLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_an_empty_report_is_whole_and_names_nothing_outside() {
        let mut report = Report::default();
        report.about.command_line = "app </title><script>alert(1)</script>".into();
        report.conditions.notes.push("<img src=x>".into());
        let index = Index {
            report: &report,
            name: "load </title>",
            page: "p.html",
            date: "2026-11-21",
            svg: "a.svg",
            reversed: "b.svg",
            files: &[("c.bin", "for memray")],
        };
        let mut page = Vec::new();
        index.write(&mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.ends_with("</html>\n") && !page.contains("{{"));
        assert!(!page.contains("<script>alert") && !page.contains("<img"));
        assert_eq!(page.matches("<script").count(), 1);
        assert_eq!(page.matches("<svg ").count(), 2);
        // The hashes belong to these texts.
        let between = |start: &str, end: &str| {
            let (_, after) = page.split_once(start).unwrap();
            after.split_once(end).unwrap().0.to_owned()
        };
        for text in [
            between("<style>", "</style>"),
            between("<script>", "</script>"),
        ] {
            assert!(page.contains(&policy_hash(&text)), "{text}");
        }
        let links = page.matches("http").count();
        assert_eq!(
            links,
            page.matches("http://www.w3.org/2000/svg").count() + 1,
            "but http-equiv"
        );
    }
}
