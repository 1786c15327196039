//! Fills the template with style, scripts, their hashes, and the data.

use std::io::{self, Write};

use super::ranking::Ranking;
use super::{Page, assets, payload};
use crate::markup::Escaped;
use crate::{Report, compress, template};

/// Writes `page` to `out`, to open at `opens`.
pub(super) fn write(
    page: &Page<'_>,
    ranking: &Ranking,
    opens: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    template::write(assets::TEMPLATE, out, |slot, out| {
        fill(slot, page, ranking, opens, out)
    })
}

fn fill(
    slot: &str,
    page: &Page<'_>,
    ranking: &Ranking,
    opens: &str,
    out: &mut impl Write,
) -> io::Result<()> {
    match slot {
        "opens" => write!(out, "{}", Escaped(opens)),
        "title" => write!(out, "{}", Escaped(program(page.report))),
        "style" => out.write_all(assets::STYLE.as_bytes()),
        "style_hash" => out.write_all(assets::policy_hash(assets::STYLE).as_bytes()),
        "script" => out.write_all(assets::SCRIPT.as_bytes()),
        "script_hash" => out.write_all(assets::policy_hash(&assets::SCRIPT).as_bytes()),
        "data" => compress::in_page(out, |mut out| payload::write(page, ranking, &mut out)),
        _ => unreachable!("the template has only the slots above; a test opens every page"),
    }
}

/// Returns the name of the program that was profiled.
fn program(report: &Report) -> &str {
    match report.about.program() {
        "" => "report",
        name => name,
    }
}
