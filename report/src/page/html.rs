//! Fills the template with style, scripts, their hashes, and the data.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;

use super::ranking::Ranking;
use super::{Page, assets, payload};
use crate::Report;
use crate::markup::Escaped;
use crate::template;

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
        "data" => {
            let encoder = EncoderWriter::new(&mut *out, &STANDARD);
            let mut compressor = ZlibEncoder::new(encoder, Compression::default());
            payload::write(page, ranking, &mut compressor)?;
            compressor.finish()?.finish()?;
            Ok(())
        }
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
