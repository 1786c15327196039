//! The lines of the service that hold the most, as two families. Each line is a series of its own, so they are written only
//! on request, and only so many.

use heapray_report::views::short_path;

use super::family::{Family, Kind};
use crate::profiler::CallSite;

/// Returns the live bytes and blocks of `lines`.
pub(crate) fn families<'l>(lines: impl Iterator<Item = &'l CallSite>) -> Vec<Family> {
    let mut bytes = Family::new(
        Kind::Gauge,
        "heapray_site_live_bytes",
        "Live bytes of the lines of the service that hold the most.",
    );
    let mut blocks = Family::new(
        Kind::Gauge,
        "heapray_site_live_blocks",
        "Live blocks of the same lines.",
    );
    let mut written = Vec::new();
    for line in lines {
        let location = match line.line {
            0 => short_path(&line.file).to_owned(),
            number => format!("{}:{number}", short_path(&line.file)),
        };
        let labels = [("function", line.function.clone()), ("location", location)];
        // The same series twice would make the whole text invalid.
        if written.contains(&labels) {
            continue;
        }
        written.push(labels.clone());
        bytes.add(labels.clone(), line.live.bytes);
        blocks.add(labels, line.live.count);
    }
    vec![bytes, blocks]
}
