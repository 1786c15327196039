//! Writes the page of a made-up service, and a file with the values that the page must show: `sample_page OUT.html [NODES]
//! [aggregated|sampled|still|untold|contexts]` writes `OUT.html` and `OUT.html.json`. An aggregated one has no intervals.

mod report;

use std::fs::File;
use std::io::{self, BufWriter, Write};

use heapray_report::model::History;
use heapray_report::page::Page;
use heapray_report::views::{
    CallTree, Kind, Names, Origins, context_rows, leaks, named, own_sites,
};
use serde_json::json;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let Some(out) = arguments.next() else {
        return Err(io::Error::other(
            "usage: sample_page OUT.html [NODES] [aggregated|sampled|still|untold|contexts]",
        ));
    };
    let nodes = arguments.next().map_or(Ok(0), |n| n.parse());
    let mut sample = report::sample(nodes.map_err(io::Error::other)?);

    let variant = arguments.next();
    let aggregated = variant.is_some();
    match variant.as_deref() {
        Some("sampled") => {
            sample.conditions.log_given_up = None;
            sample.conditions.sampling = Some(report::sampling());
        }
        Some("still") => report::extras::keep_nothing_but_set_up(&mut sample),
        Some("contexts") => report::extras::add_contexts(&mut sample),
        Some("untold") => sample.history = History::default(),
        _ => {}
    }
    let intervals = report::extras::intervals(&sample);
    let content = Page {
        report: &sample,
        intervals: (!aggregated).then_some(&intervals),
        has_log: !aggregated,
        sources: None,
    };

    let before = peak_memory();
    let mut page = BufWriter::new(File::create(&out)?);
    content.write(&mut page)?;
    page.flush()?;
    let after = peak_memory();

    let tree = CallTree::of(&sample);
    let total = tree.total();
    let sites: Vec<_> = own_sites(&sample, &Origins::of(&sample))
        .iter()
        .filter_map(|site| site.frame.map(|id| (site, sample.frames[id.0 as usize])))
        .map(|(site, frame)| {
            json!({
                "function": sample.strings.get(frame.function),
                "file": sample.strings.get(frame.file),
                "line": frame.line,
                "own": site.is_own,
                "bytes": site.sums.live.bytes,
                "count": site.sums.live.count,
            })
        })
        .collect();
    let origins = Origins::of(&sample);
    let own_frames = tree
        .nodes
        .iter()
        .filter(|n| origins.kind(n.frame) == Kind::Own);
    // Live memory of each thread and allocator, added up from the call sites.
    let mut threads = std::collections::BTreeMap::<String, u64>::new();
    for site in &sample.sites {
        let name = sample.threads[site.thread.0 as usize].name;
        for key in [sample.strings.get(name), site.allocator.name()] {
            *threads.entry(key.to_owned()).or_default() += site.live.bytes;
        }
    }
    let contexts = |key: &str| -> Vec<_> {
        let rows = context_rows(&sample, key);
        rows.iter()
            .map(|row| json!({"value": row.value, "live": row.live, "high_water": row.high_water}))
            .collect()
    };
    let plain = named(&sample, Names::Plain).unwrap_or_else(|| sample.clone());
    let leaks: Vec<_> = leaks(&plain)
        .list()
        .iter()
        .map(|leak| {
            let frame = plain.frames[leak.frame.0 as usize];
            json!({
                "function": plain.strings.get(frame.function),
                "file": plain.strings.get(frame.file),
                "line": frame.line,
                "bytes": leak.live.bytes,
                "confidence": leak.confidence.name(),
            })
        })
        .collect();
    let expected = json!({
        "leaks": leaks,
        "nodes": tree.nodes.len(),
        "own_nodes": own_frames.count(),
        "depth": tree.nodes.iter().map(|node| node.depth).max(),
        "live": [total.live.count, total.live.bytes],
        "high_water": [total.high_water.count, total.high_water.bytes],
        "temporary": [total.temporary.count, total.temporary.bytes],
        "threads": threads,
        "by_route": contexts("route"),
        "by_tenant": contexts("tenant"),
        "allocated": [total.allocated.count, total.allocated.bytes],
        "sites": sites,
        "hostile": report::HOSTILE,
        "page_bytes": std::fs::metadata(&out)?.len(),
        "extra_kib": after.zip(before).map(|(after, before)| after - before),
    });
    serde_json::to_writer_pretty(File::create(out + ".json")?, &expected)?;
    Ok(())
}

/// Returns the process's highest resident size so far in KiB, if there is `/proc`.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
