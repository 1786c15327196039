//! Fills the template of the page.

use std::io::{self, Write};
use std::sync::LazyLock;

use super::ParallelReport;
use super::columns::Data;
use crate::markup::Escaped;
use crate::page::shared;
use crate::{compress, template};

const TEMPLATE: &str = include_str!("../../page/parallel/template.html");
const STYLE: &str = include_str!("../../page/parallel/style.css");

macro_rules! modules {
    ($($name:literal),* $(,)?) => {
        [$(include_str!(concat!("../../page/parallel/js/", $name))),*]
    };
}

/// Modules, each after those that it imports.
const MODULES: [&str; 6] = modules![
    "data.js",
    "stream.js",
    "system.js",
    "tables.js",
    "summary.js",
    "start.js",
];

static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let shared = [shared::FORMAT, shared::AXIS, shared::DOM, shared::NAMES];
    shared::joined(shared.into_iter().chain(MODULES))
});

/// Writes the page of `report` to `out`: one HTML file that needs nothing else.
///
/// # Errors
///
/// Only those of `out`.
pub fn write_page(report: &ParallelReport, out: &mut impl Write) -> io::Result<()> {
    template::write(TEMPLATE, out, |slot, out| fill(slot, report, out))
}

fn fill(slot: &str, report: &ParallelReport, out: &mut impl Write) -> io::Result<()> {
    match slot {
        "title" => write!(out, "{}", Escaped(&report.title)),
        "style" => out.write_all(STYLE.as_bytes()),
        "style_hash" => out.write_all(shared::policy_hash(STYLE).as_bytes()),
        "script" => out.write_all(SCRIPT.as_bytes()),
        "script_hash" => out.write_all(shared::policy_hash(&SCRIPT).as_bytes()),
        "data" => compress::in_page(out, |out| {
            Ok(serde_json::to_writer(out, &Data::of(report))?)
        }),
        _ => unreachable!("the template has only the slots above; a test fills it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_page_is_whole_and_a_hostile_title_stays_text() {
        let report = ParallelReport {
            title: "</title><script>alert(1)</script>".to_owned(),
            ..ParallelReport::default()
        };
        let mut page = Vec::new();
        write_page(&report, &mut page).unwrap();
        let page = String::from_utf8(page).unwrap();
        assert!(page.ends_with("</html>\n"));
        // Types in the scripts' comments have double braces, too.
        let slots = ["title", "style", "script", "data"].map(|slot| format!("{{{{{slot}"));
        assert!(slots.iter().all(|slot| !page.contains(slot)));
        assert!(!page.contains("<script>alert"));
    }

    #[test]
    fn every_script_of_the_folder_is_in_the_page() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("page/parallel/js");
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), MODULES.len());
    }
}
